"""A removal in PostgreSQL that is killed between any two statements. The store can be used at each of these moments."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from belated.serve.domain.entries import Entry
from belated.serve.domain.refusals import Refusal
from belated.serve.store.bases import is_removed_by
from belated.serve.store.copy import copy
from belated.serve.store.journal import Removal
from belated.serve.store.postgres import partitions, removal
from belated.serve.store.postgres.journal import PostgresJournal
from belated.serve.store.postgres.schema import migrate
from belated.serve.store.removal import loaded
from belated.serve.store.sqlite.journal import SQLiteJournal
from belated.serve.store.verify import verify
from tests.support.engines import Driven
from tests.support.kills import killed_before
from tests.support.postgres import Cluster, connect
from tests.support.removals import based, rows, state_of

DECISIONS = 24


@pytest.fixture
def database(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An empty store with partitions of ten numbers, from which five rows are deleted at a time."""
    monkeypatch.setattr(partitions, "SIZE", 10)
    monkeypatch.setattr(removal, "STEP", 5)
    with cluster.database("template0") as url:
        list(migrate(url))
        yield url


@pytest.fixture
def driven(database: str, tmp_path: Path) -> Iterator[Driven]:
    """A server on that store. Its decisions have keys, and outcomes at once, in a later partition, or never."""
    lived = Driven(tmp_path, opening=lambda: PostgresJournal(database))
    lived.create()
    made = []
    for number in range(DECISIONS):
        made += lived.decide(key=f"k{number}")
        if number % 3 == 0:
            lived.tell(made[-1], 1.0)
        if number % 4 == 1 and number > 8:
            lived.tell(made[-9], 0.0, amend=number == 9)
    yield lived
    lived.engine.journal.close()


def without_key(entry: Entry) -> Entry:
    return msgspec.structs.replace(entry, request=None, position=None)


def check_use(driven: Driven, folder: Path, *, keys: int) -> list[Entry]:
    """Start a server, repeat requests, verify and copy the store. Returns what is in it."""
    driven.restart()
    for number in range(0, DECISIONS, 3)[:keys]:
        [decision] = driven.decide(key=f"k{number}")
        assert not isinstance(driven.tell(decision, 1.0), Refusal)
    driven.engine.catch_up()
    source = driven.engine.journal
    assert verify(source).problems == []
    with closing(SQLiteJournal(folder / "copy.db")) as copied:
        copy(source, copied)
        assert verify(copied).problems == []
        assert rows(copied) == rows(source)
        states = [state_of(driven.engine.fold), state_of(loaded(source)), state_of(loaded(copied))]
        assert states == states[:1] * 3
    for file in folder.glob("copy.db*"):
        file.unlink()
    return rows(source)


@pytest.mark.parametrize(("which", "fewest"), [({"decisions_until": 33}, 25), ({"experiments": (1,)}, 5)], ids=str)
def test_a_removal_that_is_killed_anywhere_leaves_a_store_that_can_be_used(
    driven: Driven, tmp_path: Path, database: str, which: dict[str, Any], fewest: int
) -> None:
    before, base = rows(driven.engine.journal), based(driven.engine.journal)
    what = Removal(base.seq, **which)
    stays = [without_key(entry) for entry in before if not is_removed_by(what, entry)]
    kills = 0
    with closing(PostgresJournal(database)) as remover:
        while killed_before(kills, lambda: list(remover.remove(what))):
            kills += 1
            found = [without_key(entry) for entry in check_use(driven, tmp_path, keys=kills // 8)]
            assert [one for one in found if one in stays] == stays
    assert kills > fewest
    left = check_use(driven, tmp_path, keys=DECISIONS)
    assert [without_key(entry) for entry in left if entry.seq <= base.seq] == stays
    with closing(connect(database)) as other:
        assert other.execute(partitions.LEFT_OVER).fetchall() == []
        assert all(one.end - 1 > what.decisions_until for one in partitions.partitions(other))
