"""A journal as releases before schema 4 have it: one table, without partitions.

It has the columns of schema 5 too, because the statements of this process name them. They stay empty.
"""

from contextlib import closing

import pytest

from belated.serve.store.postgres import journal as postgres
from belated.serve.store.postgres import places, room, schema
from belated.serve.store.postgres.connection import Link
from belated.serve.store.sql import DECIDED, ENTRY, FOUND

OLDER = 3  # their schema
REQUESTED = f"""
SELECT made.* FROM unnest($1::bigint[], $2::text[]) AS asked (experiment, request), LATERAL (
    {ENTRY} j WHERE j.experiment = asked.experiment AND j.request = asked.request ORDER BY position
) AS made
"""  # noqa: S608


def become_older(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process use the statements of such a release. `schema.migrate` still is the new one."""
    monkeypatch.setattr(schema, "SCHEMA_VERSION", OLDER)
    monkeypatch.setattr(postgres, "REQUESTED", REQUESTED)
    monkeypatch.setattr(
        postgres, "HISTORY", f"{ENTRY} WHERE decision = $1 AND revision >= $2 ORDER BY revision LIMIT $3"
    )
    monkeypatch.setattr(postgres, "NAMED", "SELECT name, seq FROM journal WHERE name = ANY($1::bytea[])")
    newest = f"{FOUND} LATERAL ({ENTRY} WHERE decision = d.seq ORDER BY revision DESC LIMIT 1) o ON true"
    monkeypatch.setattr(postgres.PostgresJournal, "joined", newest)
    found = f"{newest} WHERE d.seq = ANY($1::bigint[]) AND d.kind = {DECIDED} AND $2 + $3 > 0 ORDER BY d.seq"
    monkeypatch.setattr(postgres, "FIND", found)
    monkeypatch.setattr(room.Room, "look", lambda *_: None)


def older_store(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the tables that such a release makes."""
    with monkeypatch.context() as older:
        older.setattr(schema, "STEPS", schema.STEPS[:OLDER])
        list(schema.migrate(url))
    with closing(Link(url)) as link, link.using("migrated") as connection:
        connection.execute(places.COLUMNS.encode())
