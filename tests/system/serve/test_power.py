"""After a power cut at any moment the store opens, no acknowledged write is lost, and the service continues."""

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from random import Random
from typing import Any, NamedTuple

import apsw
import pytest

from belated.errors import BelatedError
from belated.serve.store.sqlite.journal import SQLiteJournal
from belated.serve.store.verify import verify
from tests.support.clients.engine_work import Fact, Work, lost
from tests.support.power import SECTOR, Content, Disk, Image, Operation, mounted, seeded

STORE = "store.db"
LIVES = 3  # each continues from the disk that a cut in the previous one has left
STEPS = 25  # requests in a life
PAGES_IN_LOG = 12  # small, so that many cuts hit a checkpoint
CUTS = 30  # to check in each life


class Cut(NamedTuple):
    """The disk after a power cut, how much had been acknowledged, and what was going on."""

    image: Image
    acknowledged: int
    during: str


def live(image: Image, facts: list[Fact], random: Random, **options: Any) -> list[Cut]:
    """Run an engine on this disk, and take a power cut at every disk operation. Returns all cuts."""
    disk, cuts, during = Disk(image), list[Cut](), "recovery" if image else "creation"

    def listen(_operation: Operation, name: str) -> None:
        is_checkpoint = name == STORE and during not in ("creation", "recovery")
        cuts.append(Cut(disk.cut(random), len(facts), "checkpoint" if is_checkpoint else during))

    disk.listen = listen
    with mounted(disk) as folder:
        journal = SQLiteJournal(STORE, vfs=folder, **options)
        journal._db.execute(f"PRAGMA wal_autocheckpoint = {PAGES_IN_LOG}").fetchall()
        work = Work(journal, random, facts)
        work.create()
        for _ in range(STEPS):
            during = work.choose()
            work.do()
        during = "end"
        journal.close()
    return cuts


def damage(cut: Cut, facts: list[Fact], random: Random) -> list[str]:
    """Start the service after the cut and go on. Returns what is wrong."""
    try:
        with mounted(Disk(cut.image)) as folder, closing(SQLiteJournal(STORE, vfs=folder)) as journal:
            found = verify(journal).problems
            work = Work(journal, random, facts[: cut.acknowledged])
            found += lost(work.engine, work.facts)
            if not found:
                work.create()
                for _ in range(3):
                    work.choose()
                    work.do()
                found = lost(work.engine, work.facts)
    except (BelatedError, apsw.Error, LookupError, ValueError) as error:
        found = [f"{type(error).__name__}: {error}"]
    return [f"after a cut during {cut.during}: {one}" for one in found]


def damages(seed: int) -> Iterator[tuple[Cut, list[str]]]:
    """Run a store several times, each time until a power cut, and check many of the cuts."""
    random, image, facts = seeded(seed), Image(), list[Fact]()
    for _ in range(LIVES):
        cuts = live(image, facts, random)
        looked_at = random.sample(cuts, CUTS)
        for cut in looked_at:
            yield cut, damage(cut, facts, random)
        image = looked_at[-1].image
        del facts[looked_at[-1].acknowledged :]


def test_nothing_acknowledged_is_lost() -> None:
    during: Counter[str] = Counter()
    for seed in range(8):
        for cut, found in damages(seed):
            assert found == [], seed
            during[cut.during] += 1
    assert during.total() >= 500
    assert min(during[name] for name in ("decide", "report", "checkpoint", "snapshot", "admit")) >= 25, during
    assert during["creation"] >= 15, during
    assert during["expire"] >= 10, during


def test_a_cut_anywhere_in_the_creation_leaves_a_store_that_can_be_opened() -> None:
    for seed in range(2):
        random, facts = seeded(seed), list[Fact]()
        creation = [cut for cut in live({}, facts, random) if cut.during == "creation"]
        assert len(creation) >= 25
        for cut in creation:
            assert damage(cut, facts, random) == []


@pytest.mark.parametrize("synchronous", ["NORMAL", "OFF"])
def test_a_store_that_does_not_wait_for_the_disk_loses_what_it_acknowledged(synchronous: str) -> None:
    """This shows that the test above can fail."""
    losses, cuts = 0, 0
    random = seeded(1)
    for seed in range(3):
        facts = list[Fact]()
        for cut in random.sample(live({}, facts, seeded(seed), synchronous=synchronous), 60):
            losses += damage(cut, facts, random) != []
            cuts += 1
    assert losses > cuts / 5, f"{losses} of {cuts}"


def test_the_disk_keeps_what_was_synced_and_any_part_of_the_rest() -> None:
    random = seeded(1)
    content = Content()
    content.write(b"a" * 3 * SECTOR, 0)
    content.sync()
    content.write(b"b" * 3 * SECTOR, 0)
    left = {content.after_cut(random, 0.5)[::SECTOR] for _ in range(200)}
    assert left == {bytes((one, two, three)) for one in b"ab" for two in b"ab" for three in b"ab"}
    assert content.after_cut(random, 0.0) == b"a" * 3 * SECTOR
    content.forget()
    content.sync()
    assert content.now == b"b" * 3 * SECTOR
    assert content.kept == b"a" * 3 * SECTOR, "what a failed sync forgot is not written by the next one"


def test_a_new_file_lasts_when_its_folder_is_synced() -> None:
    disk, random = Disk(), seeded(1)
    disk.files["new"] = Content()
    disk.files["new"].write(b"content", 0)
    disk.files["new"].sync()
    assert {bool(disk.cut(random)) for _ in range(50)} == {True, False}
    disk.sync_folder()
    assert [disk.cut(random) for _ in range(50)] == [{"new": b"content"}] * 50
    del disk.files["new"]
    assert {bool(disk.cut(random)) for _ in range(50)} == {True, False}
