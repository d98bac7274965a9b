"""The partitions of the journal in PostgreSQL. Each holds a range of numbers, and can be dropped in one step.

The places of outcomes have partitions too, by the number of the decision and with the same bounds. Partitions are made
before their numbers are needed. An entry without one goes into the partition `rest`, so that no append fails.
"""

import logging
import time
from collections.abc import Callable
from typing import Final, NamedTuple, TypeVar, final

from psycopg import errors

from belated.errors import StoreError, StoreUnreachable
from belated.serve.store.journal import Rejected
from belated.serve.store.postgres.connection import SCHEMA, Connection, Link

SIZE = 1_000_000  # numbers in a partition
AHEAD: Final = 3  # partitions that are kept after the newest entry, because a long backup delays new ones
LARGEST_REST: Final = 32 << 20  # bytes of `rest` that may be read while others wait
PARTITION_LOCK: Final = 0x42656C63  # one more than that of snapshots
LOCK_WAIT: Final = 20  # milliseconds. Others queue behind whoever waits for a lock
PAUSE: Final = 0.2  # seconds between two attempts
PATIENCE = 60.0  # seconds
RETRY_SECONDS: Final = 10.0
PARENTS: Final = ("outcome_places", "journal")
LISTED: Final = r"""
SELECT c.relname, coalesce((regexp_match(bounds, 'FROM \(''?(\d+)'))[1]::bigint, 0),
    (regexp_match(bounds, 'TO \(''?(\d+)'))[1]::bigint
FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid, pg_get_expr(c.relpartbound, c.oid) AS bounds
WHERE i.inhparent = 'journal'::regclass AND bounds <> 'DEFAULT' ORDER BY 3
"""
# tables that a removal has detached and not dropped yet
LEFT_OVER: Final = rf"""
SELECT relname FROM pg_class
WHERE relnamespace = '{SCHEMA}'::regnamespace AND relkind = 'r' AND NOT relispartition
    AND relname ~ '^(journal|outcome_places)_\d+$' ORDER BY relname
"""  # noqa: S608
DAMAGE: Final = {
    "the table {} has no default partition. Attach the one that ends with `_rest`.": """
        SELECT partrelid::regclass::text FROM pg_partitioned_table
        WHERE partrelid IN ('journal'::regclass, 'outcome_places'::regclass) AND partdefid = 0""",
    "the table {} is left over from a removal. Run the removal again.": LEFT_OVER,
}
log = logging.getLogger("belated.store")
T = TypeVar("T")


class Partition(NamedTuple):
    """A partition of the journal. It holds the numbers from `first` up to `end`, without `end`."""

    name: str
    first: int
    end: int


def partitions(connection: Connection) -> list[Partition]:
    """Return the partitions of the journal in order, without `rest`."""
    return [Partition(*row) for row in connection.execute(LISTED).fetchall()]


def _end(connection: Connection) -> int:
    return max((one.end for one in partitions(connection)), default=0)


def briefly(connection: Connection, work: Callable[[], T], patience: float | None = None) -> T:
    """Do the work in a transaction that waits only a moment for each lock. Try again until it gets all of them.

    Raises StoreUnreachable if that takes longer than `patience` seconds. None means PATIENCE.
    """
    patience = PATIENCE if patience is None else patience
    end = time.monotonic() + patience
    while True:
        try:
            with connection.transaction():
                connection.execute(f"SET LOCAL lock_timeout = {LOCK_WAIT}".encode())
                return work()
        except (errors.LockNotAvailable, errors.DeadlockDetected) as error:
            if time.monotonic() >= end:
                raise StoreUnreachable(
                    "an open transaction uses the journal, perhaps a backup. Try again when it has ended."
                ) from error
            time.sleep(PAUSE)


def attach(connection: Connection, first: int, end: int) -> None:
    """Create an empty partition for these numbers. The journal can be read and written meanwhile."""
    for parent in PARENTS:
        name = f"{parent}_{first}"
        connection.execute(f"CREATE TABLE {name} (LIKE {parent} INCLUDING ALL)".encode())
        bounds = f"FOR VALUES FROM ({first}) TO ({end})"
        connection.execute(f"ALTER TABLE {parent} ATTACH PARTITION {name} {bounds}".encode())


def number_of(seq: int) -> int:
    """Return the number of the partition that an entry belongs to."""
    return seq // SIZE


def attach_missing(connection: Connection, number: int) -> None:
    """Create the partition of this number, unless there is one or a later one."""
    if number * SIZE >= _end(connection):
        attach(connection, number * SIZE, (number + 1) * SIZE)


def following(end: int, newest: int) -> int:
    """Return the first number of the next partition. `end` is that of the last one."""
    if newest < end:
        return end
    return (newest // SIZE + 2) * SIZE  # not the next multiple, because numbers are given out meanwhile


def make_room(connection: Connection, newest: int) -> int:
    """Create partitions ahead of the newest number. Returns the number from which on there is none.

    Another connection that does the same is not waited for.
    """

    def add() -> int | None:
        if connection.execute("SELECT pg_try_advisory_xact_lock($1)", (PARTITION_LOCK,)).fetchall() == [(False,)]:
            return None
        end = _end(connection)
        if end > newest + AHEAD * SIZE:
            return None
        [(size,)] = connection.execute("SELECT pg_relation_size('journal_rest')").fetchall()
        if size > LARGEST_REST:
            raise StoreError(f"the table journal_rest has {size:,} bytes, which is too much to add a partition")
        first = following(end, newest)
        attach(connection, first, first + SIZE)
        return first + SIZE

    while briefly(connection, add, patience=0.0) is not None:
        pass
    return _end(connection)


@final
class Room:
    """Makes partitions ahead of the numbers in use, now and then after an append. The append never fails by it."""

    def __init__(self) -> None:
        self._enough_until = 0  # the number up to which nothing is to be done
        self._again_at = 0.0

    def look(self, link: Link, newest: int) -> None:
        """Make partitions if few numbers are left."""
        if newest < self._enough_until or time.monotonic() < self._again_at:
            return
        try:
            with link.using("partitioned") as connection:
                self._enough_until = make_room(connection, newest) - (AHEAD - 1) * SIZE
        except (StoreError, Rejected) as error:
            log.warning("no partition could be added. Entries go into the rest", extra={"error": str(error)})
        if self._enough_until <= newest:
            self._again_at = time.monotonic() + RETRY_SECONDS
