"""A writer whose transaction takes as long as a test wants."""

from typing import Any, final

import psycopg
from psycopg.types.numeric import Int8BinaryDumper

from belated.serve.domain.entries import Entry
from belated.serve.store.journal import NO_MARK
from belated.serve.store.postgres import journal as postgres
from belated.serve.store.postgres.arrays import Array, ArrayDumper


@final
class Slow:
    """Appends as PostgresJournal does, in a transaction that a test begins and ends."""

    def __init__(self, url: str) -> None:
        self.connection: psycopg.Connection[Any] = psycopg.connect(url, cursor_factory=psycopg.RawCursor)
        self.connection.adapters.register_dumper(Array, ArrayDumper)
        self.connection.adapters.register_dumper(int, Int8BinaryDumper)
        self.connection.execute("SET search_path TO belated")
        self.connection.commit()

    def take_xid(self) -> None:
        self.connection.execute("SELECT pg_current_xact_id()")

    def append(self, *entries: Entry) -> list[int]:
        values = [*postgres.columns(entries), *postgres.guards(NO_MARK)]
        return [row[0] for row in self.connection.execute(postgres.INSERT.encode(), values)]

    def commit(self) -> None:
        self.connection.commit()

    def roll_back(self) -> None:
        self.connection.rollback()

    def close(self) -> None:
        self.connection.close()
