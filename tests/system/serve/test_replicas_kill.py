"""Servers that share a store survive kill -9, and crashes and failovers of their database.

Acknowledged writes are stored once.
"""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Event
from typing import Final, NamedTuple

import pytest

from belated.serve.store.postgres.journal import PostgresJournal
from tests.support.clients.crowd import (
    Crowd,
    check_answers,
    check_folds,
    check_statuses,
    check_store,
    gather,
    settle,
    started,
)
from tests.support.clients.roaming import EXPERIMENTS
from tests.support.postgres import PASSWORD, TEMPLATE
from tests.support.service import Served
from tests.support.standby import Twins
from tests.support.waiting import until

pytestmark = pytest.mark.long

REPLICAS: Final = 3
CLIENTS: Final = 8
ROUNDS: Final = 10  # each crashes PostgreSQL once and kills 5 servers
FAILOVER_EVERY: Final = 5  # rounds
RECOVERY: Final = 10.0  # seconds for a server to recover by itself once the database is back
log = logging.getLogger(__name__)  # pytest --log-cli-level=info shows the measurements
IS_BACK: Final = "the store can be reached again"


@pytest.fixture
def twins() -> Iterator[Twins]:
    """A separate PostgreSQL server with a standby, because this test stops it again and again."""
    made = Twins()
    yield made
    made.remove()


@contextmanager
def busy(crowd: Crowd, replicas: Sequence[Served]) -> Iterator[None]:
    """Let the clients send requests to any server. Raises their errors at the end, before any other error."""
    over = Event()
    with ThreadPoolExecutor(len(crowd.clients)) as pool:
        visits = [pool.submit(client.roam_servers, replicas, over) for client in crowd.clients]
        try:
            yield
        finally:
            over.set()
            for visit in visits:
                visit.result()


def kill(served: Served) -> int:
    """Kill a server and restart it until the database is back. Returns the number of failed starts."""
    served.kill()
    failed = 0
    while not served.launch():
        assert served.ended() == 2, served.log()[-2000:]
        failed += 1
        assert failed < 20, served.log()[-2000:]
    assert served.url
    return failed


class Chaos(NamedTuple):
    """The servers, their database, and the threads that restart them."""

    replicas: list[Served]
    twins: Twins
    crowd: Crowd
    pool: ThreadPoolExecutor

    def kill_all(self) -> None:
        """Kill each server at a random moment. Another one may still be restarting."""
        restarts = []
        for served in self.crowd.random.sample(self.replicas, REPLICAS):
            assert self.crowd.wait(5, 60)
            restarts.append(self.pool.submit(kill, served))
        assert [restart.result() for restart in restarts] == [0] * REPLICAS

    def crash(self, come_back: Callable[[], None]) -> float:
        """Crash the database and kill two servers. Returns the seconds until the third is ready again by itself."""
        survivor, early, late = self.crowd.random.sample(self.replicas, REPLICAS)
        process, recoveries = survivor.process, survivor.log().count(IS_BACK)
        assert self.crowd.wait(5, 60)
        restarts: list[Future[int]] = []
        if self.crowd.random.random() < 0.5:
            restarts.append(self.pool.submit(kill, early))
            assert self.crowd.wait(0, 5)
        self.twins.cluster.stop("immediate")
        until(lambda: survivor.get("/readyz").status_code == 503, RECOVERY)
        assert survivor.post("/v1/experiments/patient/decisions").status_code == 503
        if not restarts:
            restarts.append(self.pool.submit(kill, early))
        restarts.append(self.pool.submit(kill, late))
        come_back()
        took = until(lambda: survivor.get("/readyz").status_code == 200, RECOVERY)
        assert (survivor.process, process.poll()) == (process, None)
        assert survivor.log().count(IS_BACK) > recoveries
        for restart in restarts:
            restart.result()
        return took

    def fail_over(self) -> None:
        """Let the standby take over from a database that is down, and give it a standby of its own."""
        self.twins.promote()
        self.twins.replace_standby()

    def stop_one(self) -> None:
        """Stop one server cleanly and restart it. It saves a snapshot, and later starts begin there."""
        served = self.crowd.random.choice(self.replicas)
        assert served.stop() == 0
        served.start()


class Survived(NamedTuple):
    """What the servers have been through."""

    kills: int
    crashes: int
    failovers: int
    decisions: int  # that were acknowledged


def torment(
    twins: Twins,
    folder: Path,
    rounds: int,
    failover_every: int = FAILOVER_EVERY,
    told: Callable[[int], object] = lambda _: None,
) -> Survived:
    """Kill servers, crash their database and let its standby take over. Then check what was kept.

    `told` is called after each round.
    """
    twins.cluster.create("torment", TEMPLATE)
    url = twins.url("torment")
    with started(url, folder, REPLICAS) as replicas, ThreadPoolExecutor(REPLICAS) as pool:
        chaos = Chaos(replicas, twins, gather(replicas[0], CLIENTS, seed=rounds), pool)
        recoveries, failovers, began = [], 0, time.monotonic()
        with busy(chaos.crowd, replicas):
            for number in range(1, rounds + 1):
                chaos.kill_all()
                recoveries.append(chaos.crash(twins.cluster.start))
                twins.wait_until_level()
                if number % failover_every == 0:
                    recoveries.append(chaos.crash(chaos.fail_over))
                    failovers += 1
                if number % 3 == 2:
                    chaos.stop_one()
                chaos.crowd.forget()
                told(number)
        log.info("ready again after %s seconds", [round(took, 2) for took in recoveries])
        log.info("%.0f seconds, %s", time.monotonic() - began, replicas[0].get("/v1/store").json())
        settle(replicas, url, EXPERIMENTS)  # a server lists only what it has read
        check_answers(replicas[0].url, chaos.crowd.clients, is_alone=False)
        check_statuses(replicas[1].url)
        check_folds(replicas, url, EXPERIMENTS)
    with closing(PostgresJournal(url)) as journal:
        check_store(journal, chaos.crowd.clients)
    assert not [served for served in replicas if PASSWORD in served.log()]
    kept = sum(len(client.memory.decisions) for client in chaos.crowd.clients)
    return Survived(5 * rounds + 2 * failovers, rounds + failovers, failovers, kept)


def test_fifty_kills_ten_crashes_and_two_failovers_of_the_database_lose_and_repeat_nothing(
    twins: Twins, tmp_path: Path
) -> None:
    survived = torment(twins, tmp_path, ROUNDS)
    assert (survived.kills, survived.crashes, survived.failovers) == (54, 12, 2)
