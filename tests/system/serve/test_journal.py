"""The journal in PostgreSQL keeps the journal contract."""

import pytest

from belated.serve.store.opening import open_journal
from belated.testing.journal_contract import JournalContract, OpenStore


class TestPostgreSQL(JournalContract):
    @pytest.fixture
    def open_store(self, database: str) -> OpenStore:
        return lambda: open_journal(database)
