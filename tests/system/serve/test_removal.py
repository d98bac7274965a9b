"""Decisions and outcomes leave the journal in PostgreSQL, by dropping partitions where that is possible."""

import time
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from threading import Event, Thread
from typing import Any

import msgspec
import pytest

from belated.errors import StoreUnreachable
from belated.serve.domain.entries import Entry, EntryKind
from belated.serve.store.journal import Conflict, Removal
from belated.serve.store.postgres import partitions, removal
from belated.serve.store.postgres.journal import PostgresJournal
from belated.serve.store.postgres.schema import migrate
from belated.testing.entries import created, decided, event, outcome
from belated.testing.journal_contract import readable
from tests.support.postgres import Cluster, Connection, connect

LAST = 96
REMOVALS = [
    Removal(LAST, decisions_until=1),
    Removal(LAST, decisions_until=8),
    Removal(LAST, decisions_until=9),
    Removal(LAST, decisions_until=45),
    Removal(LAST, decisions_until=LAST),
    Removal(60, decisions_until=45),
    Removal(45, decisions_until=45),
    Removal(30, decisions_until=45),
    Removal(LAST, experiments=(1,)),
    Removal(50, experiments=(1, 2)),
    Removal(LAST, experiments=()),
    Removal(LAST, decisions=(4, 15, 16, 77)),
    Removal(40, decisions=(4, 15, 16, 1, 5000)),
]


