"""The SQLite journal keeps the journal contract, and refuses files that are not ours."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from belated.errors import StoreError
from belated.serve.store import bases
from belated.serve.store.copy import copy
from belated.serve.store.journal import Key, Removal
from belated.serve.store.opening import open_journal
from belated.serve.store.sqlite import schema
from belated.serve.store.sqlite.journal import SQLiteJournal
from belated.serve.store.sqlite.schema import SCHEMA_VERSION, migrate
from belated.serve.store.verify import verify
from belated.testing.entries import created, decided, outcome
from belated.testing.journal_contract import JournalContract, OpenStore
from belated.testing.removal_contract import with_base
from tests.support.engines import Driven
from tests.support.memory_journal import MemoryJournal, MemoryStore


class TestSQLite(JournalContract):
    @pytest.fixture
    def open_store(self, tmp_path: Path) -> OpenStore:
        return lambda: open_journal(str(tmp_path / "belated.db"))


def test_a_reader_sees_nothing_of_an_append_that_is_not_committed(tmp_path: Path) -> None:
    """Looks into the store inside the transaction, where a server that dies would leave it."""
    journal = SQLiteJournal(tmp_path / "belated.db")
    journal.append([created("one")])
    reader, insert, seen = journal.reader(), journal._insert, list[int]()

    def watched(entries: Any, first: int | None) -> None:
        insert(entries, first)
        seen.append(reader.last())

    journal._insert = watched  # type: ignore[method-assign]
    journal.append([decided(1, 1), decided(1, 2)])
    assert seen == [1]
    assert reader.last() == 3


@pytest.mark.parametrize("page", ["decisions", "outcomes", "events"])
def test_a_page_is_found_by_an_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: str) -> None:
    """Without one a page of a small experiment would read the whole journal."""
    journal, asked = SQLiteJournal(tmp_path / "belated.db"), list[Any]()
    rows = journal._rows

    def remember(sql: str, values: Any) -> list[Any]:
        asked.append((sql, values))
        return []

    monkeypatch.setattr(journal, "_rows", remember)
    getattr(journal, page)(1, 0, 100)
    [(sql, values)] = asked
    plan = [row[3] for row in rows(f"EXPLAIN QUERY PLAN {sql}", values)]
    assert f"USING INDEX {page} (experiment=? AND seq>?)" in plan[0]
    assert not any("SCAN" in line or "TEMP B-TREE" in line for line in plan)


def test_a_store_without_the_newest_index_opens_and_gets_it_from_migrate(tmp_path: Path) -> None:
    """Servers of an older release may go on with the same store, so the schema keeps its version."""
    path = tmp_path / "belated.db"
    SQLiteJournal(path).close()
    with sqlite3.connect(path) as database:
        database.execute("DROP INDEX outcomes")
    database.close()
    journal = SQLiteJournal(path)
    journal.append([created("one"), decided(1, 1), outcome(2)])
    assert [entry.seq for entry in journal.outcomes(1, 0, 10)] == [3]
    assert list(migrate(path)) == ["index outcomes"]
    assert list(migrate(path)) == []
    assert [entry.seq for entry in journal.outcomes(1, 0, 10)] == [3]


def foreign_database(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE journal (wages REAL)")
    database.close()


def newer_version(path: Path) -> None:
    SQLiteJournal(path).close()
    with sqlite3.connect(path) as database:
        database.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
        database.execute(f"UPDATE compatible SET since = {SCHEMA_VERSION + 1}")  # noqa: S608
    database.close()


def half_written(path: Path) -> None:
    """As after a power cut on a disk that lost a page."""
    SQLiteJournal(path).close()
    with sqlite3.connect(path) as database:
        database.execute("DELETE FROM compatible")
    database.close()


def text_file(path: Path) -> None:
    path.write_text("what I did on my holidays\n" * 1000)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (foreign_database, "not one of Belated's"),
        (newer_version, "Use the release that wrote it"),
        (half_written, "is damaged"),
        (text_file, "belated.db"),
    ],
)
def test_a_file_that_is_not_ours_is_refused_and_left_alone(
    tmp_path: Path, make: Callable[[Path], None], message: str
) -> None:
    path = tmp_path / "belated.db"
    make(path)
    before = path.read_bytes()
    with pytest.raises(StoreError, match=message):
        SQLiteJournal(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["belated.db"]


ADDED = """
ALTER TABLE journal ADD COLUMN later TEXT DEFAULT 'new';
ALTER TABLE snapshots ADD COLUMN later TEXT;
ALTER TABLE keys ADD COLUMN later TEXT;
"""


def migrate_to_newer(path: Path, monkeypatch: pytest.MonkeyPatch, *, since: int) -> None:
    """What a newer release does to a store. `since` is the oldest schema version that it says can go on."""
    with monkeypatch.context() as newer:
        newer.setattr(schema, "STEPS", (*schema.STEPS, ADDED))
        newer.setattr(schema, "SCHEMA_VERSION", SCHEMA_VERSION + 1)
        newer.setattr(schema, "COMPATIBLE_SINCE", since)
        assert list(schema.migrate(path)) == [f"schema version {SCHEMA_VERSION + 1}"]


def use_everything(driven: Driven) -> None:
    """Write to every table, read it again, and copy it."""
    [kept] = driven.decide(key="kept")
    assert driven.tell(driven.decide()[0], 1.0) == "applied"
    driven.engine.snapshot()
    journal = driven.engine.journal
    journal.add_key(Key(f"key {journal.last()}", b"", "admin", None, 1))
    assert journal.keys()[-1].id == f"key {journal.last()}"
    assert verify(journal).problems == []
    driven.restart()
    assert driven.decide(key="kept")[0].id == kept.id
    assert verify(driven.engine.journal).problems == []
    with closing(SQLiteJournal(driven.path.with_name(f"copy {driven.engine.fold.seq}.db"))) as other:
        copy(driven.engine.journal, other)
        assert other.read(0, 10**6) == driven.engine.journal.read(0, 10**6)


def test_a_newer_release_may_add_columns_to_a_store_in_use(driven: Driven, monkeypatch: pytest.MonkeyPatch) -> None:
    """Old and new servers share the store during an upgrade. An old one may restart, and nothing is migrated back."""
    driven.create()
    driven.decide(key="kept")
    migrate_to_newer(driven.path, monkeypatch, since=SCHEMA_VERSION)
    use_everything(driven)
    driven.restart()
    use_everything(driven)
    assert list(schema.migrate(driven.path)) == []
    with closing(sqlite3.connect(driven.path)) as database:
        assert database.execute("SELECT DISTINCT later FROM journal").fetchall() == [("new",)]
        assert database.execute("PRAGMA user_version").fetchall() == [(SCHEMA_VERSION + 1,)]


def test_a_newer_release_may_shut_older_ones_out(driven: Driven, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also after a step before it had let them in."""
    migrate_to_newer(driven.path, monkeypatch, since=SCHEMA_VERSION)
    with monkeypatch.context() as newer:
        newer.setattr(schema, "STEPS", (*schema.STEPS, ADDED, "ALTER TABLE journal ADD COLUMN must TEXT;"))
        newer.setattr(schema, "SCHEMA_VERSION", SCHEMA_VERSION + 2)
        newer.setattr(schema, "COMPATIBLE_SINCE", SCHEMA_VERSION + 2)
        assert list(schema.migrate(driven.path)) == [f"schema version {SCHEMA_VERSION + 2}"]
    for attempt in (SQLiteJournal, lambda path: list(schema.migrate(path))):
        with pytest.raises(StoreError, match="Use the release that wrote it"):
            attempt(driven.path)


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be opened"):
        SQLiteJournal(tmp_path)


class TestMemory(JournalContract):
    """The contract asks for no more than it says. A store of a hundred lines keeps it."""

    @pytest.fixture
    def open_store(self) -> OpenStore:
        store = MemoryStore()
        return lambda: MemoryJournal(store)


@pytest.mark.parametrize("which", [{"decisions_until": 60}, {"experiments": (1,)}, {"decisions": tuple(range(2, 12))}])
def test_decisions_with_many_outcomes_go_in_small_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, which: dict[str, Any]
) -> None:
    """Nobody else can write meanwhile."""
    monkeypatch.setattr(bases, "MOST_ROWS", 17)
    with closing(SQLiteJournal(tmp_path / "belated.db", synchronous="OFF")) as journal:
        journal.append([created("one")])
        made = journal.append([decided(1, n) for n in range(10)])
        for revision in range(7):
            journal.append([outcome(decision, revision=revision) for decision in made])
        base = with_base(journal)
        journal.begin_removal(base)
        steps = list(journal.remove(Removal(base.seq, **which)))
        assert steps == [16] * 5
        assert [entry.seq for entry in journal.left(0, 1000, 1000)] == [1, base.entry]
        assert journal.check() == []
