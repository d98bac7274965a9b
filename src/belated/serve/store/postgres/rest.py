"""Adds partitions beside a rest that is too large to be read while others wait.

Whenever a partition is attached, PostgreSQL reads the rest for entries that belong there, unless a constraint says that
it has none. Such a constraint is proven while servers read and write. From its beginning on it refuses entries with the
numbers of the new partitions, which are ahead of those in use. If numbers come to them too soon, they leap over. So
nobody is stopped by a constraint that a killed server has left behind. The next one uses it, or drops it.
"""

import re
from typing import Final, NamedTuple

from psycopg import errors

from belated.errors import StoreError
from belated.serve.store.postgres import partitions
from belated.serve.store.postgres.connection import Connection
from belated.serve.store.postgres.partitions import PARTITION_LOCK, attach, briefly, end_of_last, following

AHEAD: Final = 3  # partitions that are kept after the newest entry, because a long backup delays new ones
LARGEST_REST = 32 << 20  # bytes of `rest` that may be read while others wait
REST_LOCK: Final = 0x42656C64  # one more than that of partitions
COLUMNS: Final = {"journal_rest": "seq", "outcome_places_rest": "decision"}  # that say where a row belongs
NAME: Final = re.compile(r"kept_free_(\d+)_(\d+)")
FOUND: Final = f"""
SELECT DISTINCT conname FROM pg_constraint
WHERE conrelid IN ({", ".join(f"'{table}'::regclass" for table in COLUMNS)}) AND conname ~ '^{NAME.pattern}$'
"""  # noqa: S608
DRAWN: Final = "SELECT coalesce(pg_sequence_last_value('places'), 0)"


class RestTooLarge(StoreError):
    """The rest may not be read while others wait."""


class KeptFree(NamedTuple):
    """Numbers that the rest does not take, from `first` up to `end`, without `end`."""

    first: int
    end: int

    @property
    def name(self) -> str:
        """The name of the constraint."""
        return f"kept_free_{self.first}_{self.end}"


def check_size(connection: Connection) -> None:
    """Raise RestTooLarge if attaching a partition would take long."""
    [(size,)] = connection.execute("SELECT pg_relation_size('journal_rest')").fetchall()
    if size > LARGEST_REST:
        raise RestTooLarge(f"the table journal_rest has {size:,} bytes")


def refused_by(error: errors.CheckViolation) -> KeptFree | None:
    """Return the numbers that were kept free and came nevertheless."""
    return _named(error.diag.constraint_name or "")


def _named(name: str) -> KeptFree | None:
    found = NAME.fullmatch(name)
    return found and KeptFree(int(found[1]), int(found[2]))


def kept_free(connection: Connection) -> list[KeptFree]:
    """Return the numbers that the rest does not take now."""
    names = [_named(name) for (name,) in connection.execute(FOUND.encode()).fetchall()]
    return [one for one in names if one]


def stop_keeping(connection: Connection) -> None:
    """Let the rest take all numbers again."""
    for one in kept_free(connection):
        for table in COLUMNS:
            connection.execute(f"ALTER TABLE {table} DROP CONSTRAINT IF EXISTS {one.name}".encode())


def add_beside(connection: Connection) -> None:
    """Create partitions without reading the rest under a lock that others wait for.

    Another connection that does the same is not waited for. Raises StoreUnreachable if an open transaction is in the
    way. The next call goes on then.
    """
    if connection.execute(f"SELECT pg_try_advisory_lock({REST_LOCK})".encode()).fetchall() == [(False,)]:
        return
    numbers = briefly(connection, lambda: _keep(connection), patience=0.0)
    for table in COLUMNS:
        connection.execute(f"ALTER TABLE {table} VALIDATE CONSTRAINT {numbers.name}".encode())
    briefly(connection, lambda: _use(connection, numbers), patience=0.0)
    connection.execute(f"SELECT pg_advisory_unlock({REST_LOCK})".encode())


def _drawn(connection: Connection) -> int:
    [(drawn,)] = connection.execute(DRAWN).fetchall()
    return int(drawn)


def _keep(connection: Connection) -> KeptFree:
    """Keep numbers free, unless some are already. Nobody has drawn one of them."""
    drawn, end = _drawn(connection), end_of_last(connection)
    for one in kept_free(connection):
        if one.first >= end and one.first > drawn:
            return one
    connection.execute("LOCK TABLE outcome_places_rest, journal_rest IN ACCESS EXCLUSIVE MODE")
    stop_keeping(connection)
    first = following(end, _drawn(connection))
    numbers = KeptFree(first, first + AHEAD * partitions.SIZE)
    for table, column in COLUMNS.items():
        check = f"CHECK ({column} < {numbers.first} OR {column} >= {numbers.end})"
        connection.execute(f"ALTER TABLE {table} ADD CONSTRAINT {numbers.name} {check} NOT VALID".encode())
    return numbers


def _use(connection: Connection, numbers: KeptFree) -> None:
    """Create the partitions for these numbers, unless numbers have leapt over them."""
    connection.execute(f"SELECT pg_advisory_xact_lock({PARTITION_LOCK})".encode())
    if end_of_last(connection) <= numbers.first and _drawn(connection) < numbers.end:
        for first in range(numbers.first, numbers.end, partitions.SIZE):
            attach(connection, first, first + partitions.SIZE)
    stop_keeping(connection)
