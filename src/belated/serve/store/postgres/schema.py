"""Creates and migrates the tables in PostgreSQL."""

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Final, NamedTuple

from belated.errors import StoreError
from belated.serve.store.postgres.connection import SCHEMA, Connection, Link
from belated.serve.store.postgres.partitioning import partition, widen
from belated.serve.store.postgres.partitions import briefly
from belated.serve.store.sql import INDEXES, ONE_EVENT, READING_INDEXES
from belated.serve.store.trail import AUDIT

LOCK: Final = 0x42656C61  # "Bela", the lock that makes two migrations take turns
LOCK_POLL: Final = 0.05  # seconds
Partitioning = Callable[[Connection, Callable[[], None]], Iterator[str]]
STEPS: Final[tuple[str | Partitioning, ...]] = (
    f"""
CREATE TABLE version (number integer NOT NULL);
INSERT INTO version (number) VALUES (0);
CREATE SEQUENCE places CACHE 1;
CREATE TABLE journal (
    at bigint NOT NULL, experiment bigint NOT NULL, seq bigint PRIMARY KEY, round bigint,
    probability double precision, nonce bigint, seen bigint, decision bigint, decided_at bigint,
    value double precision, old double precision, arm integer, position integer, revision integer,
    kind smallint NOT NULL, request text COLLATE "C", body bytea, drawn bytea, name bytea
);
COMMENT ON COLUMN journal.name IS 'SHA-256 of an experiment''s name';
CREATE UNIQUE INDEX one_name ON journal (name) WHERE name IS NOT NULL;
{INDEXES}
{ONE_EVENT}
CREATE TABLE snapshots (seq bigint PRIMARY KEY, version bigint NOT NULL, state bytea NOT NULL);
ALTER TABLE snapshots ALTER state SET STORAGE EXTERNAL;
CREATE TABLE keys (
    id text COLLATE "C" PRIMARY KEY, digest bytea NOT NULL, scope text NOT NULL, experiment text,
    created_at bigint NOT NULL, revoked_at bigint
);
""",  # noqa: S608
    """
CREATE TABLE saved_snapshots (seq bigint PRIMARY KEY, version bigint NOT NULL, parts bigint NOT NULL);
CREATE TABLE snapshot_parts (seq bigint, number bigint, state bytea NOT NULL, PRIMARY KEY (seq, number));
ALTER TABLE snapshot_parts ALTER state SET STORAGE EXTERNAL;
""",
    """
CREATE TABLE bases (
    seq bigint PRIMARY KEY, version bigint NOT NULL, release text NOT NULL, digest bytea NOT NULL,
    parts bigint NOT NULL, removed_by bigint
);
CREATE TABLE base_parts (seq bigint, number bigint, state bytea NOT NULL, PRIMARY KEY (seq, number));
ALTER TABLE base_parts ALTER state SET STORAGE EXTERNAL;
CREATE TABLE forgotten (until bigint NOT NULL);
INSERT INTO forgotten (until) VALUES (0);
""",
    partition,
    widen,
    AUDIT.format(serial="bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY", integer="bigint", options=""),
)  # each step makes the next version of the schema, beginning with an empty database
SCHEMA_VERSION: Final = len(STEPS)
# The oldest version whose releases can use a store of this one. Later steps only add what they need not know. Raise it
# together with a step that changes or removes something, or adds what every release must write.
COMPATIBLE_SINCE: Final = 1


class Version(NamedTuple):
    """The schema version, or 0 if there are no tables yet, and the oldest one whose releases can use the store."""

    number: int
    since: int


def version_of(connection: Connection) -> Version:
    """Return the version of the store."""
    if connection.execute("SELECT to_regclass($1)", (f"{SCHEMA}.version",)).fetchall() == [(None,)]:
        return Version(0, 0)
    # older stores have no column `since`
    [(number, since)] = connection.execute(
        "SELECT number, coalesce((to_jsonb(version) ->> 'since')::integer, number) FROM version"
    ).fetchall()
    return Version(number, since)


def check_version(connection: Connection, name: str) -> None:
    """Refuse a store of another release, unless it says that this release can use it."""
    check_not_newer(version := version_of(connection), name)
    if version.number < SCHEMA_VERSION:
        what = "is of an older release" if version.number else "has no tables yet"
        raise StoreError(f"the store {name} {what}. Run `belated migrate --store {name}`.")


def check_not_newer(version: Version, name: str) -> None:
    """Refuse a store of a newer release that this one cannot use."""
    if version.since > SCHEMA_VERSION:
        raise StoreError(
            f"the store {name} has schema version {version.number}, and this release reads {SCHEMA_VERSION}. "
            "Use the release that wrote it."
        )


def migrate(url: str) -> Iterator[str]:
    """Update the database to this release. Yields a line for each step, and the progress of a long one."""
    link = Link(url)
    with closing(link), link.using("migrated") as connection:
        # a statement that waits for the lock would make the other migration wait for it, when that creates an index
        while connection.execute("SELECT pg_try_advisory_lock($1)", (LOCK,)).fetchall() == [(False,)]:
            time.sleep(LOCK_POLL)
        check_not_newer(version_of(connection), link.name)
        for number, step in enumerate(STEPS, 1):
            if version_of(connection).number < number:
                yield from _take(connection, number, step)
                yield f"schema version {number}"


def _take(connection: Connection, number: int, step: str | Partitioning) -> Iterator[str]:
    """Take one step. SQL is run in one transaction. It waits only a moment for a lock, as servers queue behind it."""
    if not isinstance(step, str):
        yield from _add_indexes(connection)
        yield from step(connection, lambda: _stamp(connection, number))
        return
    briefly(connection, lambda: _run(connection, step, number))


def _add_indexes(connection: Connection) -> Iterator[str]:
    """Create the indexes for readers that are missing, while servers go on writing. Yields a line for each."""
    for name, on in READING_INDEXES.items():
        found = "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass($1)"
        state = connection.execute(found, (f"{SCHEMA}.{name}",)).fetchall()
        if state == [(True,)]:
            continue
        if state:  # an earlier migration was interrupted
            connection.execute(f"DROP INDEX CONCURRENTLY {name}".encode())
        connection.execute(f"CREATE INDEX CONCURRENTLY {name} {on}".encode())
        yield f"index {name}"


def _stamp(connection: Connection, number: int) -> None:
    """Set the version, and say who else can use the store."""
    since = min(number, COMPATIBLE_SINCE)
    if since < number:
        connection.execute("ALTER TABLE version ADD COLUMN IF NOT EXISTS since integer")
        connection.execute("UPDATE version SET number = $1, since = $2", (number, since))
    elif version_of(connection).number == version_of(connection).since:
        connection.execute("UPDATE version SET number = $1", (number,))
    else:
        connection.execute("UPDATE version SET number = $1, since = NULL", (number,))


def _run(connection: Connection, step: str, number: int) -> None:
    if connection.execute("SELECT to_regnamespace($1)", (SCHEMA,)).fetchall() == [(None,)]:
        connection.execute(f"CREATE SCHEMA {SCHEMA}".encode())
    for statement in filter(str.strip, step.split(";\n")):
        connection.execute(statement.encode())
    _stamp(connection, number)
