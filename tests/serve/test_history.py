"""A store that has lost entries which were applied is noticed, always and before anything is acknowledged."""

import math
import os
import shutil
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import apsw
import msgspec
import numpy as np
import pytest

from belated.errors import HistoryLost, StoreError
from belated.serve.domain.entries import Entry, EntryKind, Found
from belated.serve.domain.history import MOST_AT_APPEND, MOST_RECENT, Tail
from belated.serve.domain.messages import OutcomeReport
from belated.serve.domain.settings import Settings
from belated.serve.engine.requests import Ask, Close, Create, Tell
from belated.serve.engine.writer import Writer
from belated.serve.process import snapshots
from belated.serve.service.keys import Gate
from belated.serve.store import loading
from belated.serve.store.journal import Key
from belated.serve.store.opening import open_to_serve
from belated.serve.store.sqlite.journal import SQLiteJournal
from belated.serve.store.verify import verify
from tests.support.engines import Clock, Driven
from tests.support.memory_journal import MemoryJournal, MemoryStore


def commits(rng: np.random.Generator, n: int) -> list[list[Entry]]:
    """Commits in their order. Servers take numbers before they commit, so a later one may have lower numbers."""
    open_ones: list[list[Entry]] = []
    done: list[list[Entry]] = []
    seq = 0
    while len(done) < n:
        if open_ones and (len(open_ones) > 3 or rng.random() < 0.5):
            done.append(open_ones.pop(int(rng.integers(len(open_ones)))))
            continue
        size, kind = int(rng.integers(1, 4)), EntryKind(int(rng.integers(2, 4)))
        seen = horizon(done, open_ones) if kind is EntryKind.DECIDED else None
        numbers = range(seq + 1, seq + 1 + size)
        open_ones.append([entry(number, kind, seen, rng) for number in numbers])
        seq += size
    return done


def entry(seq: int, kind: EntryKind, seen: int | None, rng: np.random.Generator) -> Entry:
    return Entry(int(rng.integers(10**15, 2 * 10**15)), kind, 1, seq, nonce=int(rng.integers(2**60)), seen=seen)


def horizon(done: list[list[Entry]], open_ones: list[list[Entry]]) -> int:
    """The entry up to which everything is committed."""
    first_open = min((one[0].seq for one in open_ones), default=10**9)
    return max((e.seq for one in done for e in one if e.seq < first_open), default=0)


@pytest.mark.parametrize("seed", range(200))
def test_any_loss_of_the_newest_commits_is_noticed(seed: int) -> None:
    rng = np.random.default_rng(seed)
    made = commits(rng, 30)
    everything = sorted((e for one in made for e in one), key=lambda e: e.seq)
    committed = {e.seq for e in everything}
    first_gap = min(set(range(1, max(committed) + 2)) - committed)
    end = min(first_gap, int(rng.integers(2, 60)))
    applied = [e for e in everything if e.seq < end]
    tail = Tail()
    for one in applied:
        tail.add([one])
    for kept in range(len(made) + 1):
        store = MemoryStore()
        store.entries = sorted((e for one in made[:kept] for e in one), key=lambda e: e.seq)
        is_whole = set(applied) <= set(store.entries)
        assert MemoryJournal(store).confirms(tail.mark()) == is_whole
        assert MemoryJournal(store).confirms(tail.short_mark()) == is_whole


def test_numbers_that_are_given_out_again_are_noticed() -> None:
    rng, tail = np.random.default_rng(0), Tail()
    applied = [entry(seq, EntryKind.DECIDED, seq - 1, rng) for seq in range(1, 20)]
    for one in applied:
        tail.add([one])
    store = MemoryStore()
    store.entries = applied[:10] + [entry(seq, EntryKind.DECIDED, seq - 1, rng) for seq in range(11, 40)]
    assert not MemoryJournal(store).confirms(tail.mark())


