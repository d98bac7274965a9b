"""Durable decisions against the service's own no-op route, batches, start-up and memory."""

import http.client
import json
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Any

from belated.serve.domain.messages import OutcomeReport
from belated.serve.domain.settings import Settings
from belated.serve.engine.engine import OPEN_SHARE, Engine
from belated.serve.engine.requests import Ask, Create, Tell
from belated.serve.store.sqlite.journal import SQLiteJournal
from benchmarks.judging import judge, memory_of
from tests.support.service import Served

CONNECTIONS, SECONDS, REPEATS = 32, 4, 5
BATCH = 5_000
OPEN = 4_000_000
EXPERIMENT = {"name": "layout", "arms": ["blue", "green", "red"]}
KEYED = """
wrk.method = "POST"
math.randomseed(os.time())
local run, count = string.format("%d-%d", os.time(), math.random(1000000000)), 0
function request()
  count = count + 1
  wrk.headers["Idempotency-Key"] = run .. "-" .. count
  return wrk.format()
end
"""  # a key of its own for each request, as the Python client sends it
MANY_OPEN = ("--max-open", "100000000")  # nobody reports, so the default would end the measurement
MILLISECONDS = {"us": 0.001, "ms": 1.0, "s": 1000.0}


def load(url: str, script: Path, connections: int = CONNECTIONS, seconds: int = SECONDS) -> tuple[float, float]:
    """Requests a second and the 99th percentile in milliseconds, by wrk."""
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}", "--latency", "-s", str(script), url]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    refused = re.search(r"Non-2xx.*", said)
    if refused:
        raise RuntimeError(refused.group())
    rate = re.search(r"Requests/sec:\s+([\d.]+)", said)
    tail = re.search(r"99%\s+([\d.]+)(us|ms|s)", said)
    if rate is None or tail is None:
        raise RuntimeError(said)
    return float(rate[1]), float(tail[1]) * MILLISECONDS[tail[2]]


