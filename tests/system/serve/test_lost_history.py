"""PostgreSQL loses commits under running servers. Nothing is acknowledged on top of what is gone."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from belated.serve.process.run import STORE_FAILED
from belated.serve.store.postgres.journal import PostgresJournal
from belated.serve.store.verify import verify
from tests.support.clients.crowd import started
from tests.support.postgres import TEMPLATE, connect
from tests.support.service import Served
from tests.support.standby import Twins
from tests.support.waiting import until

DECISIONS = "/v1/experiments/layout/decisions"
PATIENCE = 30.0  # seconds


@pytest.fixture
def twins() -> Iterator[Twins]:
    made = Twins(synchronous=False)
    try:
        made.cluster.create("store", TEMPLATE)
        yield made
    finally:
        made.remove()


def decide(served: Served, number: int) -> None:
    for _ in range(number):
        assert served.post(DECISIONS).status_code == 201


def statuses(served: Served, number: int) -> list[int]:
    return [served.post(DECISIONS).status_code for _ in range(number)]


def test_a_standby_that_lacks_the_newest_commits(twins: Twins, tmp_path: Path) -> None:
    url = twins.url("store")
    with started(url, tmp_path, 2) as servers:
        one, two = servers
        assert one.post("/v1/experiments", {"name": "layout", "arms": ["a", "b", "c"]}).status_code == 201
        decide(one, 10)
        until(lambda: two.get("/v1/store").json()["entries"] == 11, PATIENCE)
        twins.wait_until_level()
        twins.cut()
        decide(one, 5)
        until(lambda: two.get("/v1/store").json()["entries"] == 16, PATIENCE)
        twins.cluster.stop("immediate")
        twins.promote()
        for served in servers:  # each has applied what is gone
            assert served.ended(PATIENCE) == STORE_FAILED
            assert "has lost entries" in served.log()
        with closing(PostgresJournal(url)) as journal:
            assert journal.last() == 11
        one.start()
        decide(one, 5)
        with closing(PostgresJournal(url)) as journal:
            assert verify(journal).problems == []


@pytest.mark.parametrize("gone", ["seq > 13", "seq = 15", "seq IN (13, 14)"])
def test_a_backup_that_is_restored_under_open_connections(database: str, tmp_path: Path, gone: str) -> None:
    """Also if the newest entry is still there, or its number is in use again."""
    with started(database, tmp_path, 1) as [served]:
        assert served.post("/v1/experiments", {"name": "layout", "arms": ["a", "b", "c"]}).status_code == 201
        decide(served, 4)
        assert served.post(f"{DECISIONS}/batch", {"size": 11}).status_code == 201  # entries 6 to 16
        with closing(connect(database)) as connection:
            connection.execute(f"DELETE FROM journal WHERE {gone}".encode())  # noqa: S608
        assert set(statuses(served, 30)) == {503}
        assert served.ended(PATIENCE) == STORE_FAILED
        served.start()  # and goes on from what is left
        decide(served, 3)
