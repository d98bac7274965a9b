"""A real standby takes over from PostgreSQL. One that commits wait for has everything. Another may lack the newest."""

from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from belated.errors import StoreError, StoreUnreachable
from belated.serve.store.postgres.journal import PostgresJournal
from belated.testing.entries import created
from tests.support.postgres import TEMPLATE
from tests.support.standby import Twins


@contextmanager
def store(*, synchronous: bool) -> Iterator[tuple[Twins, str]]:
    """A store on a server with a standby."""
    twins = Twins(synchronous=synchronous)
    try:
        twins.cluster.create("store", TEMPLATE)
        yield twins, twins.url("store")
    finally:
        twins.remove()


def test_a_failover_to_a_standby_that_commits_wait_for_loses_nothing() -> None:
    with store(synchronous=True) as (twins, url), closing(PostgresJournal(url)) as journal:
        assert journal.append([created("one"), created("two")]) == [1, 2]
        twins.cluster.stop("immediate")
        twins.promote()
        twins.replace_standby()
        with pytest.raises(StoreUnreachable):
            journal.last()
        assert [entry.seq for entry in journal.read(0, 10)] == [1, 2]
        [third] = journal.append([created("three")])
        assert third > 2
        twins.cluster.stop("immediate")
        twins.promote()  # back at the first address
        with closing(PostgresJournal(url)) as again:
            assert [entry.seq for entry in again.read(0, 10)] == [1, 2, third]


def test_a_journal_misses_what_a_standby_lacks() -> None:
    with store(synchronous=False) as (twins, url), closing(PostgresJournal(url)) as journal:
        journal.append([created("one")])
        twins.wait_until_level()
        twins.cut()
        assert journal.append([created("two")]) == [2]
        twins.cluster.stop("immediate")
        twins.promote()
        with closing(PostgresJournal(url)) as another:
            assert [entry.seq for entry in another.read(0, 10)] == [1]
        with pytest.raises(StoreUnreachable):
            journal.last()
        with pytest.raises(StoreError, match="lost entries up to 2"):
            journal.append([created("three")])
