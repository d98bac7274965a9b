"""A known problem with logs drawn from it, to compare off-policy estimates with the truth."""

import math
from typing import Any, NamedTuple

import numpy as np

from belated import FTRL
from belated.arrays import Floats
from belated.replay import UNIFORM, Log, evaluate
from belated.tunings import Tuning


class World(NamedTuple):
    """A problem fixed in advance, with the mean loss of every arm and the time of the feedback in every round."""

    means: Floats
    times: Floats
    outcome_times: Floats
    logging: Floats  # the probability of each arm in every round


def world(n: int = 150, *, is_skewed: bool, seed: int = 5) -> World:
    generator = np.random.default_rng(seed)
    means = np.tile([0.3, 0.5, 0.7], (n, 1))
    means[n // 2 :] = means[n // 2 :, ::-1]  # halfway the best arm becomes the worst
    times = np.cumsum(generator.exponential(1.0, n))
    waits = np.where(generator.random(n) < 0.1, math.inf, generator.exponential(8.0, n))
    turning = 0.2 * np.sin(np.arange(n) / 7)
    skewed = np.column_stack([0.5 + turning, 0.3 - turning / 2, 0.2 - turning / 2])
    return World(means, times, times + waits, skewed if is_skewed else np.full((n, 3), 1 / 3))


def log_of(problem: World, generator: np.random.Generator) -> Log:
    n = problem.times.size
    arms = (generator.random(n)[:, None] > np.cumsum(problem.logging, axis=1)).sum(axis=1).clip(0, 2)
    rounds = np.arange(n)
    losses = (generator.random((n, 3)) < problem.means)[rounds, arms].astype(float)
    outcomes = np.where(np.isfinite(problem.outcome_times), losses, math.nan)
    chances = problem.logging[rounds, arms]
    return Log(("a", "b", "c"), problem.times, arms, outcomes, problem.outcome_times, chances)


def true_value(problem: World, log: Log, policy: Any) -> float:
    """The mean of <x_t, mean losses of round t> over the rounds whose outcome comes."""
    came = np.isfinite(problem.outcome_times)
    if policy == UNIFORM:
        return float(problem.means[came].mean())
    if isinstance(policy, int):
        return float(problem.means[came, policy].mean())
    x = all_probabilities(log, policy) if isinstance(policy, Tuning) else problem.logging
    return float((x * problem.means).sum(axis=1)[came].mean())


def all_probabilities(log: Log, tuning: Tuning) -> Floats:
    """x_t of every arm, from a second learner that gets the same log."""
    learner = FTRL(3, tuning, seed=0)
    told: set[int] = set()
    assert log.probabilities is not None
    x = np.empty((log.times.size, 3))
    for t, now in enumerate(log.times):
        ready = set(np.flatnonzero(log.outcome_times[:t] <= now).tolist()) - told
        for s in sorted(ready, key=lambda s: log.outcome_times[s]):
            learner.tell(s + 1, float(log.outcomes[s]))
            told.add(s)
        x[t] = learner.distribution()
        learner.record(int(log.arms[t]), float(log.probabilities[t]))
    return x


def assert_unbiased_and_covered(policy: Any, is_skewed: bool) -> None:
    """On 200 logs of one world, the mean error is 0 within 4 standard errors and 90 to 99% of the intervals cover."""
    problem, n_logs = world(is_skewed=is_skewed), 200
    errors, covered = [], []
    for seed in range(n_logs):
        log = log_of(problem, np.random.default_rng(seed))
        estimate, truth = evaluate(log, policy), true_value(problem, log, policy)
        errors.append((estimate.ips.value - truth, estimate.snips.value - truth))
        covered.append([one.low <= truth <= one.high for one in (estimate.ips, estimate.snips)])
    means, spreads = np.mean(errors, axis=0), np.std(errors, axis=0, ddof=1)
    assert abs(means[0]) < 4 * spreads[0] / math.sqrt(n_logs)
    assert abs(means[1]) < 4 * spreads[1] / math.sqrt(n_logs) + 0.005  # a ratio is unbiased in the limit only
    shares = np.mean(covered, axis=0)
    assert ((shares >= 0.9) & (shares <= 0.99)).all(), shares
