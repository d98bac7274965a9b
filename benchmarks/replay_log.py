"""Replay reads a log of a million rows in seconds, and evaluates it at microseconds a decision."""

import tempfile
import time
from pathlib import Path

import numpy as np

import belated
from belated import replay
from benchmarks.judging import judge

ROWS, JUDGED = 1_000_000, 50_000


def write(path: Path) -> None:
    """Two arms, feedback 100 rounds late on average."""
    generator = np.random.default_rng(1)
    known = np.arange(ROWS) + generator.exponential(100, ROWS)
    arms, coins = generator.integers(0, 2, ROWS), generator.integers(0, 2, ROWS)
    lines = [f"{t},{'ab'[arms[t]]},{coins[t]},{known[t]:.1f},0.5" for t in range(ROWS)]
    path.write_text("\n".join(["time,arm,outcome,outcome_time,probability", *lines]))


def reading_and_judging() -> None:
    """Read the log, and evaluate the default tuning on its beginning."""
    print("\na decision log of 1,000,000 rows")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.csv"
        write(path)
        started = time.perf_counter()
        log = replay.read(path)
        judge("reading the CSV", time.perf_counter() - started, 10, "s", at_most=True)
    first = slice(0, JUDGED)
    chances = None if log.probabilities is None else log.probabilities[first]
    part = replay.Log(
        log.arm_names, log.times[first], log.arms[first], log.outcomes[first], log.outcome_times[first], chances
    )
    replay.evaluate(part, belated.tunings.Shadow())  # compiles
    started = time.perf_counter()
    replay.evaluate(part, belated.tunings.Shadow())
    judge("off-policy, the default tuning", (time.perf_counter() - started) / JUDGED * 1e6, 60, "us", at_most=True)
