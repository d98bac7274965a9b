"""The partitions of the journal in PostgreSQL. Each holds a range of numbers, and can be dropped in one step.

The places of outcomes have partitions too, by the number of the decision and with the same bounds. Partitions are made
before their numbers are needed. An entry without one goes into the partition `rest`, so that no append fails.
"""

import time
from collections.abc import Callable
from typing import Final, NamedTuple, TypeVar

from psycopg import errors

from belated.errors import StoreUnreachable
from belated.serve.store.postgres.connection import SCHEMA, Connection

SIZE = 1_000_000  # numbers in a partition
FAR: Final = 10**12  # more than the entries that a table can hold, which has 2**32 pages of at most 120 entries
PARTITION_LOCK: Final = 0x42656C63  # one more than that of snapshots
LOCK_WAIT: Final = 20  # milliseconds. Others queue behind whoever waits for a lock
PAUSE: Final = 0.2  # seconds between two attempts
PATIENCE = 60.0  # seconds
PARENTS: Final = ("outcome_places", "journal")
LISTED: Final = r"""
SELECT c.relname, coalesce((regexp_match(bounds, 'FROM \(''?(\d+)'))[1]::bigint, 0),
    (regexp_match(bounds, 'TO \(''?(\d+)'))[1]::bigint
FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid, pg_get_expr(c.relpartbound, c.oid) AS bounds
WHERE i.inhparent = 'journal'::regclass AND bounds <> 'DEFAULT' ORDER BY 3
"""
REMOVED_PREFIX: Final = "removed_"  # of a table that a removal has taken out of the journal
TABLES: Final = f"""
SELECT relname FROM pg_class
WHERE relnamespace = '{SCHEMA}'::regnamespace AND relkind = 'r' AND NOT relispartition
    AND relname ~ '^{{}}(journal|outcome_places)_\\d+$' ORDER BY relname
"""  # noqa: S608
LEFT_OVER: Final = TABLES.format(REMOVED_PREFIX)  # They are in nobody's way until the next removal drops them
DAMAGE: Final = {
    "the table {} has no default partition. Attach the one that ends with `_rest`.": """
        SELECT partrelid::regclass::text FROM pg_partitioned_table
        WHERE partrelid IN ('journal'::regclass, 'outcome_places'::regclass) AND partdefid = 0""",
    "the table {} is not attached to the journal. Attach it, or drop it if its entries were removed.": TABLES.format(
        ""
    ),
}
T = TypeVar("T")


class Partition(NamedTuple):
    """A partition of the journal. It holds the numbers from `first` up to `end`, without `end`."""

    name: str
    first: int
    end: int

    @property
    def unused(self) -> int:
        """How many of its last numbers are never used. Its bounds were proven while any number could still come."""
        return FAR if self.end - self.first > FAR else 0


def partitions(connection: Connection) -> list[Partition]:
    """Return the partitions of the journal in order, without `rest`."""
    return [Partition(*row) for row in connection.execute(LISTED).fetchall()]


def end_of_last(connection: Connection) -> int:
    """Return the number from which on there is no partition."""
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
    if number * SIZE >= end_of_last(connection):
        attach(connection, number * SIZE, (number + 1) * SIZE)


def following(end: int, newest: int) -> int:
    """Return the first number of the next partition. `end` is that of the last one."""
    if newest < end:
        return end
    return (newest // SIZE + 2) * SIZE  # not the next multiple, because numbers are given out meanwhile


def leap(connection: Connection, first: int, patience: float | None = None) -> None:
    """Let the next entry have this number, unless numbers have come as far. Those in between are never used."""

    def work() -> None:
        connection.execute("ALTER SEQUENCE places CACHE 1")  # changes nothing, but nobody else draws numbers meanwhile
        last = "coalesce(pg_sequence_last_value('places'), 0)"
        connection.execute(f"SELECT setval('places', {first - 1}) WHERE {last} < {first - 1}".encode())

    briefly(connection, work, patience)
