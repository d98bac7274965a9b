"""A SQLite file of ours: how it is opened, and how its tables came to be, step by step."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import apsw

from belated.errors import StoreError
from belated.serve.store.sql import CREATED, INDEXES, ONE_EVENT

APPLICATION: Final = 0x42656C61  # "Bela": the file says whose it is
WAIT: Final = 10.0  # seconds for other processes to finish
TURN: Final = 0.0005  # seconds between two looks; SQLite's own waits grow to 0.1, and processes in a hurry starve
STEPS: Final = (
    f"""
CREATE TABLE journal (
    at INTEGER NOT NULL, kind INTEGER NOT NULL, experiment INTEGER NOT NULL, seq INTEGER PRIMARY KEY,
    round INTEGER, arm INTEGER, probability REAL, nonce INTEGER, seen INTEGER, request TEXT, position INTEGER,
    decision INTEGER, decided_at INTEGER, revision INTEGER, value REAL, old REAL, body BLOB
) STRICT;
CREATE UNIQUE INDEX one_name ON journal (json_extract(body, '$.name')) WHERE kind = {CREATED};
{INDEXES}
CREATE TABLE snapshots (seq INTEGER PRIMARY KEY, version INTEGER NOT NULL, state BLOB NOT NULL) STRICT;
CREATE TABLE keys (
    id TEXT PRIMARY KEY, digest BLOB NOT NULL, scope TEXT NOT NULL, experiment TEXT, created_at INTEGER NOT NULL,
    revoked_at INTEGER
) STRICT;
PRAGMA application_id = {APPLICATION};
""",
    f"ALTER TABLE journal ADD COLUMN drawn BLOB; {ONE_EVENT}",
)  # each makes the schema of the version before it one newer, from nothing on
SCHEMA_VERSION: Final = len(STEPS)


def connect(path: Path, *, readonly: bool = False, vfs: str | None = None) -> apsw.Connection:
    """A connection that waits for others."""
    flags = apsw.SQLITE_OPEN_READONLY if readonly else apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
    db = apsw.Connection(str(path), flags=flags, vfs=vfs)
    db.set_busy_handler(_wait)
    if vfs is not None:  # a file system in memory has no shared memory between connections
        db.execute("PRAGMA locking_mode = EXCLUSIVE").fetchall()
    return db


def _wait(tries: int) -> bool:
    time.sleep(TURN)
    return tries < WAIT / TURN


@contextmanager
def transaction(db: apsw.Connection) -> Iterator[None]:
    """All or nothing; nobody else writes meanwhile."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")


def use_wal(db: apsw.Connection) -> None:
    """Readers do not wait for writers then. Of several processes that make a file, one does it and the others wait."""
    for tries in range(100):
        try:
            db.execute("PRAGMA journal_mode = WAL").fetchall()
        except apsw.BusyError:
            if tries == 99:
                raise
            time.sleep(WAIT / 100)
        else:
            return


def version_of(db: apsw.Connection, path: Path) -> int:
    """0 if there is nothing yet; a StoreError if the file is not ours, or newer than this release."""
    if not db.execute("SELECT count(*) FROM sqlite_schema").get:
        return 0
    if db.execute("PRAGMA application_id").get != APPLICATION:
        raise StoreError(f"the file {path} is a database, but not one of Belated's: choose another --store")
    version = int(db.execute("PRAGMA user_version").get)
    if version > SCHEMA_VERSION:
        raise StoreError(
            f"the store {path} has schema version {version}, this release reads {SCHEMA_VERSION}: "
            "use the release that wrote it"
        )
    return version


def create(db: apsw.Connection) -> None:
    """All steps at once, unless another process was faster."""
    with transaction(db):
        if not db.execute("SELECT count(*) FROM sqlite_schema").get:
            db.execute("".join(STEPS) + f"PRAGMA user_version = {SCHEMA_VERSION}").fetchall()


def migrate(path: Path) -> Iterator[str]:
    """Bring the file to the schema of this release, each step in a transaction; says what it does."""
    try:
        db = connect(path)
        try:
            version_of(db, path)  # before anything is changed
            use_wal(db)
            for number, step in enumerate(STEPS, 1):
                with transaction(db):
                    is_due = version_of(db, path) < number  # another process may be at it
                    if is_due:
                        db.execute(f"{step}; PRAGMA user_version = {number}").fetchall()
                if is_due:
                    yield f"schema version {number}"
        finally:
            db.close()
    except apsw.Error as error:
        raise StoreError(f"the store {path} cannot be migrated: {type(error).__name__}: {error}") from error
