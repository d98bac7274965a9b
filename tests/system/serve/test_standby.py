"""A real standby takes over from PostgreSQL. One that commits wait for has everything. Another may lack the newest."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import Any

import pytest

from belated.errors import StoreError, StoreUnreachable
from belated.serve.domain.messages import OutcomeReport
from belated.serve.domain.settings import Settings
from belated.serve.engine.engine import Engine
from belated.serve.engine.requests import Ask, Create, Request, Tell
from belated.serve.store.journal import Key
from belated.serve.store.postgres.journal import PostgresJournal
from belated.testing.entries import created
from tests.support.postgres import TEMPLATE
from tests.support.standby import Twins

KEY = Key("0" * 12, b"digest", "read", None, 1)


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


def in_doubt(twins: Twins, engine: Engine, requests: list[Request]) -> None:
    """Process requests while the standby is gone. The wait is cancelled, so nothing may be acknowledged."""
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(engine.process, requests)
        twins.cancel_waits()
        with pytest.raises(StoreUnreachable, match="warns"):
            done.result()


def processed(engine: Engine, requests: list[Request]) -> Any:
    return engine.process(requests)


def test_what_a_lost_standby_lacks_is_not_acknowledged_when_it_is_asked_for_again() -> None:
    """The rows are written, and any server can read them. They would still be lost with the primary."""
    with (
        store(synchronous=True) as (twins, url),
        closing(PostgresJournal(url)) as one,
        closing(PostgresJournal(url)) as two,
    ):
        engine, other = Engine(one), Engine(two)
        [_, first] = processed(engine, [Create(Settings("layout", ["a", "b"])), Ask("layout", 2)])
        one.add_key(KEY)
        reports = [OutcomeReport(decision.id, "reward", 1.0) for decision in first.decisions]
        group: list[Request] = [Ask("layout", 1, "key"), Tell(reports)]
        new: list[Request] = [Create(Settings("other", ["a", "b"]))]
        twins.lose_standby()
        for requests in (group, new):
            in_doubt(twins, engine, requests)
        for server in (engine, other):
            server.catch_up()
            for requests in (group, new):
                in_doubt(twins, server, requests)
        with ThreadPoolExecutor(1) as pool:  # after a failover the key would be valid again
            done = pool.submit(one.revoke_key, KEY.id, 2)
            twins.cancel_waits()
            with pytest.raises(StoreUnreachable, match="warns"):
                done.result()
        twins.regain_standby()
        for server in (engine, other):
            [answers, statuses] = processed(server, group)
            assert answers.replayed
            assert [status.status for status in statuses] == ["duplicate"] * 2
            [(_, is_new)] = processed(server, new)
            assert not is_new
        twins.cluster.stop("immediate")
        twins.promote()
        with closing(PostgresJournal(url, readonly=True)) as again:
            assert len(again.read(0, 100)) == 7
