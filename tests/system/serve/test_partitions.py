"""The journal in PostgreSQL has partitions. What is unique holds across them, and old ones are dropped."""

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from threading import Thread
from typing import Any

import pytest

from belated.serve.domain.entries import Entry
from belated.serve.domain.history import Mark, Tail, place_of
from belated.serve.store.journal import Conflict
from belated.serve.store.postgres import partitions, room
from belated.serve.store.postgres.journal import PostgresJournal
from belated.serve.store.postgres.schema import migrate
from belated.testing.entries import created, decided, event, filled, outcome
from belated.testing.journal_contract import readable
from tests.support.journals import Slow
from tests.support.postgres import Cluster, Connection, connect

SIZE = 10


@pytest.fixture
def database(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An empty store whose partitions hold few entries."""
    monkeypatch.setattr(partitions, "SIZE", SIZE)
    with cluster.database("template0") as url:
        list(migrate(url))
        yield url


@pytest.fixture
def other(database: str) -> Iterator[Connection]:
    """Another connection to the store."""
    with closing(connect(database)) as connection:
        yield connection


def names(connection: Connection) -> list[str]:
    return [one.name for one in partitions.partitions(connection)]


def held(connection: Connection) -> dict[str, int]:
    """How many entries each partition holds."""
    counted = "SELECT tableoid::regclass::text, count(*) FROM journal GROUP BY tableoid"
    return dict(connection.execute(counted).fetchall())


# -- partitions are made ahead of time -----------------------------------------------------------------------------


def test_every_entry_finds_its_partition(journal: PostgresJournal, other: Connection) -> None:
    for number in range(95):
        journal.append([decided(1, number + 1, key=f"k{number}", position=0)])
    found = held(other)
    assert found == {"journal_0": 9, **{f"journal_{first}": 10 for first in range(10, 90, 10)}, "journal_90": 7}
    end = partitions.partitions(other)[-1].end
    assert 96 + 2 * SIZE <= end <= 96 + 4 * SIZE
    assert [entry.seq for entry in readable(journal, 0, 100)] == list(range(1, 97))
    assert journal.check() == []


def test_an_entry_without_a_partition_goes_into_the_rest(
    journal: PostgresJournal, other: Connection, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A backup holds a lock for hours. No append waits for it."""
    monkeypatch.setattr(room, "RETRY_SECONDS", 0.0)
    with other.transaction():
        other.execute("SELECT count(*) FROM journal")
        slowest = 0.0
        for number in range(60):
            began = time.monotonic()
            journal.append([decided(1, number + 1)])
            slowest = max(slowest, time.monotonic() - began)
        assert held(other)["journal_rest"] == 61 - 39
    assert slowest < 1.0
    assert "no partition could be added" in caplog.text
    journal.append([decided(1, number) for number in range(70, 130)])
    assert held(other)["journal_rest"] < 90, "there are partitions again"
    assert [entry.seq for entry in readable(journal, 0, 200)] == list(range(1, journal.last() + 1))
    assert journal.check() == []


def test_only_one_connection_adds_partitions_at_a_time(
    database: str, journal: PostgresJournal, other: Connection
) -> None:
    with other.transaction():
        other.execute(f"SELECT pg_advisory_xact_lock({partitions.PARTITION_LOCK})".encode())
        before = names(other)
        journal.append([decided(1, number) for number in range(30)])
        assert names(other) == before
    with closing(PostgresJournal(database)) as another:
        another.append([decided(1, 40)])
    assert len(names(other)) > len(before)


def test_a_copy_has_partitions(cluster: Cluster, journal: PostgresJournal) -> None:
    journal.append([decided(1, number) for number in range(95)])
    journal.append([outcome(2 + number) for number in range(50)])
    with cluster.database("template0") as url:
        list(migrate(url))
        with closing(PostgresJournal(url)) as copy, closing(connect(url)) as other:
            copy.fill(iter(readable(journal, 0, 1000)), [], [])
            assert "journal_rest" not in held(other)
            assert len(held(other)) == 15
            assert copy.check() == []
            assert copy.append([decided(1, 100)]) == [147]


def test_numbers_leap_while_servers_write(database: str, journal: PostgresJournal, other: Connection) -> None:
    """No number is given out twice, and a leap never goes back."""
    written = list[int]()

    def write() -> None:
        with closing(PostgresJournal(database)) as writer:
            for number in range(60):
                written.extend(writer.append([decided(1, number), decided(1, number)]))

    writers = [Thread(target=write) for _ in range(3)]
    for writer in writers:
        writer.start()
    for first in (1000, 5000, 4000):
        partitions.leap(other, first)
        assert other.execute("SELECT last_value FROM places").fetchall() >= [(first - 1,)]
    for writer in writers:
        writer.join()
    assert len({*written}) == 360
    assert max(written) >= 5000
    assert journal.check() == []


# -- what is unique holds across partitions -------------------------------------------------------------------------

TWINS: dict[str, Callable[[], Entry]] = {
    "name": lambda: created("two"),
    "request": lambda: decided(1, 1, key="k", position=0),
    "outcome": lambda: outcome(2),
    "event": lambda: event(1, 1),
}


@pytest.mark.parametrize("twin", TWINS.values(), ids=TWINS)
@pytest.mark.parametrize("is_committed", [True, False])
def test_of_two_that_race_in_different_partitions_one_wins(
    database: str, journal: PostgresJournal, other: Connection, twin: Callable[[], Entry], *, is_committed: bool
) -> None:
    journal.append([decided(1, 5)])
    slow, results = Slow(database), list[Any]()
    [first] = slow.append(twin())
    other.execute(f"SELECT setval('places', {first + 2 * SIZE})".encode())

    def write() -> None:
        try:
            results.extend(journal.append([twin()]))
        except Conflict as error:
            results.append(error)

    writer = Thread(target=write)
    writer.start()
    time.sleep(0.1)
    assert results == [], "it waits for the other one"
    (slow.commit if is_committed else slow.roll_back)()
    slow.close()
    writer.join()
    [result] = results
    assert isinstance(result, Conflict) if is_committed else result == first + 2 * SIZE + 1
    assert journal.check() == []
    assert sum(held(other).values()) == 3


def test_what_is_deleted_or_changed_by_hand_is_free_again(journal: PostgresJournal, other: Connection) -> None:
    written = [decided(1, 1, key="k", position=0), outcome(2), created("two"), event(1, 1)]
    journal.append([decided(1, 9)])
    journal.append(written)
    other.execute("DELETE FROM journal WHERE seq > 2")
    assert journal.check() == []
    assert journal.append(written) == [7, 8, 9, 10]
    other.execute("UPDATE journal SET request = NULL WHERE seq = 7")
    assert journal.requested([(1, "k")]) == {}
    assert journal.append(written[:1]) == [11]
    assert journal.check() == []


# -- damage -----------------------------------------------------------------------------------------------------------

DAMAGED = {
    "ALTER TABLE journal DISABLE TRIGGER places_of_added": "the trigger places_of_added of the journal is missing or",
    "DROP TRIGGER places_of_gone ON journal": "the trigger places_of_gone of the journal is missing or disabled",
    "DELETE FROM request_places": "entry 12: it has no row in request_places",
    "DELETE FROM outcome_places WHERE seq = 9": "entry 9: it has no row in outcome_places",
    "DELETE FROM name_places": "entry 1: it has no row in name_places",
    "DELETE FROM event_places": "entry 13: it has no row in event_places",
    "UPDATE request_places SET seq = 3": "request_places has a row for entry 3, which does not fit it",
    "INSERT INTO outcome_places VALUES (5, 77, 8)": "outcome_places has a row for entry 77, which does not fit it",
    "ALTER TABLE journal DETACH PARTITION journal_rest": "the table journal has no default partition",
    "ALTER TABLE journal DETACH PARTITION journal_30": "the table journal_30 is not attached to the journal",
}


@pytest.mark.parametrize(("statement", "said"), DAMAGED.items(), ids=DAMAGED)
def test_damage_is_found(database: str, other: Connection, statement: str, said: str) -> None:
    with closing(PostgresJournal(database)) as journal:
        filled(journal)
        journal.append([decided(1, 9, key="k", position=0), event(1, 1)])
        assert journal.check() == []
        other.execute(statement.encode())
        assert any(problem.startswith(said) for problem in journal.check()), journal.check()


# -- many partitions --------------------------------------------------------------------------------------------------

LOOK_UPS: dict[str, Callable[[PostgresJournal, Mark], Any]] = {
    "find": lambda journal, _: journal.find([402, 403]),
    "requested": lambda journal, _: journal.requested([(1, "k402")]),
    "history": lambda journal, _: journal.history(402),
    "named": lambda journal, _: journal.named(["one"]),
    "decisions": lambda journal, _: journal.decisions(1, 490, 5),
    "outcomes": lambda journal, _: journal.outcomes(1, 490, 5),
    "read": lambda journal, _: journal.read(490, 5),
    "append": lambda journal, mark: journal.append([decided(1, 1000), outcome(300)], mark),
}
SCANNED = """
SELECT relname, coalesce(seq_scan, 0), coalesce(seq_scan, 0) + coalesce(idx_scan, 0) FROM pg_stat_user_tables
WHERE schemaname = 'belated'
"""


def mark_of(journal: PostgresJournal) -> Mark:
    """What a server knows that has applied the last entries and has looked up some others."""
    tail = Tail()
    for entry in readable(journal, 495, 10):
        tail.add([entry])
    return tail.mark()._replace(since=495, also=tuple(map(place_of, readable(journal, 301, 2))))


def scanned(journal: PostgresJournal) -> dict[str, tuple[int, int]]:
    """How often each table was read from end to end, and how often at all."""
    journal._rows("SELECT pg_stat_force_next_flush()")
    return {name: (whole, all) for name, whole, all in journal._rows(SCANNED)}


def test_a_look_up_reads_few_of_many_partitions(journal: PostgresJournal, other: Connection) -> None:
    """Also if its plan was made when all of them were known to be empty."""
    other.execute("ANALYZE")
    for first in range(0, 300, 10):
        journal.append([decided(1, first + n, key=f"k{2 + first + n}", position=0) for n in range(10)])
    for first in range(0, 200, 10):
        journal.append([outcome(2 + first + n) for n in range(10)])
    assert len(names(other)) > 50
    mark = mark_of(journal)
    for name, look_up in LOOK_UPS.items():
        before = scanned(journal)
        look_up(journal, mark)
        after = scanned(journal)
        partitioned = [table for table in after if table.startswith(("journal", "outcome_places"))]
        assert len([table for table in partitioned if after[table][1] > before[table][1]]) <= 10, name
        whole = {table for table in after if after[table][0] > before[table][0]}
        assert whole <= {"name_places", "event_places", "bases"}, name