def test_a_tail_needs_bounded_memory_and_survives_a_snapshot() -> None:
    rng, tail = np.random.default_rng(0), Tail()
    reports = [entry(seq, EntryKind.REPORTED, None, rng) for seq in range(1, MOST_RECENT + 5_000)]
    tail.add(reports)
    store = MemoryStore()
    store.entries = reports
    journal = MemoryJournal(store)
    assert journal.confirms(tail.mark())
    again = Tail.restore(msgspec.msgpack.decode(msgspec.msgpack.encode(tail.state())))
    assert (again.mark(), again.state()) == (tail.mark(), tail.state())
    assert tail.short_mark().n_after == 0 < MOST_AT_APPEND < tail.mark().n_after
    assert len(tail.state()["recent"][0]) == MOST_RECENT
    del store.entries[17]  # too far back to be kept one by one
    assert not journal.confirms(tail.mark())


def test_splitting_a_batch_does_not_change_the_tail() -> None:
    rng = np.random.default_rng(1)
    reports = [entry(seq, EntryKind.REPORTED, None, rng) for seq in range(1, 40)]
    decisions = [entry(seq, EntryKind.DECIDED, 35, rng) for seq in range(40, 60)]
    whole, split = Tail(), Tail()
    whole.add(reports)
    whole.add(decisions)
    for one in [*reports, *decisions]:
        split.add([one])
    assert whole.state() == split.state()


# -- an engine on a file ---------------------------------------------------------------------------------------------


def test_nothing_is_written_on_top_of_a_restored_backup(tmp_path: Path) -> None:
    """The file keeps its name and its inode, and has fewer entries."""
    driven = Driven(tmp_path)
    driven.create()
    driven.decide(size=5)
    with closing(apsw.Connection(str(driven.path))) as database:
        database.execute("DELETE FROM journal WHERE seq > 3")
    with pytest.raises(HistoryLost, match="lost entries up to 6"):
        driven.engine.process([Ask("layout")])
    with pytest.raises(HistoryLost):
        driven.engine.confirm_history()
    assert driven.engine.journal.last() == 3


def test_after_an_outage_all_entries_are_counted_before_anything_is_acknowledged(tmp_path: Path) -> None:
    """A failover may keep the newest entry and lose the one before. Usually many entries are counted now and then."""
    driven = Driven(tmp_path)
    driven.create()
    made = driven.decide(size=MOST_AT_APPEND + 10)
    driven.tell_all([OutcomeReport(one.id, "reward", 1.0) for one in made])
    driven.engine.confirm_history()
    driven.engine.applied._next_sum = math.inf  # as after a look that took long
    writer = Writer(driven.engine, Gate([]).learn, capacity=10)
    writer.failure, writer.may_recover = "the store cannot be reached", True
    with closing(apsw.Connection(str(driven.path))) as database:
        database.execute("DELETE FROM journal WHERE seq = ?", (driven.engine.fold.seq - 1,))
    writer._look_after(is_idle=True)
    assert (writer.is_hopeless(), writer.may_recover) == (True, False)


def test_a_repeated_change_is_not_acknowledged_if_the_first_one_is_lost(tmp_path: Path) -> None:
    """Such a request writes nothing, so no append notices the loss."""
    driven = Driven(tmp_path)
    driven.create()
    driven.close()
    driven.create("other")
    with closing(apsw.Connection(str(driven.path))) as database:
        database.execute("DELETE FROM journal WHERE seq > 1")
    for request in (Close("layout"), Create(Settings("other", ["a", "b", "c"]))):
        with pytest.raises(HistoryLost):
            driven.engine.process([request])


