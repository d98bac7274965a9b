"""Readers follow a journal while others write. They get every entry in order, and none appears behind them later."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from random import Random
from threading import Event, Thread
from typing import Any

import pytest

from belated.errors import StoreUnreachable
from belated.serve.domain.entries import Entry
from belated.serve.store import journal as journals
from belated.serve.store.journal import Journal, entries
from belated.serve.store.opening import open_journal
from belated.serve.store.postgres import journal as postgres
from belated.serve.store.postgres.journal import Horizon, PostgresJournal
from belated.serve.store.sqlite import schema as sqlite_schema
from belated.serve.store.sqlite.journal import SQLiteJournal
from belated.testing.entries import created, decided
from tests.support.journals import Slow
from tests.support.postgres import Cluster, connect
from tests.support.power import seeded


@pytest.fixture
def slow(database: str, journal: PostgresJournal) -> Iterator[Slow]:  # noqa: ARG001  # its connection is closed first
    writer = Slow(database)
    yield writer
    writer.close()


def seqs_of(page: list[Entry]) -> list[int]:
    return [entry.seq for entry in page]


# -- a long transaction ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("ends", "then"), [(Slow.commit, [2, 3, 4]), (Slow.roll_back, [3, 4])])
def test_a_place_drawn_early_and_committed_late_is_not_passed(
    journal: Journal, slow: Slow, ends: Callable[[Slow], None], then: list[int]
) -> None:
    assert seqs_of(journal.read(0, 10)) == [1]
    assert slow.append(decided(1, 1)) == [2]
    assert journal.append([decided(1, 2)]) == [3]
    assert journal.append([decided(1, 3)]) == [4]
    for _ in range(3):
        assert journal.read(1, 10) == []
        with closing(journal.reader()) as reader:
            assert reader.read(0, 10) == [], "a new reader does not see more"
    assert journal.last() == 4
    assert [found.decision.seq for found in journal.decisions(1, 0, 10)] == [3, 4]
    ends(slow)
    assert seqs_of(journal.read(1, 10)) == then
    assert seqs_of(journal.read(0, 2)) == [1, then[0]]


def test_what_is_below_is_read_while_a_transaction_goes_on(journal: Journal, slow: Slow) -> None:
    journal.append([decided(1, 1)])
    reader = journal.reader()
    assert seqs_of(reader.read(0, 1)) == [1]
    slow.append(decided(1, 2))
    journal.append([decided(1, 3)])
    assert seqs_of(reader.read(1, 10)) == [2]
    assert reader.read(2, 10) == []
    slow.commit()
    assert seqs_of(reader.read(2, 10)) == [3, 4]
    reader.close()


def test_a_transaction_that_draws_late_is_not_passed(journal: Journal, slow: Slow) -> None:
    slow.take_xid()
    assert journal.append([decided(1, 1)]) == [2]
    assert journal.read(1, 10) == []
    assert slow.append(decided(1, 2)) == [3]
    assert journal.append([decided(1, 3)]) == [4]
    assert journal.read(1, 10) == []
    slow.commit()
    assert seqs_of(journal.read(1, 10)) == [2, 3, 4]


def test_the_end_of_one_of_two_transactions_frees_what_lay_before_the_other(database: str, journal: Journal) -> None:
    first, second = Slow(database), Slow(database)
    first.append(decided(1, 1))
    journal.append([decided(1, 2)])
    assert journal.read(1, 10) == []  # from now on it may read up to 3 once `first` has ended
    second.append(decided(1, 3))
    journal.append([decided(1, 4)])
    assert journal.read(1, 10) == []
    first.commit()
    assert seqs_of(journal.read(1, 10)) == [2, 3]
    assert journal.read(3, 10) == []
    second.commit()
    assert seqs_of(journal.read(3, 10)) == [4, 5]
    first.close()
    second.close()


def test_of_two_open_transactions_the_later_one_ends_first(database: str, journal: Journal) -> None:
    """No other transaction has ended since they began, so a snapshot's xmax would still be the old one."""
    first, second = Slow(database), Slow(database)
    assert (first.append(decided(1, 1)), second.append(decided(1, 2))) == ([2], [3])
    assert journal.read(1, 10) == []
    second.commit()
    assert journal.read(1, 10) == []
    first.commit()
    assert seqs_of(journal.read(1, 10)) == [2, 3]
    first.close()
    second.close()


