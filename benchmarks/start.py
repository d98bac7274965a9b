"""From nothing to the first decision, in fresh processes with an empty cache and with a full one."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.judging import best_of, judge
from tests.support.service import Served, compile_kernels

FIRST = """
import time
began = time.perf_counter()
import belated
belated.FTRL(10, seed=1).ask()
print(time.perf_counter() - began)
"""
RUSH = """
import json, time
began = time.perf_counter()
import belated
learner = belated.FTRL(10, seed=1)
count, slowest, now = 0, 0.0, time.perf_counter()
switched = None
while now < began + 15:
    learner.tell(learner.ask(), 0.5)
    before, now, count = now, time.perf_counter(), count + 1
    slowest = max(slowest, now - before)
    if switched is None and type(learner._state.ask_next).__name__ == "partial":
        switched = now - began
print(json.dumps([count, slowest, switched]))
"""


def in_fresh_process(code: str, cache: str) -> str:
    """What a fresh interpreter prints that keeps its compiled kernels in this folder."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache, "BELATED_KERNELS": "auto"}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout


def first_decision() -> None:
    """The first decision, k = 10."""
    print("\nfirst decision of a fresh process, k = 10")
    with tempfile.TemporaryDirectory() as empty, tempfile.TemporaryDirectory() as full:
        in_fresh_process("import runpy; runpy.run_module('belated.warming', run_name='__main__')", full)
        cold, warm = best_of(
            5, lambda: float(in_fresh_process(FIRST, empty)), lambda: float(in_fresh_process(FIRST, full))
        )
    judge("with an empty cache", cold, 0.5, "s", at_most=True)
    judge("with a warm cache", warm, 0.35, "s", at_most=True)


def first_seconds() -> None:
    """Decisions and reports while the kernels are being compiled."""
    print("\nthe first 15 s with an empty cache, k = 10, best of 3")
    runs = []
    for _ in range(3):
        with tempfile.TemporaryDirectory() as empty:
            runs.append(json.loads(in_fresh_process(RUSH, empty)))
    for count, slowest, switched in runs:
        when = "not yet compiled" if switched is None else f"compiled after {switched:.1f} s"
        print(f"  {count:,} decisions, the slowest {slowest * 1e3:.0f} ms, {when}")
    judge("decisions with their reports", max(run[0] for run in runs), 20_000, "", at_most=False)
    judge("the slowest", min(run[1] for run in runs) * 1e3, 50, "ms", at_most=True)


def service() -> None:
    """An empty folder and an empty cache."""
    print("\nservice: ready with an empty folder and an empty cache")
    compile_kernels()  # as every test of a server does. The servers measured here know nothing of it
    before, times = dict(os.environ), []
    for _ in range(3):
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as cache:
            os.environ.update(NUMBA_CACHE_DIR=cache, BELATED_KERNELS="auto")
            try:
                with Served(Path(folder)) as served:
                    times.append(served.ready_after)
            finally:
                os.environ.clear()
                os.environ.update(before)
    judge("ready after", min(times), 2, "s", at_most=True)
