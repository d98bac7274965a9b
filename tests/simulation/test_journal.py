"""The simulated journal keeps the contract of a journal, and its transactions behave as those of PostgreSQL."""

import pytest

from belated.testing.journal_contract import JournalContract, OpenStore
from tests.simulation.database import Database
from tests.simulation.journal import SimulatedJournal


class TestSimulatedJournal(JournalContract):
    @pytest.fixture
    def open_store(self) -> OpenStore:
        database = Database()
        return lambda: SimulatedJournal(database)