def test_who_only_reads_is_in_nobodys_way(journal: Journal, slow: Slow) -> None:
    slow.connection.execute("SELECT count(*) FROM journal")
    journal.append([decided(1, 1)])
    assert seqs_of(journal.read(1, 10)) == [2]


def test_a_transaction_has_its_xid_before_it_draws(cluster: Cluster, database: str, journal: Journal) -> None:
    """White box test. An append that waits for the sequence already has its xid."""
    found: list[Any] = []
    with closing(connect(database)) as blocker, closing(cluster.admin()) as admin:
        blocker.execute("BEGIN")
        blocker.execute("ALTER SEQUENCE places INCREMENT 1")
        writer = Thread(target=lambda: found.append(journal.append([decided(1, 1)])))
        writer.start()
        waiting = "SELECT backend_xid IS NOT NULL FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        while not (rows := admin.execute(waiting).fetchall()):
            time.sleep(0.01)
        blocker.execute("ROLLBACK")
        writer.join()
    assert rows == [(True,)]
    assert found == [[2]]


@pytest.mark.parametrize("most", [1, 2, 100])
def test_the_horizon_of_many_looks(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "MOST_WAITING", most)
    horizon = Horizon()
    horizon.look(10, 100, 100)
    assert (horizon.seq, horizon.is_clear) == (10, True)
    for step in range(1, 6):  # transaction 100 stays open while others begin
        horizon.look(10 + step, 100, 100 + step)
        assert (horizon.seq, horizon.is_clear) == (10, False)
    horizon.look(20, 102, 106)
    assert horizon.seq == {1: 10, 2: 11, 100: 12}[most]
    horizon.look(21, 106, 106)
    assert (horizon.seq, horizon.is_clear) == (21, True)


