"""Logs of arms with known rates of success, decided uniformly or by a learner, with and without delay."""

from collections.abc import Sequence
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from belated import FTRL
from belated.arrays import Floats
from belated.replay import Log
from belated.tunings import Means

LEARNERS = 10**6  # the seed of a learner must not be that of its world


def decided(
    rates: Sequence[float] | Floats, n: int, seed: int, *, is_adaptive: bool = False, delay: float = 0.0
) -> Log:
    """A log of n decisions with outcomes 1 and 0. Outcomes come after `delay` decisions on average."""
    generator, rate = np.random.default_rng(seed), np.asarray(rates)
    times = np.arange(n, dtype=np.float64)
    known = times + (generator.exponential(delay, n) if delay else 0.0)
    successes = generator.random((n, 1)) < rate
    if is_adaptive:
        return _learned(successes, times, known, seed)
    arms = generator.integers(0, rate.size, n)
    return _log(successes, times, known, arms.tolist(), [1 / rate.size] * n)


def _learned(successes: NDArray[np.bool_], times: Floats, known: Floats, seed: int) -> Log:
    """The default tuning decides. It is told each outcome when it is known."""
    learner = FTRL(successes.shape[1], Means(), seed=LEARNERS + seed)
    arms: list[int] = []
    chances: list[float] = []
    due: list[tuple[float, int, bool]] = []  # a heap
    for t in range(times.size):
        while due and due[0][0] <= t:
            _, round, success = heappop(due)
            learner.tell(round, float(not success))
        decision = learner.ask()
        arms.append(decision.arm)
        chances.append(decision.probability)
        heappush(due, (known[t], decision.round, bool(successes[t, decision.arm])))
    return _log(successes, times, known, arms, chances)


def _log(successes: NDArray[np.bool_], times: Floats, known: Floats, arms: list[int], chances: list[float]) -> Log:
    names = tuple(f"arm {number}" for number in range(successes.shape[1]))
    outcomes = successes[np.arange(times.size), arms].astype(float)
    return Log(names, times, np.array(arms), outcomes, known, np.array(chances))