@pytest.fixture
def database(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An empty store with partitions of ten numbers, from which three rows are deleted at a time."""
    monkeypatch.setattr(partitions, "SIZE", 10)
    monkeypatch.setattr(removal, "STEP", 3)
    monkeypatch.setattr(removal, "check_allowed", lambda *_: None)  # without a base, which the contract's tests have
    with cluster.database("template0") as url:
        list(migrate(url))
        yield url


@pytest.fixture
def journal(database: str) -> Iterator[PostgresJournal]:
    """Two experiments with decisions, outcomes, amendments and events, in ten partitions."""
    with closing(PostgresJournal(database)) as opened:
        opened.append([created("one"), created("two")])
        made: list[list[int]] = []
        for n in range(1, 16):
            made.append(opened.append([decided(1, n, key=f"k{n}", position=0), decided(2, n)]))
            opened.append([event(1, n), outcome(made[-1][0])])
            if n > 3:  # later, and often in another partition
                first, second = made[-4]
                opened.append([outcome(first, revision=1), of_second(outcome(second))])
        opened.append([outcome(made[1][0], revision=2), decided(1, 99), event(2, 1)])
        opened.append([decided(1, 100)] * (LAST - opened.last()))
        yield opened


def of_second(one: Entry) -> Entry:
    return msgspec.structs.replace(one, experiment=2)


@pytest.fixture
def other(database: str) -> Iterator[Connection]:
    with closing(connect(database)) as connection:
        yield connection


def goes(entry: Entry, what: Removal) -> bool:
    """Whether a removal takes this entry."""
    decision = entry.seq if entry.kind is EntryKind.DECIDED else entry.decision
    if decision is None or entry.seq > what.until:
        return False
    if what.experiments is not None:
        return entry.experiment in what.experiments
    return decision <= what.decisions_until or decision in what.decisions


def agree(journal: PostgresJournal) -> bool:
    """Whether the tables beside the journal agree with it."""
    return not [one for one in journal.check() if "its decision was never made" not in one]


@pytest.mark.parametrize("what", REMOVALS, ids=str)
def test_what_is_named_goes_and_the_rest_stays(journal: PostgresJournal, other: Connection, what: Removal) -> None:
    before, names = readable(journal, 0, 1000), [one.name for one in partitions.partitions(other)]
    left = [entry for entry in before if not goes(entry, what)]
    assert sum(journal.remove(what)) == len(before) - len(left)
    assert readable(journal, 0, 1000) == left
    assert agree(journal)
    assert list(filter(None, journal.remove(what))) == []
    dropped = [f"journal_{one}" for one in range(0, LAST, 10) if one + 9 <= min(what.decisions_until, what.until)]
    assert [one.name for one in partitions.partitions(other)] == [name for name in names if name not in dropped]
    for entry in left[2:]:
        if entry.decision:
            assert entry in journal.history(entry.decision)
    gone = {entry.seq for entry in before} - {entry.seq for entry in left}
    assert journal.find([*gone]) == {}
    keys = [(entry.experiment, entry.request or "") for entry in before if entry.request and entry.seq in gone]
    assert journal.requested(keys) == {}
    assert journal.named(["one", "two"]) == {"one": 1, "two": 2}
    assert len(journal.events(1, 0, 100)) == 16
    for number, (experiment, key) in enumerate(keys):
        journal.append([decided(experiment, 200 + number, key=key, position=0)])
    assert agree(journal)


def test_an_outcome_after_its_decision_went_is_unique_and_goes_with_the_next(
    journal: PostgresJournal, other: Connection
) -> None:
    last = journal.last()
    journal.append([outcome(4, revision=4), outcome(27, revision=5), outcome(28, revision=6)])
    assert sum(journal.remove(Removal(last, decisions_until=last))) > 0
    later = [entry.decision for entry in readable(journal, last, 10)]
    assert later == [4, 27, 28]
    for twin in (outcome(4, revision=4), outcome(27, revision=5)):
        with pytest.raises(Conflict, match="outcome_places_rest"):
            journal.append([twin])
    assert agree(journal)
    assert list(filter(None, journal.remove(Removal(last + 3, decisions_until=last)))) == [3]
    assert other.execute("SELECT count(*) FROM outcome_places").fetchall() == [(0,)]


@pytest.mark.parametrize("steps", [1, 4, 9, 14, 1000])
def test_an_interrupted_removal_is_ended_by_the_next(
    journal: PostgresJournal, other: Connection, monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    what = Removal(LAST, decisions_until=65)
    left = [entry for entry in readable(journal, 0, 1000) if not goes(entry, what)]
    removed = journal.remove(what)
    with monkeypatch.context() as patch:
        patch.setattr(removal, "_drop_left_over", lambda *_: None)  # as if it was killed before it drops the tables
        for _ in islice(removed, steps):
            pass
    list(journal.remove(what))
    assert readable(journal, 0, 1000) == left
    assert journal.check() == []
    assert other.execute(partitions.LEFT_OVER).fetchall() == []


def test_a_backup_delays_a_removal_and_not_the_writers(
    journal: PostgresJournal, other: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partitions, "PATIENCE", 1.0)
    before, waits, is_done = journal.read(0, 1000), list[float](), Event()
    database = journal._link.url

    def write() -> None:
        with closing(PostgresJournal(database)) as writer:
            while not is_done.is_set():
                began = time.monotonic()
                writer.append([decided(2, 1)])
                waits.append(time.monotonic() - began)
                time.sleep(0.01)

    thread = Thread(target=write)
    with other.transaction():
        other.execute("SELECT count(*) FROM journal")
        thread.start()
        with pytest.raises(StoreUnreachable, match="an open transaction uses the journal"):
            list(journal.remove(Removal(LAST, decisions_until=30)))
    is_done.set()
    thread.join()
    assert len(waits) > 20
    assert max(waits) < 0.5, "nobody waits until the backup ends"
    what = Removal(LAST, decisions_until=30)
    list(journal.remove(what))
    assert journal.read(0, len(before)) == [entry for entry in before if not goes(entry, what)]
    assert journal.last() == LAST + len(waits)


def test_outcomes_that_came_after_a_base_go_with_the_next_one(database: str) -> None:
    """An archive settles open decisions after its base. So the next one finds outcomes whose decision is gone."""
    with closing(PostgresJournal(database)) as journal:
        journal.append([created("one")])
        made = journal.append([decided(1, n) for n in range(2, 31)])
        told = [seq for decision in (made[3], made[20]) for seq in journal.append([outcome(decision)])]
        journal.append([decided(1, n) for n in range(30)])
        list(
            journal.remove(Removal(30, decisions_until=made[20]))
        )  # the partition of one decision, the row of the other
        assert [entry.seq for entry in readable(journal, 0, 1000) if entry.decision] == told
        list(journal.remove(Removal(LAST, decisions_until=49)))  # drops the partitions of both outcomes
        assert [entry for entry in readable(journal, 0, 1000) if entry.decision] == []
        assert journal.check() == []


@pytest.mark.parametrize("which", [{"decisions_until": 60}, {"experiments": (1,)}, {"decisions": tuple(range(2, 12))}])
def test_decisions_with_many_outcomes_go_in_small_steps(
    database: str, monkeypatch: pytest.MonkeyPatch, which: dict[str, Any]
) -> None:
    """While a transaction is open, other servers do not see what comes after it."""
    monkeypatch.setattr(partitions, "SIZE", 1_000)
    monkeypatch.setattr(removal, "STEP", 100)
    monkeypatch.setattr(removal, "MOST_ROWS", 10)
    with closing(PostgresJournal(database)) as journal:
        journal.append([created("one")])
        made = journal.append([decided(1, n) for n in range(10)])
        for revision in range(7):
            journal.append([outcome(decision, revision=revision) for decision in made])
        steps = list(journal.remove(Removal(LAST, **which)))
        assert sum(steps) == 80
        assert max(steps) == 8
        assert [entry.seq for entry in readable(journal, 0, 1000)] == [1]
        assert journal.check() == []


@pytest.mark.parametrize("is_killed", [False, True])
def test_report_ids_are_known_until_their_decisions_are_gone(
    database: str, monkeypatch: pytest.MonkeyPatch, is_killed: bool
) -> None:
    """Otherwise a retry between the two would be taken for another outcome, and count a second time."""
    places: dict[int, tuple[int, bytes]] = {}
    opened = PostgresJournal(database)
    what, detach, detached = Removal(39, decisions_until=29), removal._detach, list[int]()

    def look_and_detach(connection: Connection, one: partitions.Partition, until: int) -> None:
        own = [decision for decision in places if one.first <= decision < one.end]
        assert opened.find(own).keys() == set(own)
        assert opened.aliased([places[decision] for decision in own]).keys() == {places[one] for one in own}
        detached.extend(own)
        detach(connection, one, until)

    with closing(opened) as store:
        store.append([created("one")])
        while store.last() < LAST:
            [decision] = store.append([decided(1, store.last())])
            places[decision] = 1, b"report %d" % decision
            store.append([msgspec.structs.replace(outcome(decision), alias=places[decision][1], position=0)])
        with monkeypatch.context() as patch:
            patch.setattr(removal, "_detach", look_and_detach)
            if is_killed:
                patch.setattr(removal, "_drop_left_over", lambda *_: None)
            list(store.remove(what))
        if is_killed:
            list(store.remove(what))
        assert detached == [decision for decision in places if decision <= 29]
        left = {place for decision, place in places.items() if decision > 29}
        assert store.aliased([*places.values()]).keys() == left
        assert store.check() == []
        for decision in detached:  # nothing is in the way of a new one
            store.append([msgspec.structs.replace(decided(1, decision), alias=places[decision][1], position=0)])
