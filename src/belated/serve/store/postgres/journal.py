"""The journal in PostgreSQL. Any number of servers on any number of machines read and write it at once."""

import hashlib
import logging
import re
import struct
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, groupby
from typing import Any, Final, final

import msgspec
import numpy as np
from psycopg import errors

from belated.errors import HistoryLost, StoreError, StoreUnreachable
from belated.serve.domain.entries import COLUMNS, Drawings, Entry, EntryKind, Found, with_seq
from belated.serve.domain.fold import Snapshot
from belated.serve.domain.history import Mark, place_of
from belated.serve.store.bases import BASE, REMOVED, Statement, copied
from belated.serve.store.journal import (
    MOST_OUTCOMES,
    NO_MARK,
    Aliased,
    Base,
    Busy,
    Conflict,
    Journal,
    Key,
    Record,
    Rejected,
    Removal,
    Requested,
)
from belated.serve.store.postgres import partitions, places, removal, rest
from belated.serve.store.postgres.arrays import Array, array
from belated.serve.store.postgres.connection import SCHEMA, Connection, Link
from belated.serve.store.postgres.room import Room
from belated.serve.store.postgres.schema import check_version
from belated.serve.store.sql import (
    BOTH,
    CREATED,
    DECIDED,
    DROP_SNAPSHOT,
    DROP_SNAPSHOTS,
    ENTRY,
    FOUND,
    HELD,
    LEFT,
    NEWEST_SAVED,
    NEXT_ENTRY,
    SQLJournal,
    by_alias,
    by_request,
    entries_after,
    entry_of,
    found_of,
    held,
    is_held,
    loaded,
    saving,
)
from belated.serve.store.trail import adding_key, noting

