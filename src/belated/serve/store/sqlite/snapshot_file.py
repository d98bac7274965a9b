"""Snapshots in a SQLite file beside the store, so that saving a large one does not hold up the journal.

The file only makes the next start faster. Without it the state is built from the journal.
"""

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Final, final

import apsw

from belated.errors import StoreError, StoreUnreachable
from belated.serve.domain.fold import Snapshot
from belated.serve.store.sql import DROP_SNAPSHOT, DROP_SNAPSHOTS, NEWEST_SAVED, SAVED, loaded, saving
from belated.serve.store.sqlite.schema import connect, transaction

SUFFIX: Final = "-snapshots"
TABLES: Final = """
CREATE TABLE IF NOT EXISTS saved_snapshots (seq INTEGER PRIMARY KEY, version INTEGER NOT NULL, parts INTEGER NOT NULL)
STRICT;
CREATE TABLE IF NOT EXISTS snapshot_parts (
    seq INTEGER NOT NULL, number INTEGER NOT NULL, state BLOB NOT NULL, PRIMARY KEY (seq, number)
) STRICT;
"""


@final
class SnapshotFile:
    """The snapshots of the store at `store`. It is opened for each use."""

    def __init__(self, store: Path, vfs: str | None = None) -> None:
        self.path, self._vfs = Path(f"{store}{SUFFIX}"), vfs
        self._seq = 0  # of the newest snapshot, at the last look
        self._claim: int | None = None  # the descriptor that holds the lock

    @contextmanager
    def _explained(self, verb: str) -> Iterator[None]:
        try:
            yield
        except apsw.BusyError as error:
            raise StoreUnreachable(f"the snapshots {self.path} are busy and cannot be {verb} now.") from error
        except apsw.Error as error:
            raise StoreError(
                f"the snapshots {self.path} cannot be {verb}: {type(error).__name__}: {error}. "
                "Delete that file. The next start then reads the whole journal."
            ) from error

    def _rows(self, sql: str, values: Sequence[Any] = (), *, may_wait: bool = True) -> list[Any]:
        """Run a statement that reads. There are no rows before the first snapshot."""
        with self._explained("read"):
            try:
                return self._read(sql, values, readonly=True, may_wait=may_wait)
            except apsw.CantOpenError:
                return []
            except apsw.ReadOnlyError:  # who was saving one was killed, and only a writer can take that back
                return self._read(sql, values, readonly=False, may_wait=may_wait)

    def _read(self, sql: str, values: Sequence[Any], *, readonly: bool, may_wait: bool) -> list[Any]:
        with closing(connect(self.path, readonly=readonly, vfs=self._vfs)) as db:
            if not may_wait:
                db.set_busy_timeout(0)
            is_empty = not db.execute("SELECT count(*) FROM sqlite_schema").get
            return [] if is_empty else list(db.execute(sql, values))

    def seq(self) -> int:
        """Return the entry of the newest snapshot, or 0. If it cannot be read now, what it was at the last look."""
        with suppress(StoreError):
            self._seq = next((int(row[0]) for row in self._rows(NEWEST_SAVED, may_wait=False)), 0)
        return self._seq

    def load(self) -> list[Snapshot]:
        """Return the snapshots, newest first."""
        return loaded(self._rows)

    def claim(self) -> bool:
        """Claim to be the one who saves. The claim ends with `release` or with the process."""
        if self._claim is None:
            lock = os.open(f"{self.path}.lock", os.O_RDWR | os.O_CREAT, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(lock)
                return False
            self._claim = lock
        return True

    def release(self) -> None:
        """End the claim."""
        if self._claim is not None:
            os.close(self._claim)
            self._claim = None

    def drop_earlier(self, before: int) -> None:
        """Drop the snapshots of earlier entries."""
        if not self.path.exists():
            return
        with self._explained("written"), closing(connect(self.path, vfs=self._vfs)) as db:
            db.execute("PRAGMA secure_delete = ON").fetchall()
            db.execute(TABLES).fetchall()
            with transaction(db):
                for sql in DROP_SNAPSHOTS:
                    db.execute(sql, (before,)).fetchall()

    def save(self, snapshot: Snapshot) -> None:
        """Save a snapshot in parts, each on disk before the next, so that the disk is never busy for long."""
        with self._explained("written"), closing(connect(self.path, vfs=self._vfs)) as db:
            db.execute("PRAGMA synchronous = FULL").fetchall()
            db.execute(TABLES).fetchall()
            for statements in saving(snapshot):
                with transaction(db):
                    for sql, values in statements:
                        db.execute(sql, values).fetchall()

    def drop(self, seq: int) -> None:
        """Drop the snapshot after this entry, if there is one."""
        if not self._rows(SAVED):
            return
        with self._explained("written"), closing(connect(self.path, vfs=self._vfs)) as db, transaction(db):
            for sql in DROP_SNAPSHOT:
                db.execute(sql, (seq,)).fetchall()
