"""Delays in rounds from clock times, compared with a direct count."""

import math
from dataclasses import replace

import numpy as np
import pytest

from belated import bounds
from belated.lab import NEVER
from belated.replay import Log, delays_in_rounds, measure
from belated.replay.log_sections import _digits
from belated.replay.pictures import waiting_table
from belated.replay.waiting import quantiles


def counted_out(times: list[float], outcome_times: list[float]) -> list[int]:
    delays = []
    for t, outcome_time in enumerate(outcome_times):
        usable = [u for u in range(t + 1, len(times)) if times[u] >= outcome_time]
        delays.append(usable[0] - t - 1 if usable else NEVER)
    return delays


def random_log(seed: int, n: int = 60) -> Log:
    """Many equal times, instant feedback, feedback that never comes or only after the last decision."""
    generator = np.random.default_rng(seed)
    times = np.sort(generator.integers(0, n // 2, n)).astype(float)
    waits = generator.choice([0.0, 0.5, 1.0, 3.0, 20.0, math.inf], n)
    outcomes = np.where(np.isfinite(waits), 0.5, math.nan)
    return Log(("a", "b", "c"), times, generator.integers(0, 3, n), outcomes, times + waits)


@pytest.mark.parametrize("seed", range(30))
def test_delays_are_those_counted_out(seed: int) -> None:
    log = random_log(seed)
    assert delays_in_rounds(log.times, log.outcome_times).tolist() == counted_out(
        log.times.tolist(), log.outcome_times.tolist()
    )


@pytest.mark.parametrize("seed", range(10))
def test_statistics_by_brute_force(seed: int) -> None:
    log = random_log(seed)
    delays, n = counted_out(log.times.tolist(), log.outcome_times.tolist()), log.times.size
    found = measure(log)
    outstanding = [sum(s + delays[s] >= t for s in range(t)) for t in range(n)]
    assert (found.n_arms, found.n_rounds) == (3, n)
    assert found.largest_backlog == max(outstanding)
    assert found.total == sum(outstanding)
    came = np.isfinite(log.outcomes)
    late = [delay == NEVER for delay in delays]
    assert found.share_never == pytest.approx(np.count_nonzero(~came) / n)
    assert found.share_after == pytest.approx(np.count_nonzero(came & late) / n)
    assert (found.best_skipping, found.skipped) == bounds.best_skipping(3, delays)
    in_time = sorted(delay for delay in delays if delay < NEVER)
    assert found.rounds.largest == in_time[-1]
    assert found.rounds.median == in_time[math.ceil(len(in_time) / 2) - 1]
    assert found.seconds.largest == (log.outcome_times - log.times)[came].max()


def test_a_simple_example() -> None:
    times = np.array([0.0, 10.0, 20.0, 30.0])
    delays = delays_in_rounds(times, np.array([10.0, 20.5, math.inf, 30.0]))
    assert delays.tolist() == [0, 1, NEVER, NEVER]  # nobody decides after the last round


@pytest.mark.parametrize("n_open", range(30))
def test_shares_are_never_below_zero(n_open: int) -> None:
    """Nothing is lost here, and rounding must not say less than nothing."""
    times = np.arange(30.0)
    is_open = times >= 30 - n_open
    log = Log(
        ("a", "b"), times, np.arange(30) % 2, np.where(is_open, math.nan, 0.5), np.where(is_open, math.inf, times)
    )
    found = measure(replace(log, is_open=is_open))
    assert found.share_never == 0
    assert found.share_open == n_open / 30
    [never] = [row for row in waiting_table("Delays", {"the log": found}).rows if row[0] == "never reported"]
    assert never[1] == "0.00%"


@pytest.mark.parametrize(("value", "text"), [(-0.0, "0"), (-0.25, "-0.25"), (-1200.0, "-1,200"), (0.1234, "0.123")])
def test_no_estimate_is_minus_zero(value: float, text: str) -> None:
    assert _digits(value, 3) == text


def test_nothing_came_in_time() -> None:
    assert all(map(math.isnan, quantiles(np.empty(0))))
    log = Log(("a", "b"), np.zeros(2), np.arange(2), np.full(2, math.nan), np.full(2, math.inf))
    assert measure(log).share_never == 1
    assert measure(log).total == 1  # the first round was still out when the second was decided