def test_whoever_wants_all_up_to_a_place_waits_for_it(
    journal: Journal, slow: Slow, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow.append(decided(1, 1))
    journal.append([decided(1, 2)])
    assert seqs_of(list(entries(journal))) == []
    monkeypatch.setattr(journals, "TRANSACTION_TIMEOUT", 0.1)
    with pytest.raises(StoreUnreachable, match="hides the entries after 0"):
        list(entries(journal, until=3))
    monkeypatch.setattr(journals, "TRANSACTION_TIMEOUT", 60.0)
    monkeypatch.setattr(time, "sleep", lambda _: slow.commit())
    assert seqs_of(list(entries(journal, until=3))) == [1, 2, 3]
    assert seqs_of(list(entries(journal, until=99))) == [1, 2, 3]


# -- many writers ------------------------------------------------------------------------------------------------


def follow(journal: Journal, is_over: Event) -> list[Entry]:
    """Read all entries as they come. Reads once more after the last write."""
    seen: list[Entry] = []
    while True:
        was_over = is_over.is_set()
        page = journal.read(seen[-1].seq if seen else 0, 7)
        seen += page
        if was_over and not page:
            return seen


def tailed(store: str, writers: list[Callable[[], None]]) -> tuple[list[Entry], list[Entry]]:
    """Return what two followers read while the writers worked."""
    is_over, tails = Event(), list[list[Entry]]()

    def read() -> None:
        with closing(open_journal(store)) as journal:
            tails.append(follow(journal, is_over))

    readers, threads = [Thread(target=read) for _ in range(2)], [Thread(target=writer) for writer in writers]
    for thread in readers + threads:
        thread.start()
    for thread in threads:
        thread.join()
    is_over.set()
    for thread in readers:
        thread.join()
    return tails[0], tails[1]


def hesitate(url: str, random: Random, name: int) -> None:
    """Append in transactions that pause before, between and after their inserts. Some are rolled back."""
    writer = Slow(url)
    for number in range(25):
        if random.random() < 0.5:
            writer.take_xid()
            time.sleep(random.random() * 0.01)
        for part in range(random.randint(1, 3)):
            writer.append(*[decided(1, number, key=f"{name}-{number}-{part}", position=n) for n in range(3)])
            time.sleep(random.random() * 0.01)
        (writer.roll_back if random.random() < 0.2 else writer.commit)()
    writer.close()


@pytest.mark.parametrize("seed", range(2))
def test_a_tail_is_the_journal_however_transactions_overlap(database: str, journal: Journal, seed: int) -> None:
    def hurry() -> None:
        with closing(PostgresJournal(database)) as own:
            for number in range(150):
                own.append([decided(1, number)] * 2)

    writers = [partial(hesitate, database, seeded(10 * seed + n), n) for n in range(4)]
    first, second = tailed(database, [*writers, hurry])
    with closing(connect(database)) as connection:
        final = [row[0] for row in connection.execute("SELECT seq FROM journal ORDER BY seq")]
    assert len(final) > 500
    assert seqs_of(first) == seqs_of(second) == final
    assert final != list(range(1, len(final) + 1)), "some were rolled back"
    assert journal.read(0, 10**6) == first == second


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_several_writers_and_followers(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    store = str(tmp_path / "belated.db") if kind == "sqlite" else request.getfixturevalue("database")
    with closing(open_journal(store)) as journal:
        journal.append([created("one")])
        appended: list[tuple[int, int]] = []

        def write(name: int) -> None:
            with closing(open_journal(store)) as own:
                for number in range(40):
                    seqs = own.append([decided(1, 1000 * name + 2 * number + n) for n in range(2)])
                    appended.extend(zip(seqs, (1000 * name + 2 * number, 1000 * name + 2 * number + 1), strict=True))

        first, second = tailed(store, [partial(write, name) for name in range(3)])
        assert first == second == journal.read(0, 1000)
        assert [(entry.seq, entry.round) for entry in first[1:]] == sorted(appended)


# -- several processes on one file -------------------------------------------------------------------------------

PROCESS = """
import json, sys
from belated.serve.domain.entries import Entry, EntryKind
from belated.serve.store.sqlite.journal import SQLiteJournal
journal, name = SQLiteJournal(sys.argv[1]), int(sys.argv[2])
seqs = [journal.append([Entry(1, EntryKind.DECIDED, 1, round=name, position=n) for n in (0, 1)]) for _ in range(100)]
print(json.dumps(seqs))
"""


def test_processes_make_and_write_one_file_at_once(tmp_path: Path) -> None:
    path = tmp_path / "belated.db"
    command = [sys.executable, "-c", PROCESS, str(path)]
    processes = [subprocess.Popen([*command, str(n)], stdout=subprocess.PIPE, text=True) for n in range(4)]  # noqa: S603
    told = [json.loads(process.communicate()[0]) for process in processes]
    assert [process.returncode for process in processes] == [0] * 4
    with closing(SQLiteJournal(path)) as journal:
        found = journal.read(0, 10**6)
        assert seqs_of(found) == list(range(1, 801))
        for name, pairs in enumerate(told):
            assert [pair for pair in pairs if pair[1] != pair[0] + 1] == []
            assert [seq for pair in pairs for seq in pair] == [entry.seq for entry in found if entry.round == name]
        assert journal.check() == []


def test_a_busy_file_may_be_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_schema, "BUSY_TIMEOUT", 0.05)
    with closing(SQLiteJournal(tmp_path / "belated.db")) as journal, closing(SQLiteJournal(journal.path)) as other:
        journal.append([created("one")])
        other._db.execute("BEGIN IMMEDIATE")
        for attempt in (lambda: journal.append([decided(1, 1)]), lambda: journal.revoke_key("a", 1)):
            with pytest.raises(StoreUnreachable, match=r"belated\.db is busy.*Try again"):
                attempt()
        assert seqs_of(journal.read(0, 10)) == [1]
        other._db.execute("ROLLBACK")
        assert journal.append([decided(1, 1)]) == [2]
