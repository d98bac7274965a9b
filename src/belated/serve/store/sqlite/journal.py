"""The journal in one SQLite file. With WAL and synchronous=FULL a commit is on disk when it returns."""

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final, TypeVar, final

import apsw

from belated.errors import HistoryLost, StoreError, StoreUnreachable
from belated.serve.domain.entries import COLUMNS, Entry, Found
from belated.serve.domain.fold import Snapshot
from belated.serve.domain.history import Mark
from belated.serve.store.bases import Statement, copied
from belated.serve.store.journal import (
    NO_MARK,
    Aliased,
    Base,
    Conflict,
    Journal,
    Key,
    Record,
    Rejected,
    Removal,
    Requested,
)
from belated.serve.store.sql import (
    CREATED,
    DECIDED,
    ENTRY,
    FOUND,
    HELD,
    NEXT_ENTRY,
    SQLJournal,
    by_alias,
    by_request,
    entries_after,
    found_of,
    held,
    is_held,
)
from belated.serve.store.sqlite.files import StoreFiles, check_only_name, is_log_without_store, real
from belated.serve.store.sqlite.schema import (
    SCHEMA_VERSION,
    be_patient,
    connect,
    create,
    transaction,
    use_wal,
    version_of,
)
from belated.serve.store.sqlite.snapshot_file import SnapshotFile
from belated.serve.store.trail import adding_key, noting

T = TypeVar("T")
ROWS_AT_ONCE: Final = (
    100  # rows in one statement, which takes the interpreter's lock less often than a statement for each
)
SCRUB_TRIES, SCRUB_PAUSE = 100, 0.1  # seconds
NEWEST: Final = "SELECT max(revision) FROM journal WHERE decision = d.seq"
INSERT: Final = f"INSERT INTO journal ({', '.join(COLUMNS)}) VALUES"
ROW: Final = f"({', '.join('?' * len(COLUMNS))})"


def _is_conflict(error: BaseException | None) -> bool:
    return getattr(error, "extendedresult", 0) == apsw.SQLITE_CONSTRAINT_UNIQUE


