"""A store may be a symbolic link. SQLite keeps the log beside the file that it leads to."""

import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from belated.errors import HistoryLost, StoreError
from belated.serve.engine.requests import Ask
from belated.serve.store.copy import copy
from belated.serve.store.sqlite.journal import SQLiteJournal
from belated.serve.store.sqlite.restoring import restore
from belated.serve.store.sqlite.schema import migrate
from tests.support.engines import Driven


@pytest.fixture
def real(tmp_path: Path) -> Path:
    """The file that the link will lead to. It is not there yet."""
    disk = tmp_path / "disk"
    disk.mkdir()
    (tmp_path / "belated.db").symlink_to(disk / "real.db")
    return disk / "real.db"


@pytest.fixture
def driven(tmp_path: Path, real: Path) -> Driven:
    made = Driven(tmp_path)
    assert made.path.is_symlink()
    assert real.is_file()
    made.create()
    made.decide(size=5)
    return made


def test_a_link_is_served_like_a_file(driven: Driven, real: Path) -> None:
    driven.engine.confirm_history()
    log = Path(f"{real}-wal")
    assert driven.engine.journal.size() == real.stat().st_size + log.stat().st_size > real.stat().st_size
    driven.restart(snapshot=True)
    assert driven.engine.fold.restored == 6
    assert driven.decide()
    assert {one.name for one in driven.path.parent.iterdir()} == {"belated.db", "disk"}
    assert all(one.stat().st_mode & 0o77 == 0 for one in real.parent.iterdir())


def lead_elsewhere(link: Path, real: Path) -> None:
    other = real.with_name("other.db")
    with (
        closing(apsw.Connection(str(real))) as source,
        closing(apsw.Connection(str(other))) as target,
        target.backup("main", source, "main") as step,
    ):
        step.step()
    link.unlink()
    link.symlink_to(other)


def move_log(_link: Path, real: Path) -> None:
    Path(f"{real}-wal").rename(real.with_name("elsewhere"))


def move_store(_link: Path, real: Path) -> None:
    real.rename(real.with_name("elsewhere"))


def cut_log(_link: Path, real: Path) -> None:
    os.truncate(f"{real}-wal", 0)


@pytest.mark.parametrize("fault", [lead_elsewhere, move_log, move_store, cut_log])
def test_what_happens_to_the_files_behind_a_link_is_noticed(
    driven: Driven, real: Path, fault: Callable[[Path, Path], None]
) -> None:
    driven.engine.confirm_history()
    fault(driven.path, real)
    with pytest.raises(HistoryLost, match="moved, deleted, replaced or cut short"):
        driven.engine.process([Ask("layout")])


def test_a_log_behind_a_link_is_not_thrown_away(driven: Driven, real: Path) -> None:
    log = Path(f"{real}-wal").read_bytes()
    driven.engine.journal.close()
    real.unlink()
    Path(f"{real}-wal").write_bytes(log)
    with pytest.raises(StoreError, match="move the log away"):
        SQLiteJournal(driven.path)


def test_a_restore_replaces_the_file_behind_a_link(driven: Driven, real: Path) -> None:
    backup = real.with_name("backup.db")
    with closing(SQLiteJournal(backup)) as made:
        copy(driven.engine.journal, made)
    driven.decide(size=3)
    driven.engine.snapshot()
    driven.engine.journal.close()
    kept = restore(backup, driven.path)
    assert kept is not None
    assert kept.parent == real.parent
    assert driven.path.is_symlink()
    driven.start()
    assert (driven.engine.fold.seq, driven.engine.fold.restored) == (6, 0)  # the old snapshot has gone with its store


def test_a_file_behind_a_link_is_made_by_migrate_for_its_owner_only(real: Path) -> None:
    assert list(migrate(real.parent.parent / "belated.db"))
    assert real.stat().st_mode & 0o77 == 0


def test_a_store_with_two_names_is_not_written(tmp_path: Path) -> None:
    """A hard link has a log of its own. Two servers would not notice each other, and lose what the other writes."""
    driven, other = Driven(tmp_path), tmp_path / "other.db"
    driven.create()
    driven.decide(size=5)
    os.link(driven.path, other)
    driven.decide()  # it does no harm as long as nobody uses it
    driven.engine.confirm_history()
    for name in (other, driven.path):
        with pytest.raises(StoreError, match="hard link"):
            SQLiteJournal(name)
        with pytest.raises(StoreError, match="hard link"):
            list(migrate(name))
    with (
        closing(SQLiteJournal(driven.path, readonly=True)) as source,
        closing(SQLiteJournal(tmp_path / "new")) as fresh,
    ):
        assert copy(source, fresh).entries == 7
    other.unlink()
    driven.restart()
    assert driven.decide()
