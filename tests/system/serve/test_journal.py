"""The journal in PostgreSQL keeps the journal contract."""

from contextlib import closing
from threading import Thread

import psycopg
import pytest

from belated.serve.store import trail
from belated.serve.store.opening import open_journal
from belated.serve.store.postgres import connection
from belated.serve.store.postgres.journal import PostgresJournal
from belated.testing.journal_contract import JournalContract, OpenStore, record


class TestPostgreSQL(JournalContract):
    @pytest.fixture
    def open_store(self, database: str) -> OpenStore:
        return lambda: open_journal(database)


def test_the_trail_is_in_the_order_of_commits(database: str) -> None:
    """Otherwise a cursor would miss a record with a lower number that is committed later."""
    schema = connection.SCHEMA
    with (
        closing(open_journal(database)) as journal,
        psycopg.connect(database, options=f"-c search_path={schema}") as slow,
    ):
        cursor = psycopg.RawCursor(slow)
        for sql, values in (*PostgresJournal.turns, *trail.noting([record("slow")])):
            cursor.execute(sql.encode(), values)
        other = Thread(target=lambda: journal.note([record("fast")]))
        other.start()
        other.join(0.3)
        assert other.is_alive()
        with closing(open_journal(database)) as reading:  # it waits for nobody
            assert reading.records(0, 10) == []
            slow.commit()
            other.join(10)
            assert [one.what for one in reading.records(0, 10)] == ["slow", "fast"]
