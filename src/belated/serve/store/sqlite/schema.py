"""Opens SQLite files, and creates and migrates their tables."""

import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import apsw

from belated.errors import StoreError
from belated.serve.store.sql import CREATED, INDEXES, ONE_ALIAS, ONE_EVENT, READING_INDEXES
from belated.serve.store.sqlite.files import check_only_name, real
from belated.serve.store.trail import AUDIT

APPLICATION: Final = 0x42656C61  # "Bela" marks the file as ours
BUSY_TIMEOUT: Final = 10.0  # seconds to wait for other processes
BUSY_POLL: Final = 0.0005  # seconds between two tries (SQLite's own pauses grow to 0.1, and busy processes starve)
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
    """
CREATE TABLE bases (
    seq INTEGER PRIMARY KEY, version INTEGER NOT NULL, release TEXT NOT NULL, digest BLOB NOT NULL,
    parts INTEGER NOT NULL, removed_by INTEGER
) STRICT;
CREATE TABLE base_parts (
    seq INTEGER NOT NULL, number INTEGER NOT NULL, state BLOB NOT NULL, PRIMARY KEY (seq, number)
) STRICT;
CREATE TABLE forgotten (until INTEGER NOT NULL) STRICT;
INSERT INTO forgotten (until) VALUES (0);
""",
    f"""
ALTER TABLE journal ADD COLUMN alias BLOB;
ALTER TABLE journal ADD COLUMN parts BLOB;
ALTER TABLE journal ADD COLUMN policy INTEGER;
{ONE_ALIAS}
""",
    AUDIT.format(serial="INTEGER PRIMARY KEY AUTOINCREMENT", integer="INTEGER", options=" STRICT"),
)  # each step makes the next version of the schema, beginning with an empty file
SCHEMA_VERSION: Final = len(STEPS)
# The oldest version whose releases can use a store of this one. Later steps only add what they need not know. Raise it
# together with a step that changes or removes something, or adds what every release must write.
COMPATIBLE_SINCE: Final = 2
_NOTE: Final = """
CREATE TABLE IF NOT EXISTS compatible (since INTEGER NOT NULL) STRICT;
DELETE FROM compatible;
INSERT INTO compatible (since) VALUES ({});
"""


def keep_private(path: Path) -> None:
    """Create the file for its owner only, if it is missing. Take it away from all other users, if it is there.

    SQLite gives the files -wal and -shm the permissions of the file. The permissions of the group stay.
    """
    try:
        with suppress(FileExistsError):  # such a file is not opened, because closing it would drop SQLite's locks
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        for file in (path, Path(f"{path}-wal"), Path(f"{path}-shm")):
            with suppress(FileNotFoundError):
                mode = file.stat().st_mode
                if mode & stat.S_IRWXO:
                    file.chmod(stat.S_IMODE(mode) & ~stat.S_IRWXO)
    except OSError:
        return  # not ours, or on a read-only disk. SQLite says what is wrong when it opens the file


def connect(path: Path, *, readonly: bool = False, vfs: str | None = None, may_create: bool = True) -> apsw.Connection:
    """Open a connection that waits for other processes."""
    flags = apsw.SQLITE_OPEN_READONLY if readonly else apsw.SQLITE_OPEN_READWRITE
    if may_create and not readonly:
        flags |= apsw.SQLITE_OPEN_CREATE
        if vfs is None:
            keep_private(path)
    db = apsw.Connection(str(path), flags=flags, vfs=vfs)
    be_patient(db)
    if vfs is not None:  # a file system in memory has no shared memory between connections
        db.execute("PRAGMA locking_mode = EXCLUSIVE").fetchall()
    return db


def be_patient(db: apsw.Connection) -> None:
    """Let a connection wait for other processes."""
    db.set_busy_handler(_wait)


def _wait(tries: int) -> bool:
    time.sleep(BUSY_POLL)
    return tries < BUSY_TIMEOUT / BUSY_POLL


@contextmanager
def transaction(db: apsw.Connection) -> Iterator[None]:
    """Run the block in a transaction that keeps others from writing."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")


def use_wal(db: apsw.Connection) -> None:
    """Turn on WAL, so that readers do not wait for writers. Waits if another process is creating the file."""
    for tries in range(100):
        try:
            db.execute("PRAGMA journal_mode = WAL").fetchall()
        except apsw.BusyError:
            if tries == 99:
                raise
            time.sleep(BUSY_TIMEOUT / 100)
        else:
            return


def version_of(db: apsw.Connection, path: Path) -> int:
    """Return the schema version, or 0 of an empty file. Raises StoreError if the file is not ours or is too new.

    A newer file is accepted if it says that this release can use it.
    """
    if not db.execute("SELECT count(*) FROM sqlite_schema").get:
        return 0
    if db.execute("PRAGMA application_id").get != APPLICATION:
        raise StoreError(f"the file {path} is a database, but not one of Belated's. Choose another --store.")
    version = int(db.execute("PRAGMA user_version").get)
    if min(version, _noted(db) or version) > SCHEMA_VERSION:
        raise StoreError(
            f"the store {path} has schema version {version}, and this release reads {SCHEMA_VERSION}. "
            "Use the release that wrote it."
        )
    return version


def _noted(db: apsw.Connection) -> int:
    """Return the oldest version whose releases can use this file, or 0 if it does not say."""
    if not db.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'compatible'").get:
        return 0
    since = db.execute("SELECT since FROM compatible").get
    if since is None:  # both are written in one transaction
        raise StoreError(f"the store {db.filename} is damaged. Its table `compatible` is empty. Restore a backup.")
    return int(since)


def _stamp(db: apsw.Connection, number: int) -> str:
    """Return the statements that set the version, and say who else can use the file."""
    since = min(number, COMPATIBLE_SINCE)
    note = _NOTE.format(since) if since < number or _noted(db) else ""
    return f"{note} PRAGMA user_version = {number}"


def create(db: apsw.Connection) -> None:
    """Create all tables, unless another process was faster."""
    with transaction(db):
        if not db.execute("SELECT count(*) FROM sqlite_schema").get:
            db.execute("".join(STEPS) + _stamp(db, SCHEMA_VERSION)).fetchall()
            list(_add_indexes(db))


def _add_indexes(db: apsw.Connection) -> Iterator[str]:
    """Create the indexes for readers that are missing. Yields a line for each."""
    for name, on in READING_INDEXES.items():
        if not db.execute("SELECT count(*) FROM sqlite_schema WHERE type = 'index' AND name = ?", (name,)).get:
            db.execute(f"CREATE INDEX {name} {on}").fetchall()
            yield f"index {name}"


def migrate(path: Path) -> Iterator[str]:
    """Update the file to this release, each step in a transaction. Yields a line for each step."""
    check_only_name(real(path))
    try:
        db = connect(real(path))
        try:
            version_of(db, path)  # before anything is changed
            use_wal(db)
            for number, step in enumerate(STEPS, 1):
                with transaction(db):
                    is_due = version_of(db, path) < number  # another process may be migrating too
                    if is_due:
                        db.execute(f"{step}; {_stamp(db, number)}").fetchall()
                if is_due:
                    yield f"schema version {number}"
            with transaction(db):
                added = list(_add_indexes(db))
            yield from added
        finally:
            db.close()
    except apsw.Error as error:
        raise StoreError(f"the store {path} cannot be migrated: {type(error).__name__}: {error}") from error
