"""The SQLite journal keeps the journal contract, and refuses files that are not ours."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from belated.errors import StoreError
from belated.serve.store.opening import open_journal
from belated.serve.store.sqlite.journal import SQLiteJournal
from belated.serve.store.sqlite.schema import SCHEMA_VERSION
from belated.testing.entries import created, decided
from belated.testing.journal_contract import JournalContract, OpenStore
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


def foreign_database(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE journal (wages REAL)")
    database.close()


def newer_version(path: Path) -> None:
    SQLiteJournal(path).close()
    with sqlite3.connect(path) as database:
        database.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    database.close()


def text_file(path: Path) -> None:
    path.write_text("what I did on my holidays\n" * 1000)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (foreign_database, "not one of Belated's"),
        (newer_version, "Use the release that wrote it"),
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


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be opened"):
        SQLiteJournal(tmp_path)


class TestMemory(JournalContract):
    """The contract asks for no more than it says. A store of a hundred lines keeps it."""

    @pytest.fixture
    def open_store(self) -> OpenStore:
        store = MemoryStore()
        return lambda: MemoryJournal(store)
