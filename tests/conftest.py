"""What every test may rely on."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from journals import created
from postgres import Cluster
from service import Served

from belated.serve.postgres import PostgresJournal


@pytest.fixture(autouse=True, scope="session")
def interrupts_arrive() -> None:
    """A shell that starts the tests in the background has Ctrl-C ignored; some tests send it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    """A fresh service without experiments."""
    with Served(tmp_path) as served:
        yield served


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A PostgreSQL server; whoever stops it starts it again."""
    made = Cluster()
    yield made
    made.remove()


@pytest.fixture
def database(cluster: Cluster) -> Iterator[str]:
    """The URL of an empty store in PostgreSQL."""
    with cluster.database() as url:
        yield url


@pytest.fixture
def journal(database: str) -> Iterator[PostgresJournal]:
    """A journal in PostgreSQL with one experiment, at place 1."""
    opened = PostgresJournal(database)
    opened.append([created("one")])
    yield opened
    opened.close()
