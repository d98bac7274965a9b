"""Fixtures that need real processes or PostgreSQL."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from belated.serve.store.postgres.journal import PostgresJournal
from belated.testing.entries import created
from tests.support.postgres import Cluster
from tests.support.service import Served


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with long files. A worker takes one file at a time, and would be alone with a long one at the end."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    """A fresh service without experiments."""
    with Served(tmp_path) as served:
        yield served


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A PostgreSQL server. A test that stops it must start it again."""
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
    """A journal in PostgreSQL with one experiment, at entry 1."""
    opened = PostgresJournal(database)
    opened.append([created("one")])
    yield opened
    opened.close()