def single() -> None:
    """One worker and 32 connections. Durable decisions with a key each and the no-op route take turns."""
    print(f"\nservice: single decisions with keys, {CONNECTIONS} connections")
    with tempfile.TemporaryDirectory() as folder, Served(Path(folder), *MANY_OPEN) as served:
        served.post("/v1/experiments", EXPERIMENT)
        served.post("/v1/experiments/layout/decisions")
        tails = judge_single(served, 0.5)
    judge("99% of the decisions within (median run)", tails[len(tails) // 2], 20, "ms", at_most=True)


def judge_single(served: Served, bar: float) -> list[float]:
    """The same for a service that has the experiment. Returns the 99th percentiles in order."""
    with tempfile.TemporaryDirectory() as folder:
        post = Path(folder, "post.lua")
        post.write_text(KEYED)
        plain = Path(folder, "get.lua")
        plain.write_text("")
        pairs = [
            (load(f"{served.url}/healthz", plain), load(f"{served.url}/v1/experiments/layout/decisions", post))
            for _ in range(REPEATS)
        ]
    no_op, durable = max(one[0][0] for one in pairs), max(one[1][0] for one in pairs)
    print(f"  no-op {no_op:,.0f}/s, durable decisions with keys {durable:,.0f}/s, 99% within", end=" ")
    print(", ".join(f"{one[1][1]:.1f}" for one in pairs), "ms")
    judge("durable decisions with keys / no-op requests", durable / no_op, bar, "", at_most=False)
    return sorted(one[1][1] for one in pairs)


class Wire:
    """One connection, as cheap as Python has it."""

    def __init__(self, served: Served) -> None:
        self._connection = http.client.HTTPConnection(served.url.removeprefix("http://"), timeout=60)

    def post(self, path: str, body: bytes) -> bytes:
        self._connection.request("POST", path, body, {"Content-Type": "application/json"})
        answer = self._connection.getresponse()
        content = answer.read()
        if answer.status >= 300:
            raise RuntimeError(content[:500])
        return content


def decide(wire: Wire, size: int) -> list[str]:
    """The ids of a batch of decisions."""
    got = wire.post("/v1/experiments/layout/decisions/batch", json.dumps({"size": size}).encode())
    return re.findall(r'"decision_id":"([^"]+)"', got.decode())


def reports_of(ids: list[str]) -> bytes:
    """A batch of reports."""
    return json.dumps({"reports": [{"decision_id": one, "reward": 1} for one in ids]}).encode()


def rate(size: int, repeats: int, step: Callable[[], Any]) -> float:
    """The best of some repeats, in a second."""
    best = 0.0
    for _ in range(repeats):
        started = time.perf_counter()
        step()
        best = max(best, size / (time.perf_counter() - started))
    return best


def batches() -> None:
    """Batches over HTTP, one client."""
    print(f"\nservice: batches of {BATCH:,}")
    with tempfile.TemporaryDirectory() as folder, Served(Path(folder), *MANY_OPEN) as served:
        served.post("/v1/experiments", EXPERIMENT)
        wire = Wire(served)
        ids: list[list[str]] = [decide(wire, BATCH)]
        decided = rate(BATCH, 12, lambda: ids.append(decide(wire, BATCH)))
        bodies = iter([reports_of(one) for one in ids])
        reported = rate(BATCH, 12, lambda: wire.post("/v1/feedback", next(bodies)))
    judge("durable decisions a second", decided, 50_000, "", at_most=False)
    judge("durable reports a second", reported, 50_000, "", at_most=False)


def first_start() -> None:
    """An empty folder."""
    print("\nservice: start with an empty folder")
    times = []
    for _ in range(3):
        with tempfile.TemporaryDirectory() as folder, Served(Path(folder), *MANY_OPEN) as served:
            times.append(served.ready_after)
    judge("ready after", min(times), 2, "s", at_most=True)


def start_up() -> None:
    """A million decisions in the journal, killed without a farewell."""
    print("\nservice: start with 1,000,000 decisions in the journal, 30% of them open")
    with tempfile.TemporaryDirectory() as folder:
        engine = Engine(SQLiteJournal(Path(folder, "belated.db")))
        engine.process([Create(Settings("layout", ["blue", "green", "red"]))])
        for _ in range(1_000):
            got: Any = engine.process([Ask("layout", 1_000)])[0]
            engine.process([Tell([OutcomeReport(one.id, "reward", 1.0) for one in got.decisions[:700]])])
            if engine.is_snapshot_due():
                engine.snapshot()
        waiting = engine.unsnapshotted
        engine.journal.close()
        times = []
        for _ in range(3):
            with Served(Path(folder), *MANY_OPEN) as served:
                times.append(served.ready_after)
                served.kill()
    print(f"  {waiting:,} entries since the last snapshot")
    judge("ready after", min(times), 3, "s", at_most=True)


def snapshot() -> None:
    """Single decisions while a snapshot of 4,000,000 open decisions is saved."""
    print(f"\nservice: a snapshot of {OPEN:,} open decisions")
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder, "belated.db")
        engine = Engine(SQLiteJournal(store, synchronous="OFF"), max_open=2 * OPEN)
        engine.process([Create(Settings("layout", ["blue", "green", "red"]))])
        due = OPEN // OPEN_SHARE + BATCH
        for size in (OPEN - due, due):
            engine.snapshot()
            for _ in range(size // BATCH):
                engine.process([Ask("layout", BATCH)])
        engine.journal.close()
        os.sync()  # it was filled without, and the first checkpoint would pay for that
        with Served(Path(folder), *MANY_OPEN) as served, closing(SQLiteJournal(store, readonly=True)) as journal:
            before, waits, started = journal.snapshot_seq(), [], time.monotonic()
            wire = Wire(served)
            while journal.snapshot_seq() == before:
                asked = time.perf_counter()
                wire.post("/v1/experiments/layout/decisions", b"{}")
                waits.append(time.perf_counter() - asked)
            took = time.monotonic() - started
    print(f"  saved after {took:.1f} s, {len(waits):,} decisions meanwhile, half within {median(waits) * 1e3:.1f} ms")
    judge("the longest wait for a decision", 1e3 * max(waits), 50, "ms", at_most=True)


def memory() -> None:
    """Five million decisions, 30% never reported, a wait that ends after them."""
    memory_over(5_000_000)


def memory_over(decisions: int) -> list[float]:
    """The same for any number of decisions. Returns the megabytes after each million."""
    print(f"\nservice: memory over {decisions:,} decisions, 30% never reported")
    with tempfile.TemporaryDirectory() as folder, Served(Path(folder), *MANY_OPEN) as served:
        served.post("/v1/experiments", {**EXPERIMENT, "reward_wait": 2, "default_outcome": 0})
        wire, sizes = Wire(served), []
        for turn in range(1, decisions // BATCH + 1):
            ids = decide(wire, BATCH)
            wire.post("/v1/feedback", reports_of(ids[: BATCH * 7 // 10]))
            if turn % 200 == 0:
                sizes.append(memory_of(served.process.pid) / 2**20)
                said = served.get("/v1/experiments/layout").json()
                print(f"  {turn * BATCH:>9,} decisions, {said['outstanding']:>7,} open: {sizes[-1]:.0f} MB", flush=True)
                counts = said["decisions"], said["reported"] + said["late"]
                if counts != (turn * BATCH, turn * BATCH * 7 // 10):
                    raise RuntimeError(f"the service counts {counts} decisions and reports")
    judge(f"memory after {decisions:,} / after 1,000,000", sizes[-1] / sizes[0], 1.1, "", at_most=True)
    return sizes