SNAPSHOT_LOCK: Final = 0x42656C62  # one more than that of migrations
# One statement for all keys. It locks them in one order, so that two servers cannot lock up.
NOTE_USES: Final = """
UPDATE keys k SET used_at = new.at FROM (
    SELECT o.id, u.at FROM keys o JOIN unnest($1::text[], $2::bigint[]) AS u (id, at) ON o.id = u.id
    ORDER BY o.id FOR UPDATE OF o
) AS new WHERE k.id = new.id AND coalesce(k.used_at, 0) < new.at
"""
MAX_APPENDS: Final = 5  # attempts at one append that the server rolls back in favour of another
MOST_WAITING: Final = 100
TYPES: Final = {
    **dict.fromkeys(COLUMNS, "bigint"),
    **dict.fromkeys(("probability", "value", "old"), "double precision"),
    "request": "text",
    **dict.fromkeys(("body", "drawn", "alias", "parts", "name"), "bytea"),
}
WHOLE: Final = ("seq", "experiment", "at", "round", "arm", "nonce", "seen", "policy")  # the whole numbers of Drawings
UNNUMBERED: Final = [column for column in TYPES if column != "seq"]
# The transaction must get its xid before its first number. Horizon relies on that.
NEXT_SEQ: Final = "nextval(CASE WHEN pg_current_xact_id() IS NOT NULL THEN 'places'::regclass END)"
# Whether entries are still there, by their number, time and nonce. LATERAL with a limit looks up each by its number.
# The least and the greatest number spare other partitions from being opened.
ARE_KEPT: Final = """(
    SELECT count(*) FROM unnest(${}::bigint[], ${}::bigint[], ${}::bigint[]) AS known (seq, at, nonce), LATERAL (
        SELECT 1 FROM journal j WHERE j.seq = known.seq AND j.at = known.at AND coalesce(j.nonce, -1) = known.nonce
        AND j.seq >= ${} AND j.seq <= ${} LIMIT 1
    ) AS kept
) = coalesce(cardinality(${}::bigint[]), 0)""".format(*(len(UNNUMBERED) + 12 + n for n in (0, 1, 2, 3, 4, 0)))  # noqa: S608
INSERT: Final = f"""
INSERT INTO journal (seq, {", ".join(UNNUMBERED)})
SELECT seq, {", ".join("coalesce(nullif(experiment, 0), seq)" if c == "experiment" else c for c in UNNUMBERED)}
FROM (
    SELECT {NEXT_SEQ} AS seq, handed.*
    FROM (
        SELECT * FROM unnest({", ".join(f"${n}::{TYPES[c]}[]" for n, c in enumerate(UNNUMBERED, 1))})
        WITH ORDINALITY AS row ({", ".join(UNNUMBERED)}, number)
        WHERE (SELECT {is_held(len(UNNUMBERED) + 1)}) AND {ARE_KEPT} ORDER BY number
    ) AS handed
) AS placed
RETURNING seq
"""  # noqa: S608
DRAWN: Final = "SELECT coalesce(pg_sequence_last_value('places'), 0)"
LAST: Final = 2**63 - 1
PRIMARY_KEY: Final = re.compile(r"journal(_\w+)?_pkey")  # of any partition
log = logging.getLogger("belated.store")
LEAP_PATIENCE: Final = 1.0  # seconds
RETRIED: Final = (errors.SerializationFailure, errors.DeadlockDetected, errors.CheckViolation)
COPIED: Final = {
    **TYPES,
    **dict.fromkeys(("kind", "policy"), "smallint"),
    **dict.fromkeys(("arm", "position", "revision"), "integer"),
}
COPY: Final = f"COPY journal ({', '.join(UNNUMBERED)}, seq) FROM STDIN (FORMAT BINARY)"
# The oldest xid in use and the next free one. A snapshot's xmax follows the last xid that ended, so it may be lower.
XIDS: Final = """
SELECT pg_snapshot_xmin(now)::text::bigint, xmax::text::bigint + age(xmax::xid)
FROM pg_current_snapshot() AS now, pg_snapshot_xmax(now) AS xmax
"""
# A commit that waits for the standby, if there is one that commits wait for
SETTLE: Final = """
SELECT CASE WHEN current_setting('synchronous_standby_names') <> ''
THEN pg_logical_emit_message(true, 'belated', ''::text) END
"""
CLOCK: Final = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
READ: Final = f"{NEXT_ENTRY} WHERE {LEFT}"
# LATERAL with an order or a limit makes PostgreSQL use the index for each, whatever it knows of the table.
REQUESTED: Final = f"""
SELECT made.* FROM unnest($1::bigint[], $2::text[]) AS asked (experiment, request), LATERAL (
    SELECT p.seq FROM request_places p WHERE p.experiment = asked.experiment AND p.request = asked.request
    ORDER BY position
) AS place, LATERAL ({ENTRY} j WHERE j.seq = place.seq LIMIT 1) AS made
"""  # noqa: S608
ALIASED: Final = f"""
SELECT made.* FROM unnest($1::bigint[], $2::bytea[]) AS asked (experiment, alias), LATERAL (
    SELECT p.seq FROM alias_places p WHERE p.experiment = asked.experiment AND p.alias = asked.alias
    ORDER BY position
) AS place, LATERAL ({ENTRY} j WHERE j.seq = place.seq LIMIT 1) AS made
"""  # noqa: S608
# A removal forgets the keys and aliases of a partition before it drops that. They may be in use again meanwhile.
PLACED: Final = {"request": "p.request", "alias": "a.alias", "position": "coalesce(p.position, a.position)"}
LEFT_ENTRIES: Final = f"""
SELECT {", ".join(PLACED.get(name, f"e.{name}") for name in COLUMNS)}
FROM (SELECT * FROM journal WHERE {LEFT}) AS e LEFT JOIN LATERAL (
    SELECT p.request, p.position FROM request_places p WHERE {places.PLACES["request_places"].found_by} LIMIT 1
) AS p ON true LEFT JOIN LATERAL (
    SELECT p.alias, p.position FROM alias_places p WHERE {places.PLACES["alias_places"].found_by} LIMIT 1
) AS a ON true ORDER BY e.seq
"""  # noqa: S608
NAMED: Final = "SELECT name, seq FROM name_places WHERE name = ANY($1::bytea[])"
NEWEST_OUTCOME: Final = f"""
SELECT newest.* FROM (
    SELECT p.seq FROM outcome_places p WHERE p.decision = d.seq ORDER BY p.revision DESC LIMIT 1
) AS place, LATERAL ({ENTRY} j WHERE j.seq = place.seq LIMIT 1) AS newest
"""  # noqa: S608
FIND: Final = f"""
SELECT {BOTH} FROM unnest($1::bigint[]) AS asked (seq), LATERAL (
    SELECT * FROM journal j WHERE j.seq = asked.seq AND j.seq >= $2 AND j.seq <= $3 LIMIT 1
) AS d LEFT JOIN LATERAL ({NEWEST_OUTCOME}) AS o ON true WHERE d.kind = {DECIDED} ORDER BY d.seq
"""  # noqa: S608
HISTORY: Final = f"""
SELECT made.* FROM (
    SELECT p.seq FROM outcome_places p WHERE p.decision = $1 AND p.revision >= $2 ORDER BY p.revision LIMIT $3
) AS place, LATERAL ({ENTRY} j WHERE j.seq = place.seq LIMIT 1) AS made
"""  # noqa: S608
BYTES: Final = f"""
SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c
WHERE c.relnamespace = '{SCHEMA}'::regnamespace AND c.relkind = 'r'
"""  # noqa: S608
# Whole columns as bytes. psycopg would handle each value alone.
DRAWINGS: Final = f"""
SELECT {", ".join(f"string_agg(int8send(coalesce({name}, 0)::bigint), ''::bytea ORDER BY seq)" for name in WHOLE)},
    string_agg(float8send(coalesce(probability, 0)), ''::bytea ORDER BY seq)
FROM journal WHERE seq = ANY($1::bigint[]) AND seq >= $2 AND seq <= $3 AND kind = {DECIDED}
"""  # noqa: S608
DAMAGE: Final = {
    "the index {} is invalid. REINDEX it.": f"""
        SELECT indexrelid::regclass::text FROM pg_index JOIN pg_class t ON t.oid = indrelid
        WHERE t.relnamespace = '{SCHEMA}'::regnamespace AND NOT indisvalid""",  # noqa: S608
    "the index {} is missing": """
        SELECT name FROM unnest(
            ARRAY['one_name', 'one_effect', 'one_outcome', 'one_event', 'one_alias', 'decisions', 'events', 'outcomes']
        ) AS name
        WHERE to_regclass(name) IS NULL""",
    "the sequence `places` is behind entry {}. Set it to that number.": f"""
        SELECT max(seq) FROM journal HAVING max(seq) > ({DRAWN})""",  # noqa: S608
    "entry {}: its experiment was never created": f"""
        SELECT seq FROM journal e WHERE kind <> {BASE} AND NOT EXISTS
        (SELECT FROM journal c WHERE c.seq = e.experiment AND c.kind = {CREATED}) ORDER BY seq LIMIT 10""",  # noqa: S608
    "entry {}: its decision was never made": f"""
        SELECT seq FROM journal o WHERE decision > {REMOVED} AND NOT EXISTS
        (SELECT FROM journal d WHERE d.seq = o.decision AND d.kind = {DECIDED}) ORDER BY seq LIMIT 10""",  # noqa: S608
    **places.DAMAGE,
    **partitions.DAMAGE,
}  # the problem, and the statement that finds it


