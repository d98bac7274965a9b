"""`belated serve --workers N` runs several processes on one port and one store, with a supervisor."""

import json
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest

from belated.serve.process.run import LAST_WORDS, STORE_FAILED, Plan
from belated.serve.process.workers import LONGEST_PAUSE, STEADY, Supervisor
from belated.serve.store.sqlite.journal import SQLiteJournal
from belated.serve.store.verify import verify
from tests.support import hanging
from tests.support.service import NO_TLS, Served
from tests.support.waiting import until

pytestmark = pytest.mark.long

WORKERS = 3


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue("database")) if request.param == "postgresql" else "belated.db"


@pytest.fixture
def served(tmp_path: Path, store: str) -> Iterator[Served]:
    with Served(tmp_path, "--workers", str(WORKERS), "--access-log", "--store", store) as one:
        assert one.post("/v1/experiments", {"name": "layout", "arms": ["a", "b"]}).status_code == 201
        yield one
        if one.process.poll() is None:
            assert one.stop() == 0


def children(pid: int) -> set[int]:
    return set(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))


def is_gone(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    try:
        return stat.read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def decide(served: Served, key: str) -> str:
    """Get one decision over a new connection. Retries if the server is gone or refuses."""
    for _ in range(500):
        try:
            answer = served.post("/v1/experiments/layout/decisions", Idempotency_Key=key)
        except httpx.TransportError:
            time.sleep(0.02)  # for a moment no worker may be running
            continue
        if answer.status_code in (200, 201):
            return str(answer.json()["decision_id"])
        assert answer.status_code == 503
    raise AssertionError("never answered")


def counted(served: Served) -> float:
    """How many decisions were asked for, as one of the workers tells it."""
    try:
        text = served.get("/metrics").text
    except httpx.TransportError:  # it waited for a worker that was killed
        return -1.0
    found = re.findall(
        r'^belated_requests_total\{route="POST [^"]*/decisions",status="201"\} (\S+)$', text, re.MULTILINE
    )
    return float(found[0]) if found else 0.0


@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
def test_any_worker_tells_what_all_have_answered_and_the_sum_never_falls(served: Served) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: decide(served, f"key {n}"), range(60)))
    until(lambda: {counted(served) for _ in range(12)} == {60.0})
    before = children(served.process.pid)
    for pid in before:
        os.kill(pid, signal.SIGKILL)
        until(lambda pid=pid: pid not in children(served.process.pid))  # type: ignore[misc]
        until(lambda: len(children(served.process.pid)) == WORKERS)
    assert not before & children(served.process.pid)
    until(lambda: counted(served) >= 0 and "\nbelated_workers 3.0" in served.get("/metrics").text)
    assert {counted(served) for _ in range(12)} == {60.0}
    decide(served, "another")
    until(lambda: {counted(served) for _ in range(12)} == {61.0})


def test_all_of_them_serve_and_a_key_has_one_effect(served: Served) -> None:
    assert len(children(served.process.pid)) == WORKERS
    with ThreadPoolExecutor(8) as pool:
        ids = list(pool.map(lambda n: decide(served, f"key {n % 20}"), range(120)))
    assert len(set(ids)) == 20
    assert all(Counter(ids)[id] == 6 for id in ids)
    lines = map(json.loads, (served.folder / "service.log").read_text().splitlines())
    busy = {line["process"] for line in lines if line["logger"] == "uvicorn.access"}
    assert busy == children(served.process.pid)
    until(lambda: served.get("/v1/experiments/layout").json()["decisions"] == 20)


def test_one_that_dies_is_replaced_and_nothing_is_lost(served: Served) -> None:
    first = children(served.process.pid)
    known: set[str] = set()
    with ThreadPoolExecutor(4) as pool:
        for victim in first:
            answers = pool.map(lambda n: decide(served, f"key {n}"), range(len(known), len(known) + 40))
            os.kill(victim, signal.SIGKILL)
            known |= set(answers)
    until(lambda: len(children(served.process.pid) - first) == WORKERS)
    assert len(known) == 120
    assert served.stop() == 0
    assert "a worker has ended and is replaced" in (served.folder / "service.log").read_text()


