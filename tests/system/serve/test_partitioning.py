"""A journal of an older release gets partitions while servers of that release go on."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from threading import Event, Thread

import pytest

from belated.serve.domain.entries import Entry
from belated.serve.store.journal import Conflict, Removal
from belated.serve.store.opening import open_journal
from belated.serve.store.postgres import partitioning, partitions, removal, schema
from belated.serve.store.postgres.journal import PostgresJournal
from belated.testing.entries import created, decided, event, filled, outcome
from belated.testing.journal_contract import JournalContract, OpenStore, readable
from tests.support.older_release import become_older, older_store
from tests.support.postgres import Cluster, connect
from tests.system.serve.test_stores import KILLED

DONE = ["index outcomes", "index in_force", "schema version 4", "schema version 5", "schema version 6"]


@pytest.fixture
def older(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of a store that an older release has made."""
    with cluster.database("template0") as url:
        older_store(url, monkeypatch)
        yield url


def write_all_kinds(url: str, monkeypatch: pytest.MonkeyPatch) -> list[Entry]:
    """Write with the older release."""
    with monkeypatch.context() as patch:
        become_older(patch)
        with closing(PostgresJournal(url)) as journal:
            filled(journal)
            journal.append([decided(1, 9, key="k", position=0), event(1, 1)])
            return readable(journal, 0, 100)


class TestAnOlderReleaseOnPartitions(JournalContract):
    """It works on a store that was migrated."""

    @pytest.fixture
    def open_store(self, database: str, monkeypatch: pytest.MonkeyPatch) -> OpenStore:
        become_older(monkeypatch)
        return lambda: open_journal(database)


def test_every_entry_is_kept_and_what_is_unique_stays_unique(older: str, monkeypatch: pytest.MonkeyPatch) -> None:
    written = write_all_kinds(older, monkeypatch)
    assert list(schema.migrate(older)) == DONE
    with closing(PostgresJournal(older)) as journal:
        assert readable(journal, 0, 100) == written
        assert journal.check() == []
        for twin in (created("two"), decided(1, 1, key="k", position=0), outcome(3), event(1, 1)):
            with pytest.raises(Conflict):
                journal.append([twin])
        assert [entry.seq for entry in journal.history(3)] == [8, 9]
        assert journal.named(["two"]) == {"two": 2}
        assert [entry.seq for entry in journal.requested([(1, "k")])[1, "k"]] == [12]
        assert journal.append([decided(1, 10)])[0] > 13


@pytest.mark.parametrize("many", [0, 10**6])
def test_it_is_migrated_while_an_older_release_writes(older: str, monkeypatch: pytest.MonkeyPatch, many: int) -> None:
    """Also if the bounds of the first partition are checked beforehand, as those of a large journal are."""
    write_all_kinds(older, monkeypatch)
    monkeypatch.setattr(partitioning, "PIECE", 7)
    monkeypatch.setattr(partitioning, "MANY", many)
    become_older(monkeypatch)
    is_done, problems = Event(), list[BaseException]()

    def write() -> None:
        with closing(PostgresJournal(older)) as journal:
            number = 0
            try:
                while not is_done.is_set() or number % 50:
                    number += 1
                    [seq] = journal.append([decided(1, number, key=f"n{number}", position=0)])
                    journal.append([outcome(seq)])
                    assert journal.find([seq])[seq].outcome
                    assert journal.requested([(1, f"n{number}")])
            except BaseException as error:  # noqa: BLE001
                problems.append(error)

    writers = [Thread(target=write)]
    for writer in writers:
        writer.start()
    assert list(schema.migrate(older)) == DONE
    is_done.set()
    for writer in writers:
        writer.join()
    assert problems == []
    with closing(PostgresJournal(older)) as journal:
        assert journal.check() == []
        assert journal.last() >= 13 + 100


