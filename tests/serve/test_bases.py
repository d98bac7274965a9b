"""Entries can be removed from a store in use. The state stays the same to the last bit."""

import logging
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest

from belated.errors import HistoryLost, StoreError
from belated.serve.domain.entries import Entry, EntryKind
from belated.serve.domain.fold import BASES_FROM, VERSION, Snapshot, restore
from belated.serve.domain.history import MOST_RECENT, Tail
from belated.serve.engine.engine import Engine
from belated.serve.engine.requests import Ask
from belated.serve.store import loading, removal
from belated.serve.store.copy import copy
from belated.serve.store.journal import Journal, Removal
from belated.serve.store.loading import load
from belated.serve.store.sqlite.journal import SQLiteJournal
from belated.serve.store.sqlite.schema import migrate
from belated.serve.store.verify import verify
from tests.support import histories
from tests.support.engines import Driven
from tests.support.memory_journal import MemoryJournal, MemoryStore
from tests.support.removals import LAST, based, folded, removed, rows, state_of

DATA = Path(__file__).parent / "data"


def random_removal(journal: Journal, generator: np.random.Generator, until: int) -> dict[str, Any]:
    decisions = [one.seq for one in rows(journal) if one.kind is EntryKind.DECIDED and one.seq <= until]
    match generator.integers(3):
        case 0:
            return {"experiments": (int(generator.integers(1, 3)),)}
        case 1:
            return {"decisions_until": int(generator.integers(until + 1))}
        case _:
            picked = generator.choice(decisions, size=len(decisions) // 2, replace=False)
            return {"decisions": tuple(map(int, picked))}


@pytest.mark.parametrize("seed", range(6))
def test_a_fold_from_a_base_is_the_fold_of_all_entries(tmp_path: Path, seed: int) -> None:
    """Whatever was removed, in the middle of any history, for a running server and for one that starts."""
    driven, generator = Driven(tmp_path, seed=seed), np.random.default_rng(seed)
    histories.begin(driven, has_parts=True)
    other = Driven(tmp_path, clock=driven.clock, seed=seed + 100)
    everything: dict[int, Entry] = {}
    for _ in range(4):
        histories.live(driven, generator, 40)
        other.engine.catch_up()
        base = removal.put_base(driven.engine.journal, removal.loaded(driven.engine.journal), 1)
        histories.live(other, generator, 20)
        for one in (driven, other):
            one.engine.catch_up()
        removal.begin(driven.engine.journal, base, grace=0.0)
        everything |= {entry.seq: entry for entry in rows(driven.engine.journal)}
        which = random_removal(driven.engine.journal, generator, base.seq)
        assert removal.remove(driven.engine.journal, Removal(base.seq, **which)) > 0
        histories.live(driven, generator, 20)
        other.engine.catch_up()
        everything |= {entry.seq: entry for entry in rows(driven.engine.journal)}
        expected = folded(list(everything.values()))
        for engine in (driven.engine, other.engine):
            engine.confirm_history()
            assert state_of(engine.fold) == expected
        again = load(driven.engine.journal)
        assert again.restored == base.seq
        assert again.snapshot() == driven.engine.fold.snapshot() == other.engine.fold.snapshot(), "also the tail"
        assert verify(driven.engine.journal).problems == []
        if generator.random() < 0.5:
            driven.restart(snapshot=True)
            assert driven.engine.fold.restored == driven.engine.fold.seq
            assert verify(driven.engine.journal).problems == []
    assert len(rows(driven.engine.journal)) < len(everything)


def test_verify_says_where_it_began_and_still_finds_what_is_wrong(tmp_path: Path) -> None:
    driven = Driven(tmp_path)
    driven.create()
    driven.decide(size=9)
    base = removed(driven.engine.journal, at=77, decisions=(3, 4, 8))
    driven.engine.catch_up()
    for _ in range(3):
        driven.decide()
    verdict = verify(driven.engine.journal)
    assert verdict.problems == []
    assert (verdict.entries, verdict.decisions, verdict.left, verdict.unchecked) == (4, 12, 7, 0)
    assert verdict.base is not None
    assert (verdict.base.seq, verdict.base.at) == (base.seq, 77)
    with closing(apsw.Connection(str(driven.path))) as database:
        database.execute("UPDATE journal SET probability = 0.9 WHERE seq = 12")
        database.execute("UPDATE journal SET arm = 17 WHERE seq = 5")
    problems = verify(driven.engine.journal).problems
    assert problems[0] == "entry 5: the experiment 'layout' has no arm 17"
    assert "entry 12: its arm was not drawn with the probability 0.9" in problems


def test_a_decision_drawn_from_the_state_of_the_base_is_checked(tmp_path: Path) -> None:
    driven = Driven(tmp_path)
    driven.create()
    driven.decide(size=5)
    fold = removal.loaded(driven.engine.journal)
    driven.decide()  # drawn from the state of the base, and written before it is in force
    base = removal.put_base(driven.engine.journal, fold, 1)
    assert base.seq == 6
    assert (verify(driven.engine.journal).problems, verify(driven.engine.journal).unchecked) == ([], 0)
    with closing(apsw.Connection(str(driven.path))) as database:
        database.execute("UPDATE journal SET probability = 0.9 WHERE seq = 7")
    assert "entry 7: its arm was not drawn with the probability 0.9" in verify(driven.engine.journal).problems


def test_an_outcome_after_the_base_of_a_removed_decision_is_kept(tmp_path: Path) -> None:
    driven = Driven(tmp_path)
    driven.create()
    first, second = driven.decide(size=2)
    base = removal.put_base(driven.engine.journal, removal.loaded(driven.engine.journal), 1)
    assert driven.tell(first, 1.0) == "applied"
    everything = rows(driven.engine.journal)
    driven.engine.catch_up()
    removal.begin(driven.engine.journal, base, grace=0.0)
    removal.remove(driven.engine.journal, Removal(base.seq, experiments=(1,)))
    driven.engine.catch_up()
    assert (driven["layout"].counts.reported, driven["layout"].counts.outstanding) == (1, 1)
    assert [driven.tell(one, 1.0) for one in (first, second)] == ["not_found", "not_found"]
    driven.restart()
    assert state_of(driven.engine.fold) == folded(everything)
    assert verify(driven.engine.journal).problems == []


def test_a_removed_decision_is_not_answered_from_memory(tmp_path: Path) -> None:
    driven = Driven(tmp_path)
    driven.create()
    early, late = driven.decide(), driven.decide()
    removed(driven.engine.journal, decisions=(2,))
    driven.engine.catch_up()
    assert driven.tell(early[0], 1.0) == "not_found"
    assert driven.tell(late[0], 1.0) == "applied"


def test_a_base_waits_for_entries_that_are_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new connection to PostgreSQL may see nothing at first, while other servers write."""
    driven = Driven(tmp_path)
    driven.create()
    driven.decide(size=5)
    read, hidden = driven.engine.journal.read, [None] * 3
    monkeypatch.setattr(driven.engine.journal, "read", lambda *page: [] if hidden and not hidden.pop() else read(*page))
    assert removal.loaded(driven.engine.journal).seq == 6


# -- servers that are behind -------------------------------------------------------------------------------------------


def test_a_server_that_slept_does_not_go_on_from_a_journal_with_gaps(tmp_path: Path) -> None:
    """All that it has applied is still there. What it has not read yet is gone."""
    driven = Driven(tmp_path)
    driven.create()
    asleep = Driven(tmp_path, clock=driven.clock)
    driven.decide(size=5)
    removed(driven.engine.journal, decisions=(4,))
    with pytest.raises(HistoryLost, match=r"only read up to entry 1\. Restart it"):
        asleep.engine.catch_up()
    with pytest.raises(HistoryLost):
        asleep.engine.process([Ask("layout")])
    with pytest.raises(HistoryLost):
        asleep.engine.confirm_history()
    asleep.start()
    driven.engine.catch_up()
    assert asleep.engine.fold.snapshot() == driven.engine.fold.snapshot()


def test_a_server_that_has_not_read_of_the_base_writes_nothing_after_the_removal(tmp_path: Path) -> None:
    """It remembers decisions that are gone."""
    driven = Driven(tmp_path)
    driven.create()
    [decision] = driven.decide()
    removed(driven.engine.journal, decisions=(2,))
    with pytest.raises(HistoryLost):
        driven.tell(decision, 1.0)
    assert [entry.seq for entry in rows(driven.engine.journal)] == [1, 3]


def test_a_start_begins_again_if_entries_are_removed_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    driven = Driven(tmp_path)
    driven.create()
    driven.decide(size=9)
    based(driven.engine.journal)
    driven.engine.catch_up()
    driven.decide(size=9)
    journal = SQLiteJournal(driven.path)
    newest = loading.newest

    def newest_and_remove(*arguments: Any) -> Any:
        found = newest(*arguments)
        monkeypatch.undo()
        removed(driven.engine.journal, decisions=(14, 15))
        return found

    monkeypatch.setattr(loading, "newest", newest_and_remove)
    with caplog.at_level(logging.WARNING, "belated.store"):
        fold = load(journal)
    assert [record.message for record in caplog.records] == ["the state is loaded again"]
    driven.engine.catch_up()
    assert fold.snapshot() == driven.engine.fold.snapshot()


def test_a_snapshot_from_before_the_base_is_never_used(tmp_path: Path) -> None:
    """A slow server may save one after the removal."""
    driven = Driven(tmp_path)
    driven.create()
    driven.decide(size=5)
    old = driven.engine.fold.snapshot()
    driven.decide(size=5)
    base = removal.put_base(driven.engine.journal, removal.loaded(driven.engine.journal), 1)
    for _ in range(2):
        driven.engine.journal.save(old)
        assert load(driven.engine.journal).restored == base.seq
        removal.begin(driven.engine.journal, base, grace=0.0)
    removal.remove(driven.engine.journal, Removal(base.seq, decisions=(9,)))
    driven.engine.journal.save(old)
    assert load(driven.engine.journal).restored == base.seq
    assert verify(driven.engine.journal).problems == []
    driven.engine.catch_up()
    driven.engine.snapshot()
    assert load(driven.engine.journal).restored == driven.engine.fold.seq


# -- crashes and damage ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["sqlite", "memory"])
def test_a_crash_between_any_two_steps_leaves_a_sound_store(tmp_path: Path, kind: str) -> None:
    """The command is killed at each write in turn. Then the service goes on, and the command runs again."""
    for writes in range(1, 100):
        store = MemoryStore()
        folder = tmp_path / str(writes)
        folder.mkdir()
        driven = Driven(folder, opening=(lambda store=store: MemoryJournal(store)) if kind == "memory" else None)  # type: ignore[misc]
        driven.create()
        for decision in driven.decide(size=5):
            driven.tell(decision, 1.0)
        driven.engine.snapshot()
        everything = rows(driven.engine.journal)
        journal = driven._opening()
        is_done = not killed_after(writes, journal, lambda journal=journal: removed(journal, experiments=(1,)))  # type: ignore[misc]
        driven.restart()
        everything += [one for one in rows(driven.engine.journal) if one.seq > 11]
        assert state_of(driven.engine.fold) == folded(everything)
        assert verify(driven.engine.journal).problems == []
        driven.decide()
        base = removed(driven.engine.journal, experiments=(1,))
        driven.engine.catch_up()
        driven.restart()
        assert verify(driven.engine.journal).problems == []
        assert [one.kind for one in rows(driven.engine.journal) if one.seq <= base.seq and one.experiment == 1] == [
            EntryKind.CREATED
        ]
        assert driven["layout"].counts.decisions == 6
        if is_done:
            break
    assert writes >= (6 if kind == "sqlite" else 3)


def test_a_server_that_began_at_a_base_notices_that_it_is_lost(tmp_path: Path) -> None:
    """Also if it could not read the entry of the base yet."""
    driven = Driven(tmp_path)
    driven.create()
    driven.decide(size=5)
    base = removal.put_base(driven.engine.journal, removal.loaded(driven.engine.journal), 1)
    fold = loading.newest(driven.engine.journal)
    assert (fold.seq, driven.engine.journal.confirms(fold.tail.mark())) == (base.seq, True)
    with closing(apsw.Connection(str(driven.path))) as database:
        database.execute("DELETE FROM journal WHERE seq >= 5")
    assert not driven.engine.journal.confirms(fold.tail.mark())


@pytest.mark.parametrize("step", ["begin", "remove"])
def test_a_removal_stops_if_a_failover_loses_its_base(tmp_path: Path, step: str) -> None:
    """The journal goes back to a time before the base. All entries are needed again."""
    driven = Driven(tmp_path)
    driven.create()
    driven.decide(size=1200)
    journal = SQLiteJournal(driven.path)
    base = removal.put_base(journal, removal.loaded(journal), 1)
    removing: Iterator[int] = iter(())
    if step == "remove":
        removal.begin(journal, base, grace=0.0)
        removing = journal.remove(Removal(base.seq, experiments=(1,)))
    before = rows(journal)[:-1]
    with closing(apsw.Connection(str(driven.path))) as database:
        database.execute("DELETE FROM journal WHERE seq = ?; UPDATE bases SET removed_by = NULL", (base.entry,))
    with pytest.raises(HistoryLost, match="is not in force, so nothing may be removed"):
        removal.begin(journal, base, grace=0.0) if step == "begin" else list(removing)
    assert rows(journal) == before
    assert load(journal).seq == 1201


class Killed(BaseException):
    """The process ends."""


def killed_after(writes: int, journal: Journal, command: Callable[[], object]) -> bool:
    """Run a command, but end it at this write. Returns whether it came to that."""
    left = writes

    def dying(write: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any) -> Any:
            nonlocal left
            left -= 1
            if left < 0:
                raise Killed
            return write(*arguments)

        return wrapped

    names = ["_commit", "append"] if isinstance(journal, SQLiteJournal) else ["prepare_base", "append", "begin_removal"]
    for name in names:
        setattr(journal, name, dying(getattr(journal, name)))
    try:
        command()
    except Killed:
        return True
    return False


def damaged_state(database: apsw.Connection) -> None:
    database.execute("UPDATE base_parts SET state = zeroblob(length(state))")


def lost_part(database: apsw.Connection) -> None:
    database.execute("DELETE FROM base_parts")


def lost_base(database: apsw.Connection) -> None:
    database.execute("DELETE FROM bases")


def foreign_version(database: apsw.Connection) -> None:
    database.execute("UPDATE bases SET version = 99, release = '9.8.7'")


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (damaged_state, "the state after entry 6 is damaged.*Restore a backup"),
        (lost_part, "the state after entry 6 is damaged.*Restore a backup"),
        (lost_base, "the state after entry 6 is in the store, but it is missing. Restore a backup"),
        (foreign_version, f"it has version 99, and this release reads version {VERSION}.* Belated 9.8.7. Use that"),
    ],
)
def test_a_damaged_base_is_an_error_and_nothing_takes_its_place(
    tmp_path: Path, damage: Callable[[apsw.Connection], None], said: str
) -> None:
    driven = Driven(tmp_path)
    driven.create()
    driven.decide(size=5)
    removed(driven.engine.journal, decisions=(3,))
    driven.engine.journal.close()
    with closing(apsw.Connection(str(driven.path))) as database:
        damage(database)
    with closing(SQLiteJournal(driven.path)) as journal:
        with pytest.raises(StoreError, match=said):
            Engine(journal)
        assert len(verify(journal).problems) == 1
        if damage is foreign_version:
            return
        with closing(SQLiteJournal(tmp_path / "copy.db")) as other:
            with pytest.raises(StoreError):
                copy(journal, other)
            assert rows(other) == []


def test_an_older_release_refuses_a_store_with_a_base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    driven = Driven(tmp_path)
    driven.create()
    driven.decide()
    removed(driven.engine.journal, decisions=(2,))
    with monkeypatch.context() as older:
        older.delitem(__import__("belated.serve.store.sql", fromlist=["KINDS"]).KINDS, 9)
        with pytest.raises(StoreError, match=r"entry 3 has the kind 9, which this release does not know\. Use a newer"):
            driven.engine.catch_up()


def test_a_copy_has_the_base_and_what_is_left(tmp_path: Path) -> None:
    driven, generator = Driven(tmp_path), np.random.default_rng(3)
    histories.begin(driven)
    histories.live(driven, generator, 60)
    removed(driven.engine.journal, decisions_until=40)
    driven.engine.catch_up()
    driven.engine.snapshot()
    histories.live(driven, generator, 20)
    with closing(SQLiteJournal(tmp_path / "copy.db")) as other:
        copied = copy(driven.engine.journal, other)
        assert copied.entries == len(rows(other)) == len(rows(driven.engine.journal))
        assert rows(other) == rows(driven.engine.journal)
        assert other.base() == driven.engine.journal.base()
        assert load(other).snapshot() == driven.engine.fold.snapshot()
        other.drop_snapshots(LAST)
        assert load(other).snapshot() == driven.engine.fold.snapshot()
        assert verify(other).problems == []


# -- the tail ----------------------------------------------------------------------------------------------------------


def tails_after_a_base(between: int, store: MemoryStore, *, seen: int | None) -> Iterator[Tail]:
    """The tail of a server that ran all the time, and of one that began at the base. What came before it is removed."""
    rng = np.random.default_rng(between)
    n = 100
    before = [Entry(int(rng.integers(10**15)), EntryKind.DECIDED, 1, seq, seen=seq - 1) for seq in range(1, n + 1)]
    kinds = [EntryKind.REPORTED] * between
    after = [Entry(int(rng.integers(10**15)), kind, 1, n + 1 + i, nonce=i) for i, kind in enumerate(kinds)]
    entry = n + between + 1
    if seen is not None:
        after.append(Entry(5, EntryKind.DECIDED, 1, entry, nonce=7, seen=seen))
        entry += 1
    after.append(Entry(7, EntryKind.BASE, entry, entry, seen=n))
    store.entries = after
    for tail, stream in ((Tail(), before + after), (Tail.after_base(n), after)):
        for one in stream:
            tail.add([one])
        yield tail


@pytest.mark.parametrize("between", [0, 1, 5, MOST_RECENT - 1, MOST_RECENT, MOST_RECENT + 1, MOST_RECENT + 1000])
@pytest.mark.parametrize("seen", [None, 90, 99, 100, 101, "newest"])
def test_all_servers_have_the_same_tail_after_a_base(between: int, seen: int | str | None) -> None:
    """Also if very many reports came while it was written."""
    last = 100 + between if seen == "newest" else seen
    store = MemoryStore()
    running, fresh = tails_after_a_base(between, store, seen=last)  # type: ignore[arg-type]
    assert running.state() == fresh.state()
    assert running.since >= 100
    assert running.witness.seq > 100
    assert MemoryJournal(store).confirms(running.mark())


# -- states of earlier releases ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(BASES_FROM, VERSION + 1))
def test_a_base_of_this_version_can_still_be_restored(tmp_path: Path, version: int) -> None:
    """Nothing can take the place of a base. So who raises VERSION in domain/fold.py must let `restore` read the states
    of earlier versions, keep this file, and add one of the new version beside it.

    `python -m tests.support.golden_base` writes such a file.
    """
    shutil.copy(DATA / f"store-with-base-of-version-{version}.db", tmp_path / "belated.db")
    list(migrate(tmp_path / "belated.db"))
    driven = Driven(tmp_path)
    base = driven.engine.journal.base()
    assert base is not None
    assert base.version == version
    state = driven.engine.journal.base_state(base.seq)
    assert restore(Snapshot(base.seq, base.version, state), is_base=True).base().state == state or version < VERSION
    counts = {name: one.counts for name, one in driven.engine.fold.by_name.items()}
    expected = {"waiting": (140, 83), "patient": (65, 26)}
    assert {name: (one.decisions, one.outstanding) for name, one in counts.items()} == expected
    assert verify(driven.engine.journal).problems == []
    driven.decide("waiting")
    driven.restart(snapshot=True)
    assert verify(driven.engine.journal).problems == []
