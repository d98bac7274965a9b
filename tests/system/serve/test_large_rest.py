"""Partitions are added beside a rest that is too large to be read while others wait."""

import time
from collections.abc import Iterator
from contextlib import closing

import pytest

from belated.serve.domain.entries import Entry
from belated.serve.store.postgres import partitions, rest, room
from belated.serve.store.postgres.journal import PostgresJournal
from belated.serve.store.postgres.schema import migrate
from belated.testing.entries import created, decided, outcome
from belated.testing.journal_contract import readable
from tests.support.kills import killed_before
from tests.support.postgres import Cluster, Connection, connect
from tests.support.waiting import until

WRITTEN = 201


@pytest.fixture
def database(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A store with partitions of ten numbers. They have run out, and the rest has become too large."""
    monkeypatch.setattr(partitions, "SIZE", 10)
    monkeypatch.setattr(room, "RETRY_SECONDS", 0.0)
    with cluster.database("template0") as url:
        list(migrate(url))
        with closing(PostgresJournal(url)) as journal, monkeypatch.context() as patch:
            patch.setattr(room.Room, "look", lambda *_: None)
            journal.append([created("one")])
            journal.append([decided(1, number) for number in range(100)])
            journal.append([outcome(2 + number) for number in range(100)])
        monkeypatch.setattr(rest, "LARGEST_REST", -1)
        yield url


@pytest.fixture
def journal(database: str) -> Iterator[PostgresJournal]:
    with closing(PostgresJournal(database)) as opened:
        yield opened


@pytest.fixture
def other(database: str) -> Iterator[Connection]:
    with closing(connect(database)) as connection:
        yield connection


def in_rest(connection: Connection) -> int:
    [(count,)] = connection.execute("SELECT count(*) FROM journal_rest").fetchall()
    return int(count)


def append(journal: PostgresJournal, times: int, at_once: int = 1) -> None:
    """Append decisions, and then their outcomes."""
    for number in range(times):
        seqs = journal.append([decided(1, 1000 + number)] * at_once)
        journal.append([outcome(seq) for seq in seqs])


def test_a_server_adds_them_in_the_background(journal: PostgresJournal, other: Connection) -> None:
    end, before = partitions.end_of_last(other), in_rest(other)
    assert before > 100
    append(journal, 1)
    until(lambda: partitions.end_of_last(other) >= end + rest.AHEAD * partitions.SIZE and not rest.kept_free(other))
    for _ in range(20):
        append(journal, 2)
        time.sleep(0.05)
    assert len(readable(journal, 0, 1000)) == WRITTEN + 2 + 80
    assert in_rest(other) < before + 40, "there are partitions again"
    assert journal.check() == []


def test_the_rest_is_not_read_under_a_lock(other: Connection) -> None:
    said = list[str]()
    other.add_notice_handler(lambda notice: said.append(notice.message_primary or ""))
    other.execute("SET client_min_messages = debug1")
    end = partitions.end_of_last(other)
    rest.add_beside(other)
    implied = 'updated partition constraint for default partition "{}" is implied by existing constraints'
    for table in rest.COLUMNS:
        assert said.count(implied.format(table)) == rest.AHEAD
    assert partitions.end_of_last(other) > end
    assert rest.kept_free(other) == []


@pytest.mark.parametrize("is_dumped", [False, True])
def test_a_killed_server_leaves_nothing_that_refuses_entries(
    database: str, journal: PostgresJournal, other: Connection, monkeypatch: pytest.MonkeyPatch, *, is_dumped: bool
) -> None:
    """Wherever it was killed, and also if a backup then keeps others from changing the tables."""
    statements, size = 0, WRITTEN
    with monkeypatch.context() as patch:
        patch.setattr(room.Room, "look", lambda *_: None)
        while True:
            with closing(connect(database)) as killed:
                if not killed_before(statements, lambda killed=killed: rest.add_beside(killed)):  # type: ignore[misc]
                    break
            statements += 1
            with other.transaction():
                times = 6 if rest.kept_free(other) else 1  # past what was kept free
                if is_dumped:
                    other.execute("SELECT count(*) FROM journal")
                append(journal, times, at_once=5)
            size += 10 * times
    assert statements > 15
    found: list[Entry] = readable(journal, 0, 10_000)
    assert len(found) == size
    assert len({entry.seq for entry in found}) == size
    assert rest.kept_free(other) == []
    before, end = in_rest(other), partitions.end_of_last(other)
    assert end > journal.last()
    append(journal, 30)
    assert in_rest(other) < before + 60
    assert journal.check() == []


def test_a_backup_that_begins_meanwhile_delays_them(
    database: str, journal: PostgresJournal, other: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    statements = 0
    while not rest.kept_free(other):
        statements += 1
        with closing(connect(database)) as killed:
            assert killed_before(statements, lambda killed=killed: rest.add_beside(killed))  # type: ignore[misc]
    end = partitions.end_of_last(other)
    with other.transaction():
        other.execute("SELECT count(*) FROM journal")
        append(journal, 1)
        until(lambda: "no partition could be added" in caplog.text)
        append(journal, 40)
    until(lambda: journal.append([decided(1, 1)])[0] < partitions.end_of_last(other) > end)
    assert journal.check() == []


def test_a_close_ends_the_work(journal: PostgresJournal, database: str) -> None:
    with closing(connect(database)) as other, other.transaction():
        other.execute("LOCK TABLE journal_rest IN SHARE UPDATE EXCLUSIVE MODE")  # so that proving waits
        append(journal, 1)
        began = time.monotonic()
        journal.close()
        assert time.monotonic() < began + room.CLOSING + 0.5
    assert journal._room._beside is not None
    journal._room._beside.join(5.0)
    assert not journal._room._beside.is_alive()
