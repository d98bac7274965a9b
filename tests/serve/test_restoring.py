"""A backup of a SQLite store comes back whole, whatever files the old store has left."""

import shutil
from contextlib import closing
from pathlib import Path

import apsw
import pytest
from typer.testing import CliRunner

from belated import cli
from belated.errors import InvalidInput, StoreError
from belated.serve.store.copy import copy
from belated.serve.store.sqlite.journal import SQLiteJournal
from belated.serve.store.sqlite.restoring import restore
from belated.serve.store.verify import verify
from tests.support.engines import Driven

runner = CliRunner()


@pytest.fixture
def driven(tmp_path: Path) -> Driven:
    made = Driven(tmp_path)
    made.create()
    made.decide(size=3000)
    return made


def back_up(driven: Driven, way: str) -> Path:
    backup = driven.path.with_name("backup.db")
    if way == "copy":
        with closing(SQLiteJournal(backup)) as made:
            copy(driven.engine.journal, made)
    else:
        with (
            closing(apsw.Connection(str(driven.path))) as source,
            closing(apsw.Connection(str(backup))) as target,
            target.backup("main", source, "main") as step,
        ):
            step.step()
    return backup


@pytest.mark.parametrize("way", ["copy", "backup"])
def test_a_killed_store_is_replaced_by_its_backup(driven: Driven, way: str) -> None:
    backup = back_up(driven, way)
    expected = driven.engine.fold.snapshot()
    driven.decide(size=3000)
    driven.engine.snapshot()
    lost = driven.engine.fold.seq
    files = {name: driven.path.with_name(name).read_bytes() for name in ("belated.db", "belated.db-wal")}
    driven.engine.journal.close()
    for name, content in files.items():  # as a kill would leave them
        driven.path.with_name(name).write_bytes(content)
    kept = restore(backup, driven.path)
    assert kept is not None
    with closing(SQLiteJournal(kept)) as journal:
        assert journal.last() == lost
    driven.start()
    assert driven.engine.fold.snapshot() == expected
    assert verify(driven.engine.journal).problems == []
    assert driven.decide()


def test_a_store_in_use_is_not_replaced(driven: Driven) -> None:
    backup = back_up(driven, "copy")
    driven.decide()
    with pytest.raises(StoreError, match=r"in use\. Stop the service first"):
        restore(backup, driven.path)
    assert driven.decide()
    assert verify(driven.engine.journal).problems == []


def test_a_damaged_backup_changes_nothing(driven: Driven) -> None:
    backup = back_up(driven, "backup")
    content = bytearray(backup.read_bytes())
    content[8192:40960] = bytes(40960 - 8192)
    backup.write_bytes(content)
    before = driven.path.read_bytes()
    driven.engine.journal.close()
    before = driven.path.read_bytes()
    with pytest.raises(StoreError):
        restore(backup, driven.path)
    assert driven.path.read_bytes() == before


def test_a_damaged_store_is_replaced(driven: Driven) -> None:
    backup = back_up(driven, "copy")
    driven.engine.journal.close()
    driven.path.write_bytes(b"not a database" * 1000)
    assert restore(backup, driven.path) is not None
    driven.start()
    assert driven.engine.fold.seq == 3001


def test_the_command_restores_into_an_empty_folder_too(driven: Driven, tmp_path: Path) -> None:
    backup = back_up(driven, "copy")
    new = tmp_path / "elsewhere"
    new.mkdir()
    result = runner.invoke(cli.app, ["restore", str(backup), "--store", str(new / "belated.db")])
    assert result.exit_code == 0, result.output
    assert "restored" in result.output
    assert runner.invoke(cli.app, ["verify", "--store", str(new / "belated.db")]).exit_code == 0
    for backups, stores, message in (
        (tmp_path / "none.db", "x.db", "there is no backup .*none.db. Name the file that `belated copy` has made"),
        (tmp_path, "x.db", "there is no backup"),
        (backup, "postgresql://host/x", "restore is for SQLite files. For PostgreSQL use pg_restore"),
        ("postgresql://host/x", "x.db", "restore is for SQLite files"),
    ):
        with pytest.raises(InvalidInput, match=message):
            runner.invoke(cli.app, ["restore", str(backups), "--store", stores], catch_exceptions=False)
    assert "postgresql://" not in runner.invoke(cli.app, ["restore", "--help"]).output
    shutil.rmtree(new)


def test_only_its_owner_can_read_what_was_restored(driven: Driven) -> None:
    backup = back_up(driven, "backup")
    driven.engine.journal.close()
    restore(backup, driven.path)
    assert driven.path.stat().st_mode & 0o077 == 0