def test_one_that_cannot_write_any_more_is_replaced(tmp_path: Path) -> None:
    """Otherwise it would answer 503 for ever, while the other one can write."""
    with Served(tmp_path, "--workers", "2") as served:
        served.post("/v1/experiments", {"name": "layout", "arms": ["a", "b"]})
        victim, other = children(served.process.pid)
        resource.prlimit(victim, resource.RLIMIT_FSIZE, (60_000, resource.RLIM_INFINITY))
        health = Counter[int]()

        def is_over() -> bool:
            with suppress(httpx.TransportError):  # a connection to the one that ends
                served.post("/v1/experiments/layout/decisions/batch", {"size": 50})
                health[served.get("/healthz").status_code] += 1
            return is_gone(victim)

        until(is_over, LAST_WORDS + 20)
        assert health.keys() == {200, 503}
        until(lambda: len(children(served.process.pid)) == 2)
        assert other in children(served.process.pid)
        assert len({decide(served, f"key {number}") for number in range(30)}) == 30
        lines = map(json.loads, served.log().splitlines())
        assert [line["code"] for line in lines if line["message"].startswith("a worker has ended")] == [STORE_FAILED]
        assert served.stop() == 0


def test_one_that_hangs_is_replaced(tmp_path: Path) -> None:
    """Its writer never comes back, so it cannot be stopped cleanly."""
    trigger = tmp_path / "trigger"
    with Served(tmp_path, "--workers", "2", inside=[sys.executable, hanging.__file__, str(trigger)]) as served:
        served.post("/v1/experiments", {"name": "layout", "arms": ["a", "b"]})
        before = children(served.process.pid)
        trigger.touch()
        with pytest.raises(httpx.TransportError):  # nobody answers, and then the process is gone
            served.post("/v1/experiments/layout/decisions")
        until(lambda: len(children(served.process.pid) - before) == 1, LAST_WORDS + 20)
        until(lambda: len(children(served.process.pid)) == 2)
        assert len({decide(served, f"key {number}") for number in range(30)}) == 30
        lines = map(json.loads, served.log().splitlines())
        assert [line["code"] for line in lines if line["message"].startswith("a worker has ended")] == [STORE_FAILED]
        assert served.stop() == 0


def test_a_store_that_is_moved_away_is_not_begun_anew(tmp_path: Path) -> None:
    """A new store would be empty, and without keys, so that everybody could use it."""
    with Served(tmp_path, "--workers", "2") as served:
        served.post("/v1/experiments", {"name": "layout", "arms": ["a", "b"]})
        before, away = decide(served, "key"), tmp_path / "away"
        away.mkdir()
        files = [*tmp_path.glob("belated.db*")]
        for file in files:
            file.rename(away / file.name)
        until(lambda: served.log().count("must not be begun anew") >= 2, LAST_WORDS + 30)
        assert not (tmp_path / "belated.db").exists()
        for file in files:
            (away / file.name).rename(file)
        until(lambda: is_ready(served), 60)
        assert decide(served, "key") == before


def is_ready(served: Served) -> bool:
    with suppress(httpx.TransportError):
        return served.get("/readyz").status_code == 200
    return False


def test_one_that_ends_again_and_again_is_replaced_less_and_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    supervisor, now, waits = Supervisor(Plan("belated.db", "127.0.0.1", 0), 1, []), [1000.0], list[float]()
    monkeypatch.setattr("belated.serve.process.workers.time", SimpleNamespace(monotonic=lambda: now[0]))
    for lived in (0.1, 0.1, 5.0, 5.0, 5.0, 5.0, STEADY + 1, 5.0):
        supervisor._started[0], supervisor._workers = now[0], {7: 0}
        now[0] += lived
        supervisor._reap(7, STORE_FAILED << 8)
        waits.append(supervisor._due.pop(0) - now[0])
        now[0] += waits[-1]
    assert waits == pytest.approx([0.9, 1, 2, 4, 8, LONGEST_PAUSE, 0, 1])


def test_the_store_is_sound_afterwards(tmp_path: Path) -> None:
    with Served(tmp_path, "--workers", "2") as served:
        served.post("/v1/experiments", {"name": "layout", "arms": ["a", "b"]})
        with ThreadPoolExecutor(8) as pool:
            ids = list(pool.map(lambda n: decide(served, f"key {n}"), range(200)))
            told = list(pool.map(lambda one: served.post(f"/v1/decisions/{one}/feedback", {"reward": 1}), ids * 2))
        assert Counter(answer.json()["status"] for answer in told) == {"applied": 200, "duplicate": 200}
        assert served.stop() == 0
    with closing(SQLiteJournal(tmp_path / "belated.db")) as journal:
        verdict = verify(journal)
    assert (verdict.problems, verdict.unchecked, verdict.decisions) == ([], 0, 200)
    assert verdict.snapshots >= 1


