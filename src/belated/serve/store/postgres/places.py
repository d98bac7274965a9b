"""Keeps what is unique in tables of its own, because a unique index of the journal reaches one partition only.

Each row says where an entry is. Triggers on the journal write these tables in the transaction of the entry. So every
release keeps them, also one that does not know them.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from belated.serve.store.bases import REMOVED
from belated.serve.store.postgres.connection import SCHEMA, Connection


class Places(NamedTuple):
    """A table of places."""

    columns: str
    which: str  # the entries that have a place here
    found_by: str  # how the place p of an entry e is found by the index


PLACES: Final = {
    "request_places": Places(
        "experiment, seq, position, request",
        "request IS NOT NULL",
        "p.experiment = e.experiment AND p.request = e.request AND p.seq = e.seq",
    ),
    "outcome_places": Places(
        "decision, seq, revision",
        "decision IS NOT NULL",
        "p.decision = e.decision AND p.seq = e.seq",
    ),
    "name_places": Places("name, seq", "name IS NOT NULL", "p.name = e.name AND p.seq = e.seq"),
    "event_places": Places(
        "experiment, seq, revision",
        "body IS NOT NULL AND revision IS NOT NULL",
        "p.experiment = e.experiment AND p.revision = e.revision AND p.seq = e.seq",
    ),
    "alias_places": Places(
        "experiment, seq, position, alias",
        "alias IS NOT NULL",
        "p.experiment = e.experiment AND p.alias = e.alias AND p.seq = e.seq",
    ),
}
FIRST: Final = ("request_places", "outcome_places", "name_places", "event_places")  # of the first partitioned schema
TABLES: Final = (
    'CREATE TABLE request_places (experiment bigint, seq bigint, position integer, request text COLLATE "C")',
    "CREATE UNIQUE INDEX one_effect ON request_places (experiment, request, position)",
    "CREATE TABLE outcome_places (decision bigint NOT NULL, seq bigint, revision integer)",
    "CREATE UNIQUE INDEX one_outcome ON outcome_places (decision, revision)",
    "CREATE TABLE name_places (name bytea, seq bigint)",
    "CREATE UNIQUE INDEX one_name ON name_places (name)",
    "CREATE TABLE event_places (experiment bigint, seq bigint, revision integer)",
    "CREATE UNIQUE INDEX one_event ON event_places (experiment, revision)",
)
ALIAS_TABLES: Final = (
    "CREATE TABLE alias_places (experiment bigint, seq bigint, position integer, alias bytea)",
    "CREATE UNIQUE INDEX one_alias ON alias_places (experiment, alias, position)",
)
COLUMNS: Final = (
    "ALTER TABLE journal ADD COLUMN IF NOT EXISTS alias bytea, ADD COLUMN IF NOT EXISTS parts bytea, "
    "ADD COLUMN IF NOT EXISTS policy smallint"
)
TRIGGERS: Final = {
    "places_of_added": "AFTER INSERT ON {} REFERENCING NEW TABLE AS added",
    "places_of_gone": "AFTER DELETE ON {} REFERENCING OLD TABLE AS gone",
    "places_of_changed": "AFTER UPDATE ON {} REFERENCING OLD TABLE AS gone NEW TABLE AS added",
}


def placing(table: str, source: str) -> str:
    """Return the statement that adds the places of the entries in a table."""
    columns, which, _ = PLACES[table]
    return f"INSERT INTO {SCHEMA}.{table} ({columns}) SELECT {columns} FROM {source} e WHERE {which}"  # noqa: S608


def displacing(table: str, source: str) -> str:
    """Return the statement that removes the places of the entries in a table."""
    return f"DELETE FROM {SCHEMA}.{table} p USING {source} e WHERE {PLACES[table].found_by}"  # noqa: S608


ADD_ALIASES: Final = f"""
        IF EXISTS (SELECT FROM added WHERE alias IS NOT NULL) THEN
            {placing("alias_places", "added")};
        END IF;"""


def function(tables: Sequence[str], more: str = "") -> str:
    """Return the statement that makes the function of the triggers, which keeps these tables.

    Few entries have a name or are events, so one look spares two statements.
    """
    return f"""
CREATE OR REPLACE FUNCTION {SCHEMA}.keep_places() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        {"; ".join(displacing(table, "gone") for table in tables)};
    END IF;
    IF TG_OP <> 'DELETE' THEN
        {placing("request_places", "added")};
        {placing("outcome_places", "added")};
        IF EXISTS (SELECT FROM added WHERE body IS NOT NULL) THEN
            {placing("name_places", "added")};
            {placing("event_places", "added")};
        END IF;{more}
    END IF;
    RETURN NULL;
END
$$
"""


def create(connection: Connection) -> None:
    """Create the tables and the function. They are empty, and nothing writes them yet."""
    for statement in (*TABLES, function(FIRST)):
        connection.execute(statement.encode())


def add_aliases(connection: Connection) -> None:
    """Add the columns that came with subjects, and keep the places of aliases from now on."""
    for statement in (COLUMNS, *ALIAS_TABLES, function([*PLACES], ADD_ALIASES)):
        connection.execute(statement.encode())


def watch(connection: Connection, table: str) -> None:
    """Let the triggers on this table write the places from now on."""
    for name, when in TRIGGERS.items():
        trigger = f"CREATE TRIGGER {name} {when.format(table)} EXECUTE FUNCTION {SCHEMA}.keep_places()"
        connection.execute(trigger.encode())


def unwatch(connection: Connection, table: str) -> None:
    """Remove the triggers from this table."""
    for name in TRIGGERS:
        connection.execute(f"DROP TRIGGER {name} ON {table}".encode())


# A removal that was interrupted may have forgotten keys of decisions that it has not removed yet, and may have kept
# report_ids of outcomes that it has removed. The next one forgets them.
MISSING: Final = {
    f"entry {{}}: it has no row in {table}": f"""
        SELECT seq FROM journal e WHERE {which} AND NOT EXISTS (SELECT FROM {table} p WHERE {found_by})
        {f"AND seq > {REMOVED}" if table in {"request_places", "alias_places"} else ""} ORDER BY seq LIMIT 10"""  # noqa: S608
    for table, (_, which, found_by) in PLACES.items()
}
STALE: Final = {
    f"{table} has a row for entry {{}}, which does not fit it": f"""
        SELECT seq FROM {table} p WHERE NOT EXISTS (SELECT FROM journal e WHERE {found_by} AND {which})
        {f"AND seq > {REMOVED}" if table == "alias_places" else ""} ORDER BY seq LIMIT 10"""  # noqa: S608
    for table, (_, which, found_by) in PLACES.items()
}
UNWATCHED: Final = {
    "the trigger {} of the journal is missing or disabled": f"""
        SELECT name FROM unnest(ARRAY[{", ".join(f"'{name}'" for name in TRIGGERS)}]) AS name WHERE NOT EXISTS (
            SELECT FROM pg_trigger
            WHERE tgrelid = 'journal'::regclass AND tgname = name AND tgenabled IN ('O', 'A'))""",  # noqa: S608
}
DAMAGE: Final = UNWATCHED | MISSING | STALE