@final
class Horizon:
    """The entry up to which the journal is final. Numbers are drawn in order, but committed in any order.

    Let V be the last number drawn, and N the next xid, read after V. A transaction that drew a number up to V got its
    xid before that, so before N was read. Xids rise, so its xid is below N. Once the oldest xid in use (a snapshot's
    xmin) is N or more, all these transactions have ended. Every later statement then sees all they have written up
    to V.

    A horizon is valid for one connection. After a crash, the server may give out the same numbers and xids again.
    """

    def __init__(self) -> None:
        self.seq = 0
        self._waiting: deque[tuple[int, int]] = deque()

    def look(self, drawn: int, oldest: int, following: int) -> None:
        """Add what the server says: V, the oldest xid in use, and N."""
        if len(self._waiting) == MOST_WAITING:
            self._waiting.pop()  # the new one covers more entries, though later
        self._waiting.append((drawn, following))
        while self._waiting and self._waiting[0][1] <= oldest:
            self.seq = self._waiting.popleft()[0]

    @property
    def is_clear(self) -> bool:
        """Whether no open transaction was in the way at the last look."""
        return not self._waiting


@final
class PostgresJournal(SQLJournal):
    """A journal with its own connection to a database."""

    kind = "postgresql"
    is_far = True
    turns = (("LOCK TABLE audit IN SHARE ROW EXCLUSIVE MODE", ()),)
    joined = f"{FOUND} LATERAL ({NEWEST_OUTCOME}) o ON true"
    # Only an index by experiment gives this order. Otherwise a plan for any experiment may go through the whole journal
    # by its primary key, because it does not know that this experiment is small.
    # `seq > $2` spares earlier partitions.
    page = (
        "({0}experiment, {0}seq) > ($1, $2) AND {0}experiment <= $1 AND {0}seq > $2 "
        "ORDER BY {0}experiment, {0}seq LIMIT $3"
    )

    def __init__(self, url: str, *, readonly: bool = False, silence_timeout: float | None = None) -> None:
        self._link = Link(url, readonly=readonly, silence_timeout=silence_timeout, check=check_version)
        self._horizon, self._connection_number = Horizon(), 0
        self._newest: Entry | None = None  # the newest entry read or written
        self._room = Room()
        self._is_warned = False  # of full_page_writes
        self._saved = self._bytes = 0  # at the last look, the newest snapshot and the size of the store
        self._may_have_standby = True  # whether commits may wait for a standby
        with self._link.using("opened"):
            pass

    def _rows(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        with self._link.using("read") as connection:
            return _all(connection, sql, values)

    def _rows_at_once(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        """Raises Busy in a server. A command may wait."""
        if self._link.silence_timeout is None:
            return self._rows(sql, values)
        with self._link.using("read") as connection:
            try:
                with connection.pipeline(), connection.transaction():
                    connection.execute(f"SET LOCAL lock_timeout = {partitions.LOCK_WAIT}".encode())
                    cursor = connection.execute(sql.encode(), values, binary=True)
                return cursor.fetchall()
            except errors.LockNotAvailable as error:
                raise Busy(f"an open transaction has locked a table of the store {self._link.name}") from error

    def append(self, entries: Sequence[Entry], mark: Mark = NO_MARK) -> list[int]:
        if self._link.readonly:
            raise StoreError(f"the store {self._link.name} was opened for reading only")
        if not entries:
            return []
        try:
            values = [*columns(entries), *guards(mark)]
        except (struct.error, ValueError) as error:
            raise Rejected(f"{type(error).__name__}: {error}") from error
        for attempt in range(MAX_APPENDS):
            try:
                seqs = self._insert(values)
                if not seqs:
                    raise self._lost(mark.newest.seq)
                self._know(with_seq(entries[-1], seqs[-1]))
                self._room.look(self._link, seqs[-1])
                return seqs
            except StoreUnreachable as error:
                if not isinstance(error.__cause__, RETRIED) or attempt == MAX_APPENDS - 1:
                    raise
        raise AssertionError("not reached")

    def _lost(self, seq: int) -> HistoryLost:
        return HistoryLost(
            f"the store {self._link.name} has lost entries up to {seq}. Was there a failover, or a backup restored? "
            "Restart the service, and run `belated verify`."
        )

    def _insert(self, values: Sequence[Any]) -> list[int]:
        """Insert all entries with one statement, which is one transaction and one round trip.

        Returns nothing if the history is lost.
        """
        with self._link.using("written") as connection:
            if self._connection_number != self._link.number:
                self._begin_anew(connection)
            try:
                return [row[0] for row in self._committed(connection, INSERT, values)]
            except errors.UniqueViolation as error:
                if PRIMARY_KEY.fullmatch(error.diag.constraint_name or ""):
                    message = f"the sequence `places` of the store {self._link.name} is behind. Run `belated verify`."
                    raise StoreError(message) from error
                raise Conflict(error.diag.constraint_name) from error
            except errors.CheckViolation as error:
                if (numbers := rest.refused_by(error)) is None:
                    raise
                partitions.leap(connection, numbers.end, LEAP_PATIENCE)
                raise StoreUnreachable(f"numbers have leapt to {numbers.end}. Send it again.") from error

    def _committed(self, connection: Connection, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        """Run a statement that commits. Raises StoreUnreachable if it did not wait for its standby."""
        self._link.notices.doubts.clear()
        rows = _all(connection, sql, values)
        self._check_doubts()
        return rows

    def _check_doubts(self) -> None:
        if doubts := self._link.notices.doubts:
            raise StoreUnreachable(f"the store {self._link.name} warns: {', '.join(doubts)}")

    def settle(self) -> None:
        if self._may_have_standby:
            with self._link.using("written") as connection:
                self._committed(connection, SETTLE)

    def clock(self) -> int | None:
        return int(self._rows(CLOCK)[0][0])

    def named(self, names: Sequence[str]) -> dict[str, int]:
        by_digest = {_digest(name): name for name in names}
        found = self._rows(NAMED, (array("bytea", [*by_digest]),))
        return {by_digest[digest]: seq for digest, seq in found}

    def read(self, after: int, limit: int) -> list[Entry]:
        with self._link.using("read") as connection:
            if self._connection_number != self._link.number:
                self._begin_anew(connection)
            rows: list[Any] = []
            if after < self._horizon.seq:
                rows = _all(connection, READ, (after, self._horizon.seq, limit))
            if not rows:
                rows = self._look(connection, after, limit)
        page = entries_after(after, rows)
        if page:
            self._know(page[-1])
        return page

    def _know(self, entry: Entry) -> None:
        if self._newest is None or entry.seq >= self._newest.seq:
            self._newest = entry

    def _begin_anew(self, connection: Connection) -> None:
        """Check on a new connection that the newest known entry still exists. A failover may have lost it."""
        self._horizon = Horizon()
        if self._newest is not None:
            seq = self._newest.seq
            found = [place_of(entry_of(row[:-1])) for row in _all(connection, READ, (seq - 1, seq, 1))]
            if found != [place_of(self._newest)]:  # its Idempotency-Key may have been forgotten
                raise self._lost(seq)
        self._connection_number = self._link.number

    def _look(self, connection: Connection, after: int, limit: int) -> list[Any]:
        """Find which entries are final. Read at the same time if no transaction is likely to be in the way."""
        statements: list[tuple[str, Sequence[Any]]] = [(DRAWN, ()), (XIDS, ())]
        if is_clear := self._horizon.is_clear:
            statements.append((READ, (after, LAST, limit)))
        with connection.pipeline():  # each statement has its own snapshot, later than those before
            cursors = [connection.execute(sql.encode(), values, binary=True) for sql, values in statements]
        [(drawn,)], [(oldest, following)], *read = (cursor.fetchall() for cursor in cursors)
        self._horizon.look(drawn, oldest, following)
        if is_clear:
            return [row for row in read[0] if row[3] <= self._horizon.seq]
        return _all(connection, READ, (after, self._horizon.seq, limit)) if after < self._horizon.seq else []

    def left(self, after: int, until: int, limit: int) -> list[Entry]:
        return list(map(entry_of, self._rows(LEFT_ENTRIES, (after, until, limit))))

    def find(self, seqs: Sequence[int]) -> dict[int, Found]:
        return {row[3]: found_of(row) for row in self._rows(FIND, (array("bigint", seqs), *_bounds(seqs)))}

    def history(self, decision: int, first: int = 0, limit: int = MOST_OUTCOMES) -> list[Entry]:
        return list(map(entry_of, self._rows(HISTORY, (decision, first, limit))))

    def drawings(self, seqs: Sequence[int]) -> Drawings:
        [columns] = self._rows(DRAWINGS, (array("bigint", seqs), *_bounds(seqs)))
        types = (*(">i8" for _ in range(len(columns) - 1)), ">f8")
        read = (np.frombuffer(column or b"", type) for column, type in zip(columns, types, strict=True))
        return Drawings(*(column.astype(column.dtype.newbyteorder("=")) for column in read))

    def snapshots(self) -> list[Snapshot]:
        return loaded(self._rows)

    def snapshot_seq(self) -> int:
        with suppress(Busy):  # then what it was at the last look
            self._saved = int(self._rows_at_once(NEWEST_SAVED)[0][0])
        return self._saved

    def claim_snapshots(self) -> bool:
        [(is_claimed,)] = self._rows("SELECT pg_try_advisory_lock($1)", (SNAPSHOT_LOCK,))
        return bool(is_claimed)

    def requested(self, requests: Sequence[Requested]) -> dict[Requested, list[Entry]]:
        experiments, keys = zip(*requests, strict=True) if requests else ((), ())
        return by_request(self._rows(REQUESTED, (array("bigint", experiments), array("text", keys))))

    def aliased(self, aliases: Sequence[Aliased]) -> dict[Aliased, list[Entry]]:
        experiments, names = zip(*aliases, strict=True) if aliases else ((), ())
        return by_alias(self._rows(ALIASED, (array("bigint", experiments), array("bytea", names))))

    def save(self, snapshot: Snapshot) -> None:
        for statements in saving(snapshot):  # a long transaction would hide newer entries from all servers
            with self._link.using("written") as connection, connection.transaction():
                for sql, values in statements:
                    connection.execute(sql.encode(), values)

    def drop_snapshot(self, seq: int) -> None:
        self._commit([(sql, (seq,)) for sql in DROP_SNAPSHOT])

    def _commit(self, statements: Sequence[Statement]) -> list[int]:
        """Send all statements at once, because the server may be milliseconds away."""
        with self._link.using("written") as connection, connection.transaction():
            with connection.pipeline():
                cursors = [connection.execute(sql.encode(), values) for sql, values in statements]
            return [cursor.rowcount for cursor in cursors]

    def note_uses(self, uses: Mapping[str, int]) -> None:
        ids = sorted(uses)
        if ids:
            self._commit_at_once([(NOTE_USES, (array("text", ids), array("bigint", [uses[id] for id in ids])))])

    def _commit_at_once(self, statements: Sequence[Statement]) -> list[int]:
        """Raises Busy in a server. A command may wait. Raises StoreUnreachable if it did not wait for its standby."""
        with self._link.using("written") as connection:
            self._link.notices.doubts.clear()
            try:
                with connection.transaction():
                    with connection.pipeline():  # because the server may be milliseconds away
                        if self._link.silence_timeout is not None:  # a server, in which others wait meanwhile
                            connection.execute(f"SET LOCAL lock_timeout = {partitions.LOCK_WAIT}".encode())
                        cursors = [connection.execute(sql.encode(), values) for sql, values in statements]
                    changed = [cursor.rowcount for cursor in cursors]
            except (errors.LockNotAvailable, errors.DeadlockDetected) as error:
                raise Busy(f"an open transaction has locked a table of the store {self._link.name}") from error
            self._check_doubts()
            return changed

    def drop_snapshots(self, before: int) -> None:
        self._commit([(sql, (before,)) for sql in DROP_SNAPSHOTS])

    def scrub(self) -> None:
        """Free the space of what was removed. Servers go on meanwhile."""
        with self._link.using("written") as connection:
            connection.execute(
                "VACUUM journal, request_places, alias_places, outcome_places, base_parts, snapshot_parts"
            )

    def fill(
        self,
        entries: Iterable[Entry],
        snapshots: Sequence[Snapshot],
        keys: Sequence[Key],
        base: tuple[Base, bytes] | None = None,
        records: Sequence[Record] = (),
    ) -> None:
        with self._link.using("written") as connection, connection.transaction():
            connection.execute("LOCK TABLE journal, keys IN EXCLUSIVE MODE")
            if _all(connection, HELD)[0][0]:
                raise StoreError(f"the store {self._link.name} is not empty. Choose another.")
            for number, piece in groupby(entries, lambda entry: partitions.number_of(entry.seq)):
                partitions.attach_missing(connection, number)
                _copy(connection, piece)
            connection.execute("SELECT setval('places', max(seq)) FROM journal HAVING max(seq) > 0")
            for sql, values in (*chain.from_iterable(adding_key(key, None, None) for key in keys), *noting(records)):
                connection.execute(sql.encode(), values)
            for sql, values in copied(base):
                connection.execute(sql.encode(), values)
        for snapshot in snapshots:
            self.save(snapshot)

    def remove(self, what: Removal) -> Iterator[int]:
        """Remove rows in small transactions. Yields how many were removed by each."""
        return removal.remove(self._link, what)

    def size(self) -> int:
        with suppress(Busy):  # then what it was at the last look
            self._bytes = int(self._rows_at_once(BYTES)[0][0])
        return self._bytes

    def require_durability(self) -> None:
        names = ("fsync", "full_page_writes", "synchronous_standby_names")
        settings = self._rows("SELECT current_setting(name) FROM unnest($1::text[]) AS name", (array("text", names),))
        (fsync,), (full_pages,), (standbys,) = settings
        self._may_have_standby = standbys != ""
        if fsync == "off":
            raise StoreUnreachable(
                f"the store {self._link.name} has fsync = off, so that a crash of its machine loses acknowledged "
                "decisions. Set fsync = on in postgresql.conf and reload it."
            )
        if full_pages == "off" and not self._is_warned:
            said = "PostgreSQL has full_page_writes = off. A crash of its machine may damage the store"
            log.warning(said, extra={"store": self._link.name})
        self._is_warned = full_pages == "off"

    def reader(self) -> Journal:
        return PostgresJournal(self._link.url, readonly=True, silence_timeout=self._link.silence_timeout)

    def check(self) -> list[str]:
        with self._link.using("read") as connection, connection.transaction():
            connection.execute("SELECT set_config('enable_seqscan', 'on', true)")  # all of the journal is read
            return [what.format(row[0]) for what, sql in DAMAGE.items() for row in _all(connection, sql)]

    def close(self) -> None:
        self._room.close()
        self._link.close()


def _copy(connection: Connection, entries: Iterable[Entry]) -> None:
    with connection.cursor().copy(COPY.encode()) as copy:
        copy.set_types([COPIED[name] for name in (*UNNUMBERED, "seq")])
        for entry in entries:
            copy.write_row((*_row(entry), entry.seq))


def guards(mark: Mark) -> list[Any]:
    """Return the last arguments of INSERT, which say what the store must hold."""
    known = list(zip(*mark.also, strict=True)) if mark.also else [(), (), ()]
    return [*held(mark), *(array("bigint", column) for column in known), *_bounds(known[0])]


def _bounds(seqs: Sequence[int]) -> tuple[int, int]:
    """Return the least and the greatest number. No number is in the bounds of none."""
    return min(seqs, default=1), max(seqs, default=0)


def columns(entries: Sequence[Entry]) -> list[Array]:
    """Return the first arguments of INSERT."""
    values = zip(*map(_row, entries), strict=True)
    return [array(TYPES[name], column) for name, column in zip(UNNUMBERED, values, strict=True)]


def _all(connection: Connection, sql: str, values: Sequence[Any] = ()) -> list[Any]:
    return connection.execute(sql.encode(), values, binary=True).fetchall()


def _row(e: Entry) -> tuple[Any, ...]:
    """Return the values of the columns in UNNUMBERED."""
    name = _digest(msgspec.json.decode(e.body)["name"]) if e.kind is EntryKind.CREATED and e.body else None
    first = e.at, int(e.kind), e.experiment, e.round, e.arm, e.probability, e.nonce, e.seen, e.request, e.position
    second = e.decision, e.decided_at, e.revision, e.value, e.old, e.body, e.drawn
    return *first, *second, e.alias, e.parts, e.policy, name


def _digest(name: str) -> bytes:
    """Hash a name, so that an index can hold it whatever its length and characters."""
    return hashlib.sha256(name.encode()).digest()