@pytest.mark.parametrize("lost", [2, 3])
def test_no_report_is_written_if_what_it_builds_on_is_lost_before_it_was_applied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost: int
) -> None:
    """The other server has read the decision and its end only to judge the report, and then a backup is restored."""
    driven = Driven(tmp_path)
    driven.create(reward_wait=60.0, default_outcome=0.0)
    other = Driven(tmp_path, clock=driven.clock)
    [decision] = driven.decide()
    driven.clock.advance(60)
    driven.engine.expire()
    find = other.engine.journal.find

    def find_and_lose(seqs: Sequence[int]) -> dict[int, Found]:
        found = find(seqs)
        with closing(apsw.Connection(str(driven.path))) as database:
            database.execute("DELETE FROM journal WHERE seq >= ?", (lost,))
        return found

    monkeypatch.setattr(other.engine.journal, "find", find_and_lose)
    with pytest.raises(HistoryLost):
        other.engine.process([Tell([OutcomeReport(decision.id, "reward", 1.0)])])
    assert other.engine.journal.last() == lost - 1


def test_a_new_experiment_that_is_lost_before_it_was_applied_is_not_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its number is given out again before its server reads the journal."""
    driven, other = Driven(tmp_path), Driven(tmp_path)
    other.create("old")
    read = driven.engine.journal.read

    def lose_and_read(after: int, limit: int) -> list[Entry]:
        monkeypatch.undo()
        with closing(apsw.Connection(str(driven.path))) as database:
            database.execute("DELETE FROM journal WHERE seq > 1")
        other.decide("old")
        return read(after, limit)

    monkeypatch.setattr(driven.engine.journal, "read", lose_and_read)
    with pytest.raises(HistoryLost, match="lost the experiment 'new'"):
        driven.engine.process([Create(Settings("new", ["a", "b"]))])


def test_nothing_is_written_on_top_of_another_history(tmp_path: Path) -> None:
    """Another server has written since the backup was restored, so that the numbers are taken again."""
    driven, clock = Driven(tmp_path), Clock()
    driven.create()
    driven.decide(size=5)
    with closing(apsw.Connection(str(driven.path))) as database:
        database.execute("DELETE FROM journal WHERE seq > 3")
    clock.advance(1)
    other = Driven(tmp_path, clock=clock, seed=2)
    other.decide(size=20)
    with pytest.raises(HistoryLost):
        driven.engine.process([Ask("layout")])
    assert other.decide()
    assert verify(other.engine.journal).problems == []


def test_a_snapshot_of_lost_history_is_neither_saved_nor_used(tmp_path: Path) -> None:
    driven = Driven(tmp_path)
    driven.create()
    driven.decide(size=5)
    backup = tmp_path / "backup.db"
    with closing(apsw.Connection(str(driven.path))) as database:
        database.execute("VACUUM INTO ?", (str(backup),))
    driven.decide(size=5)
    driven.engine.snapshot()
    driven.decide(size=5)
    newest = driven.engine.fold.snapshot()
    driven.engine.journal.close()
    for file in tmp_path.glob("belated.db*"):
        if "snapshots" not in file.name:
            file.unlink()
    shutil.copy(backup, driven.path)
    driven.clock.advance(1)
    driven.start()  # without the snapshot
    assert (driven.engine.fold.seq, driven.engine.fold.restored) == (6, 0)
    assert driven.engine.journal.snapshot_seq() == 0  # it would hide newer ones that have lower numbers
    driven.decide(size=1)
    driven.engine.journal.save(newest)  # as a server would that has not noticed
    assert loading.newest(driven.engine.journal).seq == 0
    assert verify(driven.engine.journal).problems  # it changes nothing, so the snapshot is still there
    assert driven.engine.journal.snapshot_seq() == newest.seq > driven.engine.fold.seq
    driven.restart()
    assert driven.engine.is_last_snapshot_due()
    driven.restart(snapshot=True)
    assert driven.engine.fold.restored == 7
    assert verify(driven.engine.journal).problems == []


def test_verify_names_the_decisions_that_were_drawn_on_lost_history(tmp_path: Path) -> None:
    driven = Driven(tmp_path)
    driven.create()
    for _ in range(5):
        driven.decide()
    with closing(apsw.Connection(str(driven.path))) as database:
        database.execute("UPDATE journal SET seen = seq WHERE seq = 4")
        database.execute("DELETE FROM journal WHERE seq = 5")  # the decision in entry 6 was drawn after it
    problems = verify(driven.engine.journal).problems
    assert [one.split(":")[0] for one in problems if "lost history" in one] == ["entry 4", "entry 6"]


@pytest.mark.parametrize("suffix", ["", "-wal", "-shm"])
@pytest.mark.parametrize("how", ["moved", "deleted", "replaced"])
def test_a_file_that_is_gone_is_noticed_before_anything_is_acknowledged(tmp_path: Path, suffix: str, how: str) -> None:
    driven = Driven(tmp_path)
    driven.create()
    driven.decide()
    file = Path(f"{driven.path}{suffix}")
    copy = tmp_path / "copy"
    shutil.copy(file, copy)
    file.rename(tmp_path / "elsewhere") if how == "moved" else file.unlink()
    if how == "replaced":
        copy.rename(file)
    key = Key("0" * 12, b"digest", "read", None, 1)
    for step in (
        lambda: driven.engine.journal.add_key(key),
        driven.engine.confirm_history,
        lambda: driven.engine.process([Ask("layout")]),
    ):
        with pytest.raises(HistoryLost, match="moved, deleted, replaced or cut short"):
            step()


@pytest.mark.parametrize("left", [0, 0.5])
@pytest.mark.parametrize("suffix", ["", "-wal"])
@pytest.mark.parametrize("is_asked", [True, False])
def test_a_file_that_is_cut_short_is_noticed_before_anything_is_acknowledged(
    tmp_path: Path, suffix: str, left: float, is_asked: bool
) -> None:
    """SQLite would go on in its memory, and nothing could be read after a restart."""
    driven = Driven(tmp_path)
    driven.create()
    driven.decide(size=2000)
    checkpoint(driven)
    driven.decide(size=20)
    driven.engine.confirm_history()
    file = Path(f"{driven.path}{suffix}")
    os.truncate(file, int(file.stat().st_size * left))
    with pytest.raises(HistoryLost, match="cut short"):
        driven.engine.process([Ask("layout")]) if is_asked else driven.engine.confirm_history()


def test_a_file_may_become_smaller_if_it_is_written_anew(tmp_path: Path) -> None:
    driven = Driven(tmp_path)
    driven.create()
    driven.decide(size=5000)
    checkpoint(driven)
    driven.engine.confirm_history()
    before = driven.path.stat().st_size
    with closing(apsw.Connection(str(driven.path))) as database:
        database.execute("DROP INDEX outcomes; DROP INDEX decisions; VACUUM").fetchall()
    driven.decide(size=5)
    driven.engine.confirm_history()
    checkpoint(driven)
    assert driven.path.stat().st_size < before
    driven.decide(size=5)
    driven.engine.confirm_history()


def checkpoint(driven: Driven) -> None:
    """Write the log into the file, as SQLite does after a thousand pages."""
    with closing(apsw.Connection(str(driven.path))) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


@pytest.mark.parametrize("what", ["backup", "another store", "nonsense"])
@pytest.mark.parametrize("suffix", ["", "-wal"])
def test_files_that_are_overwritten_in_place_are_noticed(tmp_path: Path, what: str, suffix: str) -> None:
    """As `cp backup.db belated.db` does. The file keeps its inode, and may keep its size."""
    driven, copy, folder = Driven(tmp_path), tmp_path / "copy", tmp_path / "other"
    folder.mkdir()
    driven.create()
    driven.decide(size=3000)
    if what == "another store":
        other = Driven(folder)
        other.create("other")
        other.decide("other", 5)
        checkpoint(other)
        other.decide("other", 5)
        shutil.copyfile(f"{other.path}{suffix}", copy)
    elif what == "backup":
        shutil.copyfile(f"{driven.path}{suffix}", copy)
    checkpoint(driven)
    for _ in range(2 if suffix else 500):
        driven.decide()
    if not suffix:
        checkpoint(driven)
    driven.engine.confirm_history()
    file = Path(f"{driven.path}{suffix}")
    if what == "nonsense":
        copy.write_bytes(np.random.default_rng(0).bytes(file.stat().st_size))
    shutil.copyfile(copy, file)
    with pytest.raises(StoreError):
        driven.engine.confirm_history()
    driven.engine.journal.close()


@pytest.mark.parametrize("is_empty", [True, False])
def test_a_log_without_its_store_is_not_thrown_away(tmp_path: Path, is_empty: bool) -> None:
    """SQLite deletes such a log, and it may be all that is left."""
    driven = Driven(tmp_path)
    driven.create()
    driven.decide(size=5)
    log = Path(f"{driven.path}-wal").read_bytes()
    folder = tmp_path / "after"
    folder.mkdir()
    store = folder / "belated.db"
    Path(f"{store}-wal").write_bytes(log)
    if is_empty:
        store.touch()
    for readonly in (False, True):
        with pytest.raises(StoreError, match="move the log away"):
            SQLiteJournal(store, readonly=readonly)
    assert Path(f"{store}-wal").read_bytes() == log
    shutil.copyfile(driven.path, store)
    with closing(SQLiteJournal(store)) as journal:
        assert journal.last() == 6


@pytest.mark.parametrize("is_empty", [True, False])
def test_a_store_that_was_there_is_not_begun_anew(tmp_path: Path, is_empty: bool) -> None:
    store = tmp_path / "belated.db"
    if is_empty:
        store.touch()
    with pytest.raises(StoreError, match="must not be begun anew"):
        open_to_serve(store, may_create=False)
    with pytest.raises(StoreError, match="must not be begun anew"):
        snapshots.follow(str(store), os.getppid())
    assert store.exists() == is_empty
    open_to_serve(store).close()
    open_to_serve(store, may_create=False).close()


def test_nothing_of_a_damaged_log_is_written_into_the_store(tmp_path: Path) -> None:
    driven = Driven(tmp_path)
    driven.create()
    driven.decide(size=50)
    checkpoint(driven)
    before = driven.path.read_bytes()
    driven.decide(size=50)
    log = Path(f"{driven.path}-wal")
    with log.open("r+b") as file:
        file.seek(32)
        file.write(np.random.default_rng(0).bytes(log.stat().st_size - 32))
    with pytest.raises(StoreError):
        driven.engine.confirm_history()
    driven.engine.journal.close()
    assert driven.path.read_bytes() == before


def test_a_reader_is_not_disturbed_by_checkpoints(tmp_path: Path) -> None:
    """The log is emptied and written again, and its file stays the same."""
    driven = Driven(tmp_path)
    driven.create()
    for _ in range(3):
        driven.decide(size=2000)
        with closing(SQLiteJournal(driven.path)) as other:
            assert other.last() == driven.engine.fold.seq
        with closing(apsw.Connection(str(driven.path))) as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        driven.engine.confirm_history()


def test_a_witness_after_many_reports_begins_the_sums_anew() -> None:
    """A day of reports without a decision, and then one decision. Otherwise every server would take it for a loss."""
    rng, tail, store = np.random.default_rng(2), Tail(), MemoryStore()
    store.entries = [entry(seq, EntryKind.REPORTED, None, rng) for seq in range(1, MOST_RECENT + 5_000)]
    last = len(store.entries)
    store.entries.append(entry(last + 1, EntryKind.DECIDED, last - 3, rng))
    for one in store.entries:
        tail.add([one])
    assert (tail.mark().n_after, tail.since) == (4, last - 3)
    assert MemoryJournal(store).confirms(tail.mark())
    whole = Tail()
    whole.add(store.entries[:last])
    whole.add(store.entries[last:])
    assert whole.state() == tail.state()
    del store.entries[-2]
    assert not MemoryJournal(store).confirms(tail.mark())
