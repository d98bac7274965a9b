"""Turns the journal of an older release into a partitioned one, while servers of that release go on writing.

The old table becomes the first partition. It keeps its indexes, and so does `rest`, because older releases need them.

A constraint proves the bounds of a large journal beforehand. It refuses entries beyond them, also when the migration
has been killed, and then nobody may be there to drop it. So the bounds are farther away than a table can hold entries.
Later, numbers leap over those that are too many (`Partition.unused`).
"""

from collections.abc import Callable, Iterator
from typing import Final

from belated.serve.store.postgres import partitions, places
from belated.serve.store.postgres.connection import Connection
from belated.serve.store.postgres.partitions import FAR, PARENTS, PARTITION_LOCK, briefly
from belated.serve.store.postgres.room import make_room
from belated.serve.store.sql import DECIDED, READING_INDEXES

PIECE: Final = 20_000  # numbers whose places are added in one transaction
SAID_EVERY: Final = 25  # pieces
MANY: Final = 1_000_000  # entries that are not read while others wait
CHECK: Final = "first_partition"
BY_INDEX: Final = {
    "decisions": f"(experiment, seq) WHERE kind = {DECIDED}",
    "events": "(experiment, seq) WHERE body IS NOT NULL",
    **{name: on.removeprefix("ON journal ") for name, on in READING_INDEXES.items()},
}
UNIQUE: Final = ("one_name", "one_effect", "one_outcome", "one_event")
JOURNAL: Final = (
    "ALTER TABLE journal RENAME TO journal_0",
    *(f"ALTER INDEX {name} RENAME TO {name}_0" for name in BY_INDEX),
    "CREATE TABLE journal (LIKE journal_0 INCLUDING STORAGE INCLUDING COMMENTS) PARTITION BY RANGE (seq)",
    "ALTER TABLE journal ADD CONSTRAINT journal_seq PRIMARY KEY (seq)",
    *(f"CREATE INDEX {name} ON journal {what}" for name, what in BY_INDEX.items()),
    "ALTER TABLE journal ATTACH PARTITION journal_0 FOR VALUES FROM (MINVALUE) TO ({end})",
    "CREATE TABLE journal_rest (LIKE journal_0 INCLUDING ALL)",
    "ALTER TABLE journal ATTACH PARTITION journal_rest DEFAULT",
)
OUTCOMES: Final = (
    "ALTER TABLE outcome_places RENAME TO outcome_places_0",
    "ALTER INDEX one_outcome RENAME TO one_outcome_places_0",
    "CREATE TABLE outcome_places (LIKE outcome_places_0) PARTITION BY RANGE (decision)",
    "CREATE UNIQUE INDEX one_outcome ON outcome_places (decision, revision)",
    "ALTER TABLE outcome_places ATTACH PARTITION outcome_places_0 FOR VALUES FROM (MINVALUE) TO ({end})",
    "CREATE TABLE outcome_places_rest (LIKE outcome_places INCLUDING ALL)",
    "ALTER TABLE outcome_places ATTACH PARTITION outcome_places_rest DEFAULT",
)


def partition(connection: Connection, stamp: Callable[[], None]) -> Iterator[str]:
    """Partition the journal, in small steps. Yields the progress. `stamp` marks the store as partitioned."""
    if not _is_begun(connection):
        briefly(connection, lambda: _begin(connection))
    yield from _add_places(connection)
    newest = _newest(connection)
    end = _end_of_first(newest)
    if newest > MANY:
        end += FAR
        _check_bounds(connection, end)
    briefly(connection, lambda: _swap(connection, end, stamp))
    make_room(connection, newest)


def widen(connection: Connection, stamp: Callable[[], None]) -> Iterator[str]:
    """Add the columns that came with subjects. Only the catalogue changes."""

    def add() -> None:
        connection.execute("SELECT pg_advisory_xact_lock($1)", (PARTITION_LOCK,))
        connection.execute("LOCK TABLE journal IN ACCESS EXCLUSIVE MODE")
        places.add_aliases(connection)
        stamp()

    briefly(connection, add)
    yield from ()


def _run(connection: Connection, *statements: str) -> None:
    for statement in statements:
        connection.execute(statement.encode())


def _is_begun(connection: Connection) -> bool:
    return connection.execute("SELECT to_regclass('request_places')").fetchall() != [(None,)]


def _begin(connection: Connection) -> None:
    """Let each new entry get its places. The old unique indexes give way to new ones of the same name."""
    _run(connection, "LOCK TABLE journal IN ACCESS EXCLUSIVE MODE")
    _run(connection, *(f"ALTER INDEX {name} RENAME TO {name}_0" for name in UNIQUE))
    places.create(connection)
    places.watch(connection, "journal")


def _newest(connection: Connection) -> int:
    [(newest,)] = connection.execute("SELECT coalesce(max(seq), 0) FROM journal").fetchall()
    return int(newest)


def _add_places(connection: Connection) -> Iterator[str]:
    """Add the places of the entries that were there before. Those that exist are left as they are."""
    [(first,)] = connection.execute("SELECT coalesce(min(seq), 1) FROM journal").fetchall()
    newest = _newest(connection)
    for number, before in enumerate(range(first - 1, newest, PIECE)):
        if number % SAID_EVERY == 0 and newest > SAID_EVERY * PIECE:
            yield f"entries up to {before:,} of {newest:,} are ready for partitions"
        source = f"(SELECT * FROM journal WHERE seq > {before} AND seq <= {before + PIECE})"  # noqa: S608
        with connection.transaction():
            _run(connection, *(f"{places.placing(table, source)} ON CONFLICT DO NOTHING" for table in places.FIRST))


def _end_of_first(newest: int) -> int:
    """Return where numbers leave the first partition. Older releases are slow from there on."""
    return (partitions.number_of(newest + newest // 4) + 1) * partitions.SIZE


def _check_bounds(connection: Connection, end: int) -> None:
    """Prove that all entries are in the bounds, so that nobody waits for that later."""
    checks = {"journal": f"seq < {end}", "outcome_places": f"decision < {end}"}

    def add() -> None:
        for table, what in checks.items():
            _run(connection, f"ALTER TABLE {table} DROP CONSTRAINT IF EXISTS {CHECK}")
            _run(connection, f"ALTER TABLE {table} ADD CONSTRAINT {CHECK} CHECK ({what}) NOT VALID")

    briefly(connection, add)
    try:
        for table in checks:
            _run(connection, f"ALTER TABLE {table} VALIDATE CONSTRAINT {CHECK}")
    except BaseException:
        briefly(connection, lambda: _uncheck(connection, ""))
        raise


def _uncheck(connection: Connection, suffix: str) -> None:
    _run(connection, *(f"ALTER TABLE {table}{suffix} DROP CONSTRAINT IF EXISTS {CHECK}" for table in PARENTS))


def _swap(connection: Connection, end: int, stamp: Callable[[], None]) -> None:
    """Put the partitioned tables in the place of the old ones. Only the catalogue changes."""
    _run(connection, "LOCK TABLE journal, outcome_places IN ACCESS EXCLUSIVE MODE")
    places.unwatch(connection, "journal")
    _run(connection, *(statement.format(end=end) for statement in (*JOURNAL, *OUTCOMES)))
    for suffix in ("_0", "_rest"):  # the rest was made like the first partition
        _uncheck(connection, suffix)
    if connection.execute("SELECT EXISTS (SELECT FROM journal)").fetchall() == [(False,)]:
        _run(connection, *(f"DROP INDEX {name}_0" for name in UNIQUE))  # no older release uses the store
    places.watch(connection, "journal")
    stamp()