def test_they_end_with_their_supervisor_however_it_ends(tmp_path: Path) -> None:
    with Served(tmp_path, "--workers", "2") as served:
        workers = children(served.process.pid)
        served.kill()
        until(lambda: all(map(is_gone, workers)))
    lines = (tmp_path / "service.log").read_text()
    assert lines.count('"stopped"') == 2


def test_an_impatient_stop_ends_all(tmp_path: Path) -> None:
    with Served(tmp_path, "--workers", "2") as served:
        workers = children(served.process.pid)
        host, port = served.url.removeprefix("http://").split(":")
        with closing(httpx.Client(verify=NO_TLS)) as client, client.stream("GET", f"{served.url}/v1/experiments/live"):
            served.process.send_signal(signal.SIGINT)
            served.process.send_signal(signal.SIGINT)
            assert served.ended(within=20) == 0, (host, port)
        assert all(map(is_gone, workers))


def test_the_demonstration_runs_with_keys_too(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "belated", "keys", "create", "--scope", "admin"]
    made = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)  # noqa: S603
    key = f"Bearer {made.stdout.strip()}"
    with Served(tmp_path, "--workers", "2", "--demo") as served:
        assert served.get("/v1/experiments/demo").status_code == 401
        until(lambda: served.get("/v1/experiments/demo", Authorization=key).json().get("decisions", 0) > 5)


def test_it_can_be_started_again_at_once_at_the_same_port(tmp_path: Path) -> None:
    """Connections that the service has closed linger in TIME_WAIT. They must not block the port."""
    with Served(tmp_path, "--workers", "2") as served:
        port = int(served.url.rpartition(":")[2])
        callers = [socket.create_connection(("127.0.0.1", port)) for _ in range(8)]
        for caller in callers:
            caller.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            assert caller.recv(1000).startswith(b"HTTP/1.1 200")
        assert served.stop() == 0
        for caller in callers:
            caller.close()
    for workers in ("2", "1"):
        with Served(tmp_path, "--workers", workers, "--port", str(port)) as served:
            assert served.get("/healthz").status_code == 200


def test_children_of_others_are_none_of_its_business(tmp_path: Path) -> None:
    script = f"sleep 1 & exec {sys.executable} -m belated serve --port 0 --workers 2"
    with subprocess.Popen(["sh", "-c", script], cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603, S607
        assert process.stdout is not None
        url = process.stdout.readline().split("ready: ")[1].split()[0]
        until(lambda: len(children(process.pid)) == 2)
        assert httpx.get(f"{url}/readyz", verify=NO_TLS).status_code == 200
        process.terminate()
        assert process.wait(30) == 0


@pytest.mark.parametrize("wrong", [["--store", "no/such/folder/belated.db"], ["--host", "0.0.0.0"]])  # noqa: S104
def test_what_is_wrong_is_said_once(tmp_path: Path, wrong: list[str]) -> None:
    command = [sys.executable, "-m", "belated", "serve", "--port", "0", "--workers", "3", *wrong]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)  # noqa: S603
    assert done.returncode == 2
    assert done.stderr.count("no folder" if "--store" in wrong else "without keys") == 1


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_store_that_must_be_there_is_not_created(tmp_path: Path, workers: str) -> None:
    command = [sys.executable, "-m", "belated", "serve", "--port", "0", "--no-create", "--workers", workers]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)  # noqa: S603
    assert done.returncode == 2
    assert "the store belated.db is missing or empty" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_port_in_use_is_refused(tmp_path: Path) -> None:
    with Served(tmp_path, "--workers", "2") as served:
        port = served.url.rpartition(":")[2]
        for workers in ("1", "2"):
            command = [sys.executable, "-m", "belated", "serve", "--port", port, "--workers", workers]
            done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)  # noqa: S603
            assert done.returncode == 2
            assert "cannot listen" in done.stderr
