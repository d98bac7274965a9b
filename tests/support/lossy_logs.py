"""Logs whose arms report alike, or not."""

import math
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from belated.replay import Log

RATES = np.array([0.10, 0.12, 0.20])  # as in examples/make_log.py
DAYS = 86400.0


def healthy(
    seed: int, n: int = 4000, *, is_drifting: bool = True, is_exported: bool = False, never: float = 0.05
) -> Log:
    """Three arms with unequal shares and unequal success rates. Some outcomes never come, whatever the arm.

    Successes come within hours and failures after two days, as in examples/make_log.py. If the log is exported at its
    last decision, later outcomes are blank, and then every outcome takes the same time on average.
    """
    generator = np.random.default_rng(seed)
    times = np.sort(generator.random(n)) * 14 * DAYS
    turn = 0.4 * times / times[-1] if is_drifting else np.zeros(n)
    chances = np.column_stack([0.5 - turn, np.full(n, 0.3), 0.2 + turn])
    arms = (generator.random(n)[:, None] > np.cumsum(chances, axis=1)).sum(axis=1).clip(0, 2)
    values = (generator.random(n) < RATES[arms]).astype(float)
    waits = np.where(values == 1, 3600 * generator.pareto(1.2, n) + 3600, 2 * DAYS)
    if is_exported:
        waits = generator.exponential(DAYS, n)
    is_lost = generator.random(n) < never + 0.1 * (np.sin(times / DAYS) > 0.5)  # some days lose more than others
    is_lost |= is_exported & (times + waits > times[-1])
    return Log(
        ("wide", "narrow", "calm"),
        times,
        arms,
        np.where(is_lost, math.nan, values),
        np.where(is_lost, math.inf, times + waits),
        chances[np.arange(n), arms],
    )


def without(log: Log, is_lost: Any) -> Log:
    """The log without the outcomes of some rows."""
    outcomes, known = log.outcomes.copy(), log.outcome_times.copy()
    outcomes[is_lost], known[is_lost] = math.nan, math.inf
    return Log(log.arm_names, log.times, log.arms, outcomes, known, log.probabilities)


def positives_only(log: Log) -> Log:
    """The log as a service writes it that reports sales, and nothing if there is none."""
    return without(log, log.outcomes == 0)


def write(log: Log, path: Any) -> Any:
    """The log as a CSV file."""
    assert log.probabilities is not None
    rows = ["time,arm,outcome,outcome_time,probability"]
    columns = (log.times, log.arms, log.outcomes, log.outcome_times, log.probabilities)
    for time, arm, outcome, known, chance in zip(*(column.tolist() for column in columns), strict=True):
        came = f"{outcome:g},{_date(known)}" if math.isfinite(outcome) else ","
        rows.append(f"{_date(time)},{log.arm_names[arm]},{came},{chance!r}")
    path.write_text("\n".join(rows))
    return path


def _date(seconds: float) -> str:
    return (datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)).isoformat()