def _parts(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """Split items into parts for one statement each."""
    return (items[start : start + ROWS_AT_ONCE] for start in range(0, len(items), ROWS_AT_ONCE))


def _is_rejection(error: BaseException) -> bool:
    """Whether the values are at fault, not the store: they cannot be passed to SQLite, or it does not take them."""
    if not isinstance(error, StoreError):
        return isinstance(error, Exception)
    return isinstance(error.__cause__, apsw.ConstraintError | apsw.MismatchError | apsw.TooBigError | apsw.RangeError)


@final
class SQLiteJournal(SQLJournal):
    """One file for any number of processes. `vfs` and `synchronous` are for tests that cut the power.

    Without `may_create` it must be there and have tables.
    """

    kind = "sqlite"
    joined = f"{FOUND} journal o ON o.decision = d.seq AND o.revision = ({NEWEST})"

    def __init__(
        self,
        path: Path | str,
        *,
        readonly: bool = False,
        vfs: str | None = None,
        synchronous: str = "FULL",
        may_create: bool = True,
    ) -> None:
        self.path, self._vfs, self._failure = Path(path), vfs, ""
        self._file = self.path if vfs else real(self.path)
        self._snapshots = SnapshotFile(self._file, vfs)
        if vfs is None and is_log_without_store(self._file):
            raise StoreError(
                f"the store {self.path} is missing or empty, but its log {self._file}-wal is there and may hold all of "
                "it. Put the store back, or move the log away to begin a new one."
            )
        if not may_create and (not self._file.exists() or self._file.stat().st_size == 0):
            raise StoreError(f"the store {self.path} is missing or empty, and must not be begun anew. Put it back.")
        if vfs is None and not readonly:
            check_only_name(self._file)
        with self._explained("opened"):
            self._db = connect(self._file, readonly=readonly, vfs=vfs, may_create=may_create)
            try:
                if not readonly:
                    self._prepare(synchronous)
                self._check_version()
                self._files = None if vfs or readonly else StoreFiles(self.path, self._db)
            except BaseException:
                self._db.close(force=True)  # the caller has no object to close
                raise

    @contextmanager
    def _explained(self, verb: str) -> Iterator[None]:
        try:
            yield
        except apsw.BusyError as error:
            raise StoreUnreachable(f"the store {self.path} is busy and cannot be {verb} now. Try again.") from error
        except apsw.Error as error:
            raise StoreError(f"the store {self.path} cannot be {verb}: {type(error).__name__}: {error}") from error

    def _run(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        return list(self._db.execute(sql, values))

    def _rows(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        with self._explained("read"):
            return self._run(sql, values)

    def _prepare(self, synchronous: str) -> None:
        is_new = version_of(self._db, self.path) == 0
        use_wal(self._db)
        self._run(f"PRAGMA synchronous = {synchronous}")
        self._run("PRAGMA fullfsync = ON")  # on macOS a plain fsync does not reach the disk
        self._run("PRAGMA temp_store = MEMORY")
        if is_new:
            create(self._db)

    def _check_version(self) -> None:
        version = version_of(self._db, self.path)
        if version < SCHEMA_VERSION:
            raise StoreError(
                f"the store {self.path} is of an older release. Run `belated migrate --store {self.path}`."
            )

    def append(self, entries: Sequence[Entry], mark: Mark = NO_MARK) -> list[int]:
        if self._failure:
            raise StoreError(self._failure)
        self._begin()
        is_committed = False
        try:
            with self._explained("written"):
                self._check_history(mark)
                first = self.last() + 1
                self._insert(entries, first)
                is_committed = True  # or it is not known
                self._run("COMMIT")
                self._check_files()
        except BaseException as error:
            if _is_conflict(error.__cause__) and self._roll_back():
                raise Conflict(str(error.__cause__)) from error
            if not is_committed and _is_rejection(error) and self._roll_back():
                raise Rejected(f"{type(error).__name__}: {error}") from error
            failure = self._fail(error)
            self._roll_back()
            raise failure from error
        return list(range(first, first + len(entries)))

    def _check_history(self, mark: Mark) -> None:
        if not super().confirms(mark):
            raise HistoryLost(
                f"the store {self.path} has lost entries up to {mark.newest.seq}. Was a backup restored? "
                "Restart the service, and run `belated verify`"
            )

    def _check_files(self) -> None:
        if self._files is not None and (lost := self._files.lost()):
            self._give_up(lost)

    def _check_sizes(self) -> None:
        """Check that no file was cut short. SQLite would extend it again, with a hole."""
        if self._files is not None and (cut := self._files.cut()):
            self._give_up(cut)

    def _give_up(self, lost: str) -> None:
        if self._files is not None and self._files.is_log(lost):
            self._keep_apart()
        raise HistoryLost(
            f"the file {lost} was moved, deleted, replaced or cut short while it was in use. Put it back, and restart"
        )

    def _keep_apart(self) -> None:
        """Write nothing of a damaged log into the file when it is closed."""
        self._db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)

    def confirms(self, mark: Mark) -> bool:
        self._check_files()
        self._check_sizes()
        return super().confirms(mark) and self._is_on_disk(mark)

    def _is_on_disk(self, mark: Mark) -> bool:
        """Whether the files hold the same. This connection keeps pages in memory that somebody may have overwritten."""
        if self._files is None:
            return True
        try:
            with self._explained("read"), closing(connect(self._file, readonly=True)) as fresh:
                return bool(fresh.execute(f"SELECT {is_held()}", held(mark)).get)
        except StoreError:
            self._keep_apart()
            raise

    def _begin(self) -> None:
        """Keep other processes from writing, so that entries appear in the order of their numbers."""
        try:
            with self._explained("written"):
                self._check_sizes()
                self._run("BEGIN IMMEDIATE")
        except StoreUnreachable:
            raise  # nothing was written
        except StoreError as error:
            raise self._fail(error) from error

    def _fail(self, error: BaseException) -> StoreError:
        """Refuse every later append, and return the error to raise."""
        self._failure = f"{str(error).rstrip('.')}. Nothing more is written until a restart."
        return (HistoryLost if isinstance(error, HistoryLost) else StoreError)(self._failure)

    def _insert(self, entries: Sequence[Entry], first: int | None) -> None:
        """Insert entries, numbered from `first` on or with their own numbers."""
        seq = first or 0
        for part in _parts(entries):
            values: list[Any] = []
            for e in part:
                seq = e.seq if first is None else seq
                values += (e.at, int(e.kind), e.experiment or seq, seq, e.round, e.arm, e.probability, e.nonce, e.seen)
                values += (e.request, e.position, e.decision, e.decided_at, e.revision, e.value, e.old, e.body, e.drawn)
                values += (e.alias, e.parts, e.policy)
                seq += 1
            self._run(f"{INSERT} {', '.join([ROW] * len(part))}", values)

    def _roll_back(self) -> bool:
        """Roll back. Returns False if that fails, so that the caller reports the first failure."""
        try:
            if self._db.in_transaction:
                self._run("ROLLBACK")
        except apsw.Error:
            return False
        return True

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Run the block in a transaction."""
        with self._explained("written"), transaction(self._db):
            yield

    def _commit(self, statements: Sequence[Statement]) -> list[int]:
        changed = []
        with self._writing():
            for sql, values in statements:
                before = self._db.total_changes()
                self._run(sql, values)
                changed.append(self._db.total_changes() - before)
        self._check_files()
        return changed

    def drop_snapshots(self, before: int) -> None:
        self._snapshots.drop_earlier(before)

    def remove(self, what: Removal) -> Iterator[int]:
        self._run("PRAGMA secure_delete = ON")  # overwrites what it deletes
        return super().remove(what)

    def scrub(self) -> None:
        """Write the file anew. Copies of what was removed may be in unused parts of its pages, and in its log."""
        with self._explained("scrubbed"):
            self._run("VACUUM")
            self._db.set_busy_timeout(0)  # it does not wait for readers, because writers would wait behind it
            try:
                for _ in range(SCRUB_TRIES):
                    if not self._run("PRAGMA wal_checkpoint(TRUNCATE)")[0][0]:
                        return
                    time.sleep(SCRUB_PAUSE)
            finally:
                be_patient(self._db)
        raise StoreUnreachable(f"readers keep the log of {self.path} in use, so traces may be in it. Try again.")

    def named(self, names: Sequence[str]) -> dict[str, int]:
        found: dict[str, int] = {}
        for part in _parts(names):
            where = f"WHERE kind = {CREATED} AND json_extract(body, '$.name') IN ({', '.join('?' * len(part))})"
            found.update(self._rows(f"SELECT json_extract(body, '$.name'), seq FROM journal {where}", part))  # noqa: S608
        return found

    def read(self, after: int, limit: int) -> list[Entry]:
        return entries_after(after, self._rows(f"{NEXT_ENTRY} WHERE seq > $1 ORDER BY seq LIMIT $2", (after, limit)))

    def find(self, seqs: Sequence[int]) -> dict[int, Found]:
        found = {}
        for part in _parts(seqs):
            where = f"WHERE d.seq IN ({', '.join('?' * len(part))}) AND d.kind = {DECIDED}"
            found.update({row[3]: found_of(row) for row in self._rows(f"{self.joined} {where}", part)})
        return found

    def snapshots(self) -> list[Snapshot]:
        return self._snapshots.load()

    def snapshot_seq(self) -> int:
        return self._snapshots.seq()

    def claim_snapshots(self) -> bool:
        return self._snapshots.claim()

    def requested(self, requests: Sequence[Requested]) -> dict[Requested, list[Entry]]:
        found: dict[Requested, list[Entry]] = {}
        for part in _parts(requests):
            asked = f"(experiment, request) IN (VALUES {', '.join(['(?, ?)'] * len(part))})"
            where = f"WHERE {asked} AND request IS NOT NULL ORDER BY position"
            found.update(by_request(self._rows(f"{ENTRY} {where}", list(chain.from_iterable(part)))))
        return found

    def aliased(self, aliases: Sequence[Aliased]) -> dict[Aliased, list[Entry]]:
        found: dict[Aliased, list[Entry]] = {}
        for part in _parts(aliases):
            asked = f"(experiment, alias) IN (VALUES {', '.join(['(?, ?)'] * len(part))})"
            where = f"WHERE {asked} AND alias IS NOT NULL ORDER BY position"
            found.update(by_alias(self._rows(f"{ENTRY} {where}", list(chain.from_iterable(part)))))
        return found

    def save(self, snapshot: Snapshot) -> None:
        self._snapshots.save(snapshot)

    def drop_snapshot(self, seq: int) -> None:
        self._snapshots.drop(seq)

    def fill(
        self,
        entries: Iterable[Entry],
        snapshots: Sequence[Snapshot],
        keys: Sequence[Key],
        base: tuple[Base, bytes] | None = None,
        records: Sequence[Record] = (),
    ) -> None:
        with self._writing():
            if self._run(HELD)[0][0]:
                raise StoreError(f"the store {self.path} is not empty. Choose another.")
            stream = iter(entries)
            while page := list(islice(stream, ROWS_AT_ONCE)):
                self._insert(page, None)
            for sql, values in (*chain.from_iterable(adding_key(key, None, None) for key in keys), *noting(records)):
                self._run(sql, values)
            for sql, values in copied(base):
                self._run(sql, values)
        for snapshot in snapshots:
            self._snapshots.save(snapshot)

    def size(self) -> int:
        files = (self._file, Path(f"{self._file}-wal"))
        return sum(file.stat().st_size for file in files if file.exists())

    def reader(self) -> Journal:
        return SQLiteJournal(self.path, readonly=True, vfs=self._vfs)

    def check(self) -> list[str]:
        return [row[0] for row in self._rows("PRAGMA integrity_check") if row[0] != "ok"]

    def close(self) -> None:
        self._snapshots.release()
        with self._explained("closed"):
            self._db.close()
