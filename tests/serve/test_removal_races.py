"""What happens to those who read a store while entries are removed from it."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from belated.errors import StoreError
from belated.serve.archive import erasing
from belated.serve.domain import experiment as experiments
from belated.serve.domain import failures
from belated.serve.domain.entries import Entry, EntryKind
from belated.serve.store import bases
from belated.serve.store import journal as journals
from belated.serve.store.copy import copy
from belated.serve.store.journal import Removal
from belated.serve.store.loading import load, load_to_serve
from belated.serve.store.removal import begin, loaded, put_base, remove
from belated.serve.store.sqlite.journal import SQLiteJournal
from belated.serve.store.verify import verify
from tests.support.engines import Driven
from tests.support.removals import based, removed


def reported(folder: Path, size: int = 50) -> Driven:
    """An experiment whose decisions are all reported."""
    driven = Driven(folder)
    driven.create()
    for decision in driven.decide(size=size):
        driven.tell(decision, 0.5)
    return driven


def test_a_copy_is_refused_if_it_could_miss_the_outcome_of_a_decision(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journals, "PAGE", 60)
    driven = reported(tmp_path)
    base, source, pages = based(driven.engine.journal), SQLiteJournal(driven.path), list[int]()
    left = source.left

    def left_and_remove(after: int, until: int, limit: int) -> list[Entry]:
        page = left(after, until, limit)
        if not pages:
            assert remove(driven.engine.journal, Removal(base.seq, decisions_until=base.seq)) == 100
        pages.append(len(page))
        return page

    monkeypatch.setattr(source, "left", left_and_remove)
    with pytest.raises(StoreError, match="archived or erased meanwhile"):
        copy(source, SQLiteJournal(tmp_path / "copy.db"))


def test_a_copy_has_the_entry_that_puts_its_base_in_force(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    driven = reported(tmp_path)
    source, looks = SQLiteJournal(driven.path), list[int]()
    last = source.last

    def last_and_remove() -> int:
        found = last()
        if not looks:
            removed(driven.engine.journal, decisions_until=30)
        looks.append(found)
        return found

    monkeypatch.setattr(source, "last", last_and_remove)
    destination = SQLiteJournal(tmp_path / "copy.db")
    with suppress(StoreError):  # refused, or whole
        copy(source, destination)
        assert load(destination).by_name["layout"].counts.decisions == 50


def test_a_failed_experiment_in_a_base_stops_no_later_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    driven = Driven(tmp_path)
    driven.create("sound")
    driven.create("broken")
    driven.decide("sound", 10)
    made = failures.failure_of
    with monkeypatch.context() as older:
        older.setattr(experiments, "failure_of", lambda some: msgspec.structs.replace(made(some), release="0.0.9"))
        older.setattr(failures, "__version__", "0.0.9")
        broken = Entry(1, EntryKind.ARMS, driven["broken"].seq, revision=1, body=b'{"nonsense": 1}')
        driven.engine.journal.append([broken])
        driven.engine.catch_up()
        removed(driven.engine.journal, decisions=(3,))
    fold = load_to_serve(SQLiteJournal(driven.path))
    assert fold.by_name["sound"].counts.decisions == 10
    assert fold.by_name["broken"].failure is not None


def test_a_start_whose_base_is_dropped_meanwhile_begins_at_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bases, "PART", 200)
    driven = reported(tmp_path)
    removed(driven.engine.journal, decisions=(2,))
    driven.engine.catch_up()
    driven.decide(size=3)
    source, states = SQLiteJournal(driven.path), list[int]()
    base_state = source.base_state

    def after_a_part_is_gone(seq: int) -> bytes:
        if not states:
            states.append(seq)
            other = SQLiteJournal(driven.path)
            begin(other, put_base(other, loaded(other), 1), 0.0)
            return base_state(seq)[200:] or b"the last parts"
        return base_state(seq)

    monkeypatch.setattr(source, "base_state", after_a_part_is_gone)
    driven.engine.catch_up()
    assert load(source).by_name["layout"].counts.decisions == 53


def test_verify_begins_again_if_a_removal_begins_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    driven = reported(tmp_path)
    source, reads = SQLiteJournal(driven.path), list[int]()
    read = source.read

    def read_and_remove(after: int, limit: int) -> Any:
        if not reads:
            reads.append(after)
            removed(driven.engine.journal, decisions_until=30)
        return read(after, limit)

    monkeypatch.setattr(source, "read", read_and_remove)
    assert verify(source).problems == []


def test_parts_of_a_killed_archive_are_erased_too(tmp_path: Path) -> None:
    folder = tmp_path / "archive"
    folder.mkdir()
    (folder / ".layout-102.journal.parquet.77.partial").write_bytes(b"a decision")
    (folder / "layout-102.journal.parquet").touch()
    assert erasing.erase_from_files(folder, {}) == {}
    assert [path.name for path in folder.iterdir()] == ["layout-102.journal.parquet"]