def test_a_migration_of_a_journal_that_is_killed_anywhere_can_be_run_again(
    older: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Meanwhile, a server of the older release writes many times as much as there was."""
    written, kills = write_all_kinds(older, monkeypatch), 3
    while True:
        command = [sys.executable, "-c", f"{SMALL}{KILLED}", older, str(kills)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL, done.stderr
        kills += 11
        with monkeypatch.context() as patch:
            become_older(patch)
            with closing(PostgresJournal(older)) as journal:
                seqs = journal.append([decided(1, kills + number) for number in range(20)])
                written += readable(journal, seqs[0] - 1, 100)
    assert kills > 30
    with closing(PostgresJournal(older)) as journal:
        assert readable(journal, 0, 1000) == written
        assert journal.check() == []


SMALL = """
from belated.serve.store.postgres import partitioning, partitions
partitioning.PIECE, partitioning.MANY, partitions.SIZE = 40, 0, 10
"""


def test_a_migration_that_ends_before_the_swap_leaves_nothing_that_refuses_entries(
    older: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_all_kinds(older, monkeypatch)
    monkeypatch.setattr(partitions, "SIZE", 10)
    monkeypatch.setattr(partitioning, "MANY", 0)
    with monkeypatch.context() as patch:
        patch.delattr(partitioning, "_swap")  # as if it was killed here
        with pytest.raises(NameError):
            list(schema.migrate(older))
    with monkeypatch.context() as patch, closing(connect(older)) as other:
        become_older(patch)
        checks = "SELECT count(*) FROM pg_constraint WHERE conname = 'first_partition'"
        assert other.execute(checks.encode()).fetchall() == [(2,)]
        with closing(PostgresJournal(older)) as journal:
            journal.append([decided(1, number) for number in range(10, 100)])
            journal.append([outcome(14 + number) for number in range(90)])
    assert list(schema.migrate(older)) == DONE[2:]
    with closing(PostgresJournal(older)) as journal:
        assert len(readable(journal, 0, 1000)) == 13 + 2 * 90
        assert journal.check() == []


def test_numbers_leap_over_those_that_the_first_partition_has_too_many(
    older: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = write_all_kinds(older, monkeypatch)
    monkeypatch.setattr(partitions, "SIZE", 10)
    monkeypatch.setattr(partitioning, "MANY", 0)
    assert list(schema.migrate(older)) == DONE
    with closing(PostgresJournal(older)) as journal, closing(connect(older)) as other:
        assert partitions.partitions(other)[0] == ("journal_0", 0, partitions.FAR + 20)
        seqs = [journal.append([decided(1, 20 + number), outcome(3, revision=2 + number)])[0] for number in range(20)]
        near = [seq for seq in seqs if seq < partitions.FAR]
        assert near == list(range(14, near[-1] + 1, 2))
        assert 20 <= near[-1] < 20 + 2 * 10
        assert seqs[len(near) :] == [partitions.FAR + 20 + 2 * number for number in range(20 - len(near))]
        assert journal.last() == seqs[-1] + 1
        assert [entry.seq for entry in readable(journal, 13, 100)] == sorted({*seqs, *(seq + 1 for seq in seqs)})
        assert readable(journal, 0, 100)[:13] == written
        assert [entry.seq for entry in journal.history(3)][2:] == [seq + 1 for seq in seqs]
        assert other.execute("SELECT count(*) FROM journal_rest").fetchall() == [(0,)]
        assert journal.check() == []
        monkeypatch.setattr(removal, "check_allowed", lambda *_: None)
        left = [entry.seq for entry in readable(journal, 0, 100) if entry.body or entry.seq in seqs[-8:]]
        removed = list(journal.remove(Removal(journal.last(), decisions_until=seqs[-9])))
        assert [entry.seq for entry in readable(journal, 0, 100)] == left  # all outcomes are of decision 3
        assert len(removed) < 20, "it does not go through the gap"
        assert partitions.partitions(other)[0].first == partitions.FAR + 20
        assert journal.check() == []


def test_the_rest_takes_all_entries_after_a_migration_of_a_large_journal(
    older: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A backup keeps partitions from being added for long."""
    write_all_kinds(older, monkeypatch)
    monkeypatch.setattr(partitions, "SIZE", 10)
    monkeypatch.setattr(partitioning, "MANY", 0)
    assert list(schema.migrate(older)) == DONE
    with closing(PostgresJournal(older)) as journal, closing(connect(older)) as backup:
        while journal.append([decided(1, 20)])[0] < partitions.FAR:
            pass
        with backup.transaction():
            backup.execute("SELECT count(*) FROM journal")
            for seq in journal.append([decided(1, number) for number in range(100)]):
                journal.append([outcome(seq)])
        [(count,)] = backup.execute("SELECT count(*) FROM journal_rest").fetchall()
        assert count > 100
        assert journal.check() == []


def test_the_progress_of_a_large_journal_is_told(older: str, monkeypatch: pytest.MonkeyPatch) -> None:
    write_all_kinds(older, monkeypatch)
    monkeypatch.setattr(partitioning, "PIECE", 1)
    monkeypatch.setattr(partitioning, "SAID_EVERY", 5)
    said = [f"entries up to {number} of 13 are ready for partitions" for number in (0, 5, 10)]
    assert list(schema.migrate(older)) == [*DONE[:2], *said, *DONE[2:]]


def test_a_reader_delays_the_migration_and_not_the_writers(older: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long transaction of a reader makes the migration fail, and the next one goes on."""
    written = write_all_kinds(older, monkeypatch)
    monkeypatch.setattr(partitions, "PATIENCE", 0.5)
    with closing(connect(older)) as reader:
        with reader.transaction():
            reader.execute("SELECT count(*) FROM journal")
            with pytest.raises(Exception, match="an open transaction uses the journal"):
                list(schema.migrate(older))
        assert list(schema.migrate(older)) == DONE[2:]
    with closing(PostgresJournal(older)) as journal:
        assert readable(journal, 0, 100) == written
