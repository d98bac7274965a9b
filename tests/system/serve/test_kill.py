"""kill -9 and SIGTERM at random moments, with concurrent clients. Acknowledged writes are stored once."""

import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from belated.serve.store.loading import load
from belated.serve.store.sqlite.journal import SQLiteJournal
from tests.support.clients.crowd import Crowd, check_answers, check_statuses, check_store, gather
from tests.support.service import Served

pytestmark = pytest.mark.long

CLIENTS = 4
KILLS = 50
KILLS_BETWEEN_STOPS = 10  # a stop saves a snapshot, and later starts begin there


def live(served: Served, crowd: Crowd, end: Callable[[], object]) -> None:
    """Check that earlier writes are still there. Then send requests and end the service under load."""
    with ThreadPoolExecutor(len(crowd.clients)) as pool:
        list(pool.map(lambda client: client.look_back(served.url), crowd.clients))
        visits = [pool.submit(client.visit, served.url) for client in crowd.clients]
        are_answered = crowd.wait(20, 150)
        end()
        for visit in visits:
            visit.result()
    crowd.forget()
    assert are_answered


def check_file(folder: Path, crowd: Crowd) -> None:
    """Check the store of a stopped service."""
    with closing(SQLiteJournal(folder / "belated.db")) as journal:
        check_store(journal, crowd.clients)


def kill_under_load(server: Served, kills: int, seed: int = 0, told: Callable[[int], object] = lambda _: None) -> Crowd:
    """Kill a service this often under load, and check what it has kept. `told` is called after each kill."""
    crowd = gather(server, CLIENTS, seed)
    for kill in range(1, kills + 1):
        live(server, crowd, server.kill)
        server.start()
        told(kill)
        if kill % KILLS_BETWEEN_STOPS == 0:
            check_answers(server.url, crowd.clients)
            live(server, crowd, server.stop)
            assert server.process.returncode == 0
            check_file(server.folder, crowd)
            server.start()
    check_statuses(server.url)
    assert server.stop() == 0
    command = [sys.executable, "-m", "belated", "verify"]
    verified = subprocess.run(command, cwd=server.folder, capture_output=True, text=True, check=False)  # noqa: S603
    assert verified.returncode == 0, verified.stdout
    assert "the same, bit for bit" in verified.stdout
    return crowd


def test_fifty_kills_lose_and_repeat_nothing(server: Served) -> None:
    kill_under_load(server, KILLS)


def test_a_stop_under_load_answers_what_it_accepted(server: Served) -> None:
    """A request without an answer has no effect. The store holds exactly the decisions that were answered."""
    crowd = gather(server, 8)
    for _ in range(3):
        live(server, crowd, server.stop)
        assert server.process.returncode == 0
        check_file(server.folder, crowd)
        with closing(SQLiteJournal(server.folder / "belated.db")) as journal:
            stopped = load(journal).by_name
        got = {one["decision_id"] for client in crowd.clients for one in client.memory.decisions}
        assert sum(one.counts.decisions for one in stopped.values()) == len(got)
        server.start()
        again = server.get("/v1/experiments/patient").json()
        counts = msgspec.structs.asdict(stopped["patient"].counts)
        assert {name: again[name] for name in counts} == counts
        check_answers(server.url, crowd.clients)
