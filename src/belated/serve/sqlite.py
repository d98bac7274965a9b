"""The journal in one SQLite file (apsw): WAL, synchronous=FULL, so that a commit has been synced when it returns."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, final

import apsw

from belated.errors import StoreError, StoreUnreachable
from belated.serve.entries import COLUMNS, Entry, Kind
from belated.serve.journal import Conflict, Found, Journal, Key, Snapshot

APPLICATION: Final = 0x42656C61  # "Bela": the file says whose it is
SCHEMA_VERSION: Final = 2
ROWS_AT_ONCE: Final = 100  # one statement for many rows: fewer hand-overs of the interpreter's lock than a row each
KEPT_SNAPSHOTS: Final = 2
WAIT: Final = 10_000  # milliseconds for another process, such as `belated keys`, to finish
DECIDED: Final = int(Kind.DECIDED)
SCHEMA: Final = f"""
CREATE TABLE journal (
    at INTEGER NOT NULL, kind INTEGER NOT NULL, experiment INTEGER NOT NULL, seq INTEGER PRIMARY KEY,
    round INTEGER, arm INTEGER, probability REAL, nonce INTEGER, seen INTEGER, request TEXT, position INTEGER,
    decision INTEGER, decided_at INTEGER, revision INTEGER, value REAL, old REAL, body BLOB,
    drawn BLOB
) STRICT;
CREATE UNIQUE INDEX one_name ON journal (json_extract(body, '$.name')) WHERE kind = {int(Kind.CREATED)};
CREATE UNIQUE INDEX one_effect ON journal (experiment, request, position) WHERE request IS NOT NULL;
CREATE UNIQUE INDEX one_outcome ON journal (decision, revision) WHERE decision IS NOT NULL;
CREATE UNIQUE INDEX one_event ON journal (experiment, revision) WHERE body IS NOT NULL AND revision IS NOT NULL;
CREATE INDEX decisions ON journal (experiment, seq) WHERE kind = {DECIDED};
CREATE INDEX events ON journal (experiment, seq) WHERE body IS NOT NULL;
CREATE TABLE snapshots (seq INTEGER PRIMARY KEY, version INTEGER NOT NULL, state BLOB NOT NULL) STRICT;
CREATE TABLE keys (
    id TEXT PRIMARY KEY, digest BLOB NOT NULL, scope TEXT NOT NULL, experiment TEXT, created_at INTEGER NOT NULL,
    revoked_at INTEGER
) STRICT;
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {SCHEMA_VERSION};
"""
ROW: Final = f"({', '.join('?' * len(COLUMNS))})"
ENTRY: Final = f"SELECT {', '.join(COLUMNS)} FROM journal"  # noqa: S608
WITH_OUTCOME: Final = (
    f"SELECT {', '.join(f'd.{name}' for name in COLUMNS)}, {', '.join(f'o.{name}' for name in COLUMNS)} "  # noqa: S608
    "FROM journal d LEFT JOIN journal o ON o.decision = d.seq "
    "AND o.revision = (SELECT max(revision) FROM journal WHERE decision = d.seq)"
)


KINDS: Final = {int(kind): kind for kind in Kind}  # a look-up is ten times faster than Kind(number)


def _entry(row: tuple[Any, ...]) -> Entry:
    try:
        return Entry(row[0], KINDS[row[1]], *row[2:])
    except KeyError:
        raise StoreError(f"entry {row[3]} is of kind {row[1]}, which this release does not know") from None


def _found(row: tuple[Any, ...]) -> Found:
    half = len(COLUMNS)
    return Found(_entry(row[:half]), None if row[half] is None else _entry(row[half:]))


def _is_conflict(error: BaseException | None) -> bool:
    return getattr(error, "extendedresult", 0) == apsw.SQLITE_CONSTRAINT_UNIQUE


@final
class SQLiteJournal(Journal):
    """One file, any number of processes; `vfs` and `synchronous` are for the tests that cut the power."""

    kind = "sqlite"

    def __init__(
        self, path: Path | str, *, readonly: bool = False, vfs: str | None = None, synchronous: str = "FULL"
    ) -> None:
        self.path, self._vfs, self._failure = Path(path), vfs, ""
        flags = apsw.SQLITE_OPEN_READONLY if readonly else apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
        with self._explained("opened"):
            self._db = apsw.Connection(str(path), flags=flags, vfs=vfs)
            try:
                self._db.set_busy_timeout(WAIT)
                if vfs is not None:  # a file system in memory has no shared memory between connections
                    self._run("PRAGMA locking_mode = EXCLUSIVE")
                if not readonly:
                    self._prepare(synchronous)
                self._check_version()
            except BaseException:
                self._db.close(force=True)  # nobody else can let go of the file
                raise

    @contextmanager
    def _explained(self, verb: str) -> Iterator[None]:
        try:
            yield
        except apsw.Error as error:
            raise StoreError(f"the store {self.path} cannot be {verb}: {type(error).__name__}: {error}") from error

    def _run(self, sql: str, values: Any = ()) -> list[Any]:
        return list(self._db.execute(sql, values))

    def _prepare(self, synchronous: str) -> None:
        tables = self._run("SELECT count(*) FROM sqlite_schema")[0][0]
        if tables and self._run("PRAGMA application_id")[0][0] != APPLICATION:
            raise StoreError(f"the file {self.path} is a database, but not one of Belated's: choose another --store")
        self._run("PRAGMA journal_mode = WAL")
        self._run(f"PRAGMA synchronous = {synchronous}")
        self._run("PRAGMA fullfsync = ON")  # macOS: a plain fsync does not reach the disk there
        self._run("PRAGMA temp_store = MEMORY")
        if not tables:
            with self._db:
                self._run(SCHEMA)

    def _check_version(self) -> None:
        version = self._run("PRAGMA user_version")[0][0]
        if version != SCHEMA_VERSION:
            raise StoreError(
                f"the store {self.path} has schema version {version}, this release reads {SCHEMA_VERSION}: "
                "use the release that wrote it"
            )

    def append(self, entries: Sequence[Entry]) -> list[int]:
        if self._failure:
            raise StoreError(self._failure)
        self._begin()
        try:
            with self._explained("written"):
                first = self.last() + 1
                self._insert(entries, first)
                self._run("COMMIT")
        except BaseException as error:
            if _is_conflict(error.__cause__) and self._roll_back():
                raise Conflict(str(error.__cause__)) from error
            self._failure = f"{error}. Nothing more is written until a restart"
            self._roll_back()
            raise StoreError(self._failure) from error
        return list(range(first, first + len(entries)))

    def _begin(self) -> None:
        """From here on no other process writes: places are given, and entries appear, in the same order."""
        try:
            with self._explained("written"):
                self._run("BEGIN IMMEDIATE")
        except StoreError as error:
            if isinstance(error.__cause__, apsw.BusyError):  # nothing was written yet
                raise StoreUnreachable(f"{error}; try again") from error
            self._failure = f"{error}. Nothing more is written until a restart"
            raise StoreError(self._failure) from error

    def _insert(self, entries: Sequence[Entry], first: int) -> None:
        seq = first
        for start in range(0, len(entries), ROWS_AT_ONCE):
            part = entries[start : start + ROWS_AT_ONCE]
            values: list[Any] = []
            for e in part:
                values += (e.at, int(e.kind), e.experiment or seq, seq, e.round, e.arm, e.probability, e.nonce, e.seen)
                values += (e.request, e.position, e.decision, e.decided_at, e.revision, e.value, e.old, e.body, e.drawn)
                seq += 1
            self._run(f"INSERT INTO journal VALUES {', '.join([ROW] * len(part))}", values)  # noqa: S608

    def _roll_back(self) -> bool:
        """Whether that was possible; if not, the first failure is the one to tell."""
        try:
            if self._db.in_transaction:
                self._run("ROLLBACK")
        except apsw.Error:
            return False
        return True

    def last(self) -> int:
        with self._explained("read"):
            return int(self._run("SELECT coalesce(max(seq), 0) FROM journal")[0][0])

    def named(self, name: str) -> int | None:
        where = f"WHERE kind = {int(Kind.CREATED)} AND json_extract(body, '$.name') = ?"
        with self._explained("read"):
            return next((row[0] for row in self._run(f"SELECT seq FROM journal {where}", (name,))), None)  # noqa: S608

    def read(self, after: int, limit: int) -> list[Entry]:
        with self._explained("read"):
            return list(map(_entry, self._run(f"{ENTRY} WHERE seq > ? ORDER BY seq LIMIT ?", (after, limit))))

    def find(self, seqs: Sequence[int]) -> dict[int, Found]:
        found = {}
        with self._explained("read"):
            for start in range(0, len(seqs), ROWS_AT_ONCE):
                part = seqs[start : start + ROWS_AT_ONCE]
                where = f"WHERE d.seq IN ({', '.join('?' * len(part))}) AND d.kind = {DECIDED}"
                found.update({row[3]: _found(row) for row in self._run(f"{WITH_OUTCOME} {where}", part)})
        return found

    def requested(self, experiment: int, request: str) -> list[Entry]:
        where = "WHERE experiment = ? AND request = ? ORDER BY position"
        with self._explained("read"):
            return list(map(_entry, self._run(f"{ENTRY} {where}", (experiment, request))))

    def decisions(self, experiment: int, after: int, limit: int) -> list[Found]:
        where = f"WHERE d.experiment = ? AND d.seq > ? AND d.kind = {DECIDED} ORDER BY d.seq LIMIT ?"
        with self._explained("read"):
            return list(map(_found, self._run(f"{WITH_OUTCOME} {where}", (experiment, after, limit))))

    def outcomes(self, experiment: int, after: int, limit: int) -> list[Entry]:
        where = "WHERE experiment = ? AND seq > ? AND decision IS NOT NULL ORDER BY seq LIMIT ?"
        with self._explained("read"):
            return list(map(_entry, self._run(f"{ENTRY} {where}", (experiment, after, limit))))

    def history(self, decision: int) -> list[Entry]:
        with self._explained("read"):
            return list(map(_entry, self._run(f"{ENTRY} WHERE decision = ? ORDER BY revision", (decision,))))

    def events(self, experiment: int, after: int, limit: int) -> list[Entry]:
        where = "WHERE experiment = ? AND seq > ? AND body IS NOT NULL ORDER BY seq LIMIT ?"
        with self._explained("read"):
            return list(map(_entry, self._run(f"{ENTRY} {where}", (experiment, after, limit))))

    def snapshots(self) -> list[Snapshot]:
        with self._explained("read"):
            return [Snapshot(*row) for row in self._run("SELECT seq, version, state FROM snapshots ORDER BY seq DESC")]

    def save(self, snapshot: Snapshot) -> None:
        with self._explained("written"), self._db:
            self._run("INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?)", snapshot)
            older = "SELECT seq FROM snapshots ORDER BY seq DESC LIMIT -1 OFFSET ?"
            self._run(f"DELETE FROM snapshots WHERE seq IN ({older})", (KEPT_SNAPSHOTS,))  # noqa: S608

    def add_key(self, key: Key) -> None:
        with self._explained("written"), self._db:
            self._run("INSERT INTO keys VALUES (?, ?, ?, ?, ?, ?)", key)

    def revoke_key(self, id: str, at: int) -> bool:
        before = self._db.total_changes()
        with self._explained("written"), self._db:
            self._run("UPDATE keys SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL", (at, id))
        return self._db.total_changes() > before

    def keys(self) -> list[Key]:
        with self._explained("read"):
            return [Key(*row) for row in self._run("SELECT * FROM keys ORDER BY created_at, id")]

    def size(self) -> int:
        files = (self.path, Path(f"{self.path}-wal"))
        return sum(file.stat().st_size for file in files if file.exists())

    def reader(self) -> Journal:
        return SQLiteJournal(self.path, readonly=True, vfs=self._vfs)

    def check(self) -> list[str]:
        with self._explained("read"):
            return [row[0] for row in self._run("PRAGMA integrity_check") if row[0] != "ok"]

    def close(self) -> None:
        with self._explained("closed"):
            self._db.close()
