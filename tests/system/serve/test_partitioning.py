"""A journal of an older release gets partitions while servers of that release go on."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from threading import Event, Thread

import pytest

from belated.serve.domain.entries import Entry
from belated.serve.store.journal import Conflict
from belated.serve.store.opening import open_journal
from belated.serve.store.postgres import partitioning, partitions, schema
from belated.serve.store.postgres.journal import PostgresJournal
from belated.testing.entries import created, decided, event, filled, outcome
from belated.testing.journal_contract import JournalContract, OpenStore, readable
from tests.support.older_release import become_older, older_store
from tests.support.postgres import Cluster, connect
from tests.system.serve.test_stores import KILLED

DONE = ["index outcomes", "index in_force", f"schema version {schema.SCHEMA_VERSION}"]


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
    written, kills = write_all_kinds(older, monkeypatch), 3
    while True:
        command = [sys.executable, "-c", f"{SMALL}{KILLED}", older, str(kills)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
        if done.returncode == 0:
            break
        kills += 11
        with closing(connect(older)) as connection:
            connection.execute("SELECT count(*) FROM journal")
    assert kills > 40
    with closing(PostgresJournal(older)) as journal:
        assert readable(journal, 0, 100) == written
        assert journal.check() == []


SMALL = """
from belated.serve.store.postgres import partitioning
partitioning.PIECE, partitioning.MANY = 5, 0
"""


def test_the_progress_of_a_large_journal_is_told(older: str, monkeypatch: pytest.MonkeyPatch) -> None:
    write_all_kinds(older, monkeypatch)
    monkeypatch.setattr(partitioning, "PIECE", 1)
    monkeypatch.setattr(partitioning, "SAID_EVERY", 5)
    said = [f"entries up to {number} of 13 are ready for partitions" for number in (0, 5, 10)]
    assert list(schema.migrate(older)) == [*DONE[:-1], *said, DONE[-1]]


def test_a_reader_delays_the_migration_and_not_the_writers(older: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long transaction of a reader makes the migration fail, and the next one goes on."""
    written = write_all_kinds(older, monkeypatch)
    monkeypatch.setattr(partitions, "PATIENCE", 0.5)
    with closing(connect(older)) as reader:
        with reader.transaction():
            reader.execute("SELECT count(*) FROM journal")
            with pytest.raises(Exception, match="an open transaction uses the journal"):
                list(schema.migrate(older))
        assert list(schema.migrate(older)) == DONE[-1:]
    with closing(PostgresJournal(older)) as journal:
        assert readable(journal, 0, 100) == written
