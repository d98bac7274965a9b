"""Puts a backup in the place of a SQLite store. A plain copy beside a log of the old store would be damaged."""

import os
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import apsw

from belated.errors import StoreError
from belated.serve.store.sqlite.files import real
from belated.serve.store.sqlite.journal import SQLiteJournal
from belated.serve.store.sqlite.schema import connect
from belated.serve.store.sqlite.snapshot_file import SUFFIX

LEFT_OVER: Final = ("-wal", "-shm", SUFFIX)  # of the old store


def restore(backup: Path, store: Path) -> Path | None:
    """Put a copy of the backup at `store`. Returns the new name of the store that was there, if there was one.

    Nothing is changed if the backup is damaged or the store is in use.
    """
    store = real(store)
    with closing(SQLiteJournal(backup, readonly=True)) as journal:
        if problems := journal.check():
            raise StoreError(f"the backup {backup} is damaged: {problems[0]}. Nothing was changed.")
    with closing(connect(backup, readonly=True)) as database:
        fresh = _copied(database, store)
    kept = _move_aside(store) if store.exists() else None
    for suffix in LEFT_OVER:
        Path(f"{store}{suffix}").unlink(missing_ok=True)
    fresh.rename(store)
    _sync(store.parent)
    return kept


def _copied(backup: apsw.Connection, store: Path) -> Path:
    """Copy the backup into a file beside the store. What is in the backup's own log is copied too."""
    fresh = Path(f"{store}.restoring")
    fresh.unlink(missing_ok=True)
    fresh.touch(0o600)
    backup.execute("VACUUM INTO ?", (str(fresh),)).fetchall()  # into an empty file, which only its owner can read
    _sync(fresh)
    return fresh


def _move_aside(store: Path) -> Path:
    """Rename the store with its log. Raises a StoreError if a process has it open."""
    try:
        with closing(connect(store)) as database:
            database.set_busy_timeout(0)
            database.execute("PRAGMA journal_mode = DELETE").fetchall()  # nobody else may have it open
    except apsw.BusyError as error:
        raise StoreError(f"the store {store} is in use. Stop the service first. Nothing was changed.") from error
    except apsw.Error:
        pass  # it is damaged, which may be why it is replaced
    kept = Path(f"{store}.before-{datetime.now(UTC):%Y%m%dT%H%M%SZ}")
    for suffix in ("", "-wal"):
        if (file := Path(f"{store}{suffix}")).exists():
            file.rename(f"{kept}{suffix}")
    return kept


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
