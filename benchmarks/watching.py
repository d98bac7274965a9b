"""What reading costs those who decide: dashboards on a large experiment, and downloads of a large journal."""

import http.client
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from belated.serve.domain.messages import OutcomeReport
from belated.serve.domain.settings import Settings
from belated.serve.engine.engine import Engine
from belated.serve.engine.requests import Ask, Create, Tell
from belated.serve.store.sqlite.journal import SQLiteJournal
from benchmarks.decision_service import MANY_OPEN, load
from benchmarks.judging import judge
from tests.support.service import Served

ARMS, DASHBOARDS, REPEATS = 1_000, 10, 3
LONG = 15  # seconds, so that several documents are sent
DECISIONS, BATCH = 40_000, 100
EXPORTED = 1_000_000
LIVE = "/v1/experiments/layout/live?differences=true"
WATCHER = """
import sys, threading, urllib.request
counts = [0] * int(sys.argv[2])
def watch(number):
    with urllib.request.urlopen(sys.argv[1]) as stream:
        while chunk := stream.read1(1 << 16):
            counts[number] += len(chunk)
for number in range(len(counts)):
    threading.Thread(target=watch, args=(number,), daemon=True).start()
sys.stdin.readline()
print(sum(counts), flush=True)
"""


def fill(folder: str, arms: int, decisions: int, batch: int) -> None:
    """A journal with an experiment, in which 70% of the decisions have an outcome."""
    engine, generator = Engine(SQLiteJournal(Path(folder, "belated.db"), synchronous="OFF")), np.random.default_rng(1)
    engine.process([Create(Settings("layout", [f"option {number}" for number in range(arms)]))])
    for _ in range(decisions // batch):
        got: Any = engine.process([Ask("layout", batch)])[0]
        known = got.decisions[: batch * 7 // 10]
        engine.process([Tell([OutcomeReport(one.id, "reward", float(generator.random() < 0.1)) for one in known])])
    engine.snapshot()
    engine.journal.close()


@contextmanager
def watched(served: Served, number: int) -> Iterator[list[int]]:
    """Open dashboards in another process. The list has the bytes that they got, at the end."""
    command = [sys.executable, "-c", WATCHER, served.url + LIVE, str(number)]
    pipe: Any = subprocess.PIPE
    process, got = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True), list[int]()
    time.sleep(1.5)  # until all have their first document
    try:
        yield got
    finally:
        got.append(int(process.communicate("\n")[0]))
        time.sleep(1)  # until the service has noticed that they are gone


def dashboards() -> None:
    """Single decisions with and without open dashboards, taking turns."""
    print(f"\nreading: {DASHBOARDS} dashboards on an experiment with {ARMS:,} arms")
    with tempfile.TemporaryDirectory() as folder:
        fill(folder, ARMS, DECISIONS, BATCH)
        with Served(Path(folder), *MANY_OPEN) as served:
            post = Path(folder, "post.lua")
            post.write_text('wrk.method = "POST"\n')
            url = f"{served.url}/v1/experiments/layout/decisions"
            load(url, post)
            size = len(served.get("/v1/experiments/layout").content)
            alone, together, received = list[float](), list[float](), list[int]()
            for _ in range(REPEATS):
                alone.append(load(url, post, seconds=LONG)[1])
                with watched(served, DASHBOARDS) as got:
                    together.append(load(url, post, seconds=LONG)[1])
                received += got
    print(f"  99% within {', '.join(f'{one:.1f}' for one in alone)} ms without,", end=" ")
    print(f"{', '.join(f'{one:.1f}' for one in together)} ms with dashboards")
    print(f"  each dashboard got {median(received) / DASHBOARDS / 1e3:,.0f} kB in about {LONG + 2} seconds")
    judge("size of the document", size / 1e3, 500, "kB", at_most=True)
    judge("99% with dashboards / without (medians)", median(together) / median(alone), 2, "", at_most=True)


def exports() -> None:
    """The first byte and the rest of a download, while nobody decides."""
    print(f"\nreading: downloads of {EXPORTED:,} decisions")
    with tempfile.TemporaryDirectory() as folder:
        fill(folder, 3, EXPORTED, 5_000)
        with Served(Path(folder), *MANY_OPEN) as served:
            for kind in ("csv", "parquet"):
                first, whole, size = download(served, f"/v1/experiments/layout/export.{kind}")
                print(f"  {kind}: {size / 1e6:.0f} MB in {whole:.1f} s")
                judge(f"first byte of {kind}", first, 0.5, "s", at_most=True)


def download(served: Served, path: str) -> tuple[float, float, int]:
    """Seconds until the first byte and until the last, and the bytes."""
    connection, size = http.client.HTTPConnection(served.url.removeprefix("http://"), timeout=300), 0
    began = time.perf_counter()
    connection.request("GET", path)
    answer, first = connection.getresponse(), 0.0
    while chunk := answer.read1(1 << 20):
        first, size = first or time.perf_counter() - began, size + len(chunk)
    return first, time.perf_counter() - began, size
