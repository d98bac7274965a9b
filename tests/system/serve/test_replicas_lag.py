"""Servers that fall behind the journal report it, keep working, and catch up. They restore lost connections."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from statistics import median

import httpx
import psycopg
import pytest

from tests.support.clients.crowd import settle, started
from tests.support.clients.steady import (
    DECISIONS,
    NAME,
    Asker,
    Call,
    asking,
    check,
    metrics,
    report_of,
    wait_for_answers,
)
from tests.support.postgres import Cluster
from tests.support.service import Served
from tests.support.waiting import until

BACK = 10.0  # seconds to catch up
END = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s AND pid <> pg_backend_pid()"


@pytest.fixture
def replicas(database: str, tmp_path: Path) -> Iterator[list[Served]]:
    with started(database, tmp_path, 2) as servers:
        assert servers[0].post("/v1/experiments", {"name": NAME, "arms": ["a", "b", "c"]}).status_code == 201
        settle(servers, database, [])
        yield servers


def lags(served: Served) -> tuple[float, float]:
    """The lag in entries and in seconds."""
    told = metrics(served)
    return told["belated_lag_entries"], told["belated_lag_seconds"]


def check_views(served: Served) -> None:
    """Check that the documents of the store and of the experiment show the same lag as the metrics."""
    before, stores = metrics(served), [served.get("/v1/store").json()]
    stores.append(served.get(f"/v1/experiments/{NAME}").json()["store"])
    after = metrics(served)
    for store in stores:
        assert store["lag_entries"] == before["belated_lag_entries"] == after["belated_lag_entries"] > 0
        assert 0 < before["belated_lag_seconds"] < store["lag_seconds"] < after["belated_lag_seconds"]


def test_what_one_has_written_the_others_soon_know(replicas: list[Served]) -> None:
    """It takes about 20 ms, and longer here because the test asks over HTTP on a busy machine."""
    waits = []
    with replicas[0].client() as one, replicas[1].client() as two:
        for _ in range(15):
            assert one.post(f"/v1/experiments/{NAME}/decisions").status_code == 201
            began, entries = time.monotonic(), one.get("/v1/store").json()["entries"]
            until(lambda entries=entries: two.get("/v1/store").json()["entries"] >= entries)  # type: ignore[misc]
            waits.append(time.monotonic() - began)
    assert median(waits) < 0.15


def test_a_transaction_of_somebody_else_delays_what_servers_learn_and_nothing_more(
    cluster: Cluster, database: str, replicas: list[Served]
) -> None:
    askers = [Asker(f"asker-{number}", served) for number, served in enumerate(replicas)]
    assert [lags(served) for served in replicas] == [(0, 0)] * 2
    with cluster.database() as other, psycopg.connect(other) as somebody:
        somebody.execute("SELECT pg_current_xact_id()")
        with asking(askers):
            until(lambda: all(entries > 0 and seconds > 1.0 for entries, seconds in map(lags, replicas)))
            wait_for_answers(askers)
            until(lambda: all(entries > 10 and seconds > 2.0 for entries, seconds in map(lags, replicas)))
        written = 1 + sum(len(asker.memory.got) + len(asker.memory.told) for asker in askers)
        for served in replicas:
            until(lambda served=served: metrics(served)["belated_journal_seq"] + lags(served)[0] == written)  # type: ignore[misc]
            check_views(served)
        with replicas[0].client() as one, replicas[1].client() as two:
            decision = askers[0].send(one, Call(DECISIONS, {}, "both"))
            assert decision is not None
            assert askers[1].send(two, Call(DECISIONS, {}, "both")) == decision
            assert askers[1].send(two, report_of(decision, 7)) is not None
            assert one.get(f"/v1/decisions/{decision['decision_id']}").json()["outcomes"][0]["value"] == 0.7
        assert not [asker for asker in askers if asker.unknown]
        somebody.commit()
        until(lambda: [lags(served) for served in replicas] == [(0, 0)] * 2, BACK)
        assert [served.get("/v1/store").json()["lag_seconds"] for served in replicas] == [0, 0]
    check(replicas, database, askers)


def waits_beside_the_hidden(served: Served, client: httpx.Client) -> list[float]:
    """How long others waited for each answer, one after another, while four callers asked for what is not visible."""
    waits: list[float] = []
    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(served.post, "/v1/experiments/hidden/decisions") for _ in range(4)]
        while not all(one.done() for one in asked):
            began = time.monotonic()
            assert client.post(f"/v1/experiments/{NAME}/decisions").status_code == 201
            waits.append(time.monotonic() - began)
    for one in asked:
        assert one.result().status_code == 503
        assert one.result().headers["Retry-After"] == "1"
    return waits


def test_who_asks_for_an_experiment_that_is_not_visible_yet_delays_nobody_else(
    cluster: Cluster, replicas: list[Served]
) -> None:
    """The writer used to wait two seconds for it, again and again, with all other requests behind it.

    A busy machine may stop for a second, too. But not in each of three rounds, as the writer did.
    """
    with cluster.database() as other, psycopg.connect(other) as somebody, replicas[1].client() as client:
        somebody.execute("SELECT pg_current_xact_id()")
        assert replicas[0].post("/v1/experiments", {"name": "hidden", "arms": ["a", "b"]}).status_code == 201
        rounds = (waits_beside_the_hidden(replicas[1], client) for _ in range(3))
        assert any(len(waits) > 20 and max(waits) < 0.5 for waits in rounds), "somebody waited in every round"
        with ThreadPoolExecutor(1) as pool:
            asked = [pool.submit(replicas[1].post, "/v1/experiments/hidden/decisions")]
            time.sleep(0.2)
            somebody.commit()
            assert asked[0].result().status_code == 201, "it was answered as soon as it could be"


def test_connections_that_are_ended_are_made_again(cluster: Cluster, database: str, replicas: list[Served]) -> None:
    askers = [Asker(f"asker-{number}", replicas[number % 2]) for number in range(4)]
    with closing(cluster.admin()) as admin, asking(askers):
        for _ in range(10):
            wait_for_answers(askers, 3)
            admin.execute(END, (database.rpartition("/")[2],))
    for served in replicas:
        until(lambda served=served: served.get("/readyz").status_code == 200, BACK)  # type: ignore[misc]
        id = askers[0].memory.decisions[0]["decision_id"]
        assert served.get(f"/v1/decisions/{id}").status_code == 200, "those for reading too, without a refusal"
    for asker in askers:
        assert asker.unknown
        asker.retry(replicas[0])
    check(replicas, database, askers)


def test_a_restart_of_the_database_is_survived(cluster: Cluster, database: str, replicas: list[Served]) -> None:
    askers = [Asker(f"asker-{number}", replicas[number % 2]) for number in range(4)]
    with asking(askers):
        wait_for_answers(askers)
        cluster.stop("fast")
        until(lambda: all(served.get("/readyz").status_code == 503 for served in replicas), BACK)
        cluster.start()
        until(lambda: all(served.get("/readyz").status_code == 200 for served in replicas), BACK)
        wait_for_answers(askers)
    for asker in askers:
        asker.retry(replicas[0])
    check(replicas, database, askers)
