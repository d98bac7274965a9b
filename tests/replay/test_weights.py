"""The test of mean weights, against exact binomial probabilities and on simulated logs."""

import math

import numpy as np
import pytest

from belated.arrays import Floats, Integers
from belated.replay import UNIFORM, Log, evaluate_all
from belated.replay.verdict import off_weights
from belated.replay.weights import chance_of
from tests.support.decided_logs import decided

SEEDS = range(200)


def binomial(n: int, p: float) -> Floats:
    """The probability of each number of draws."""
    logs = [
        math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1) + i * math.log(p) + (n - i) * math.log1p(-p)
        for i in range(n + 1)
    ]
    return np.exp(logs)


@pytest.mark.parametrize("n", [200, 2000, 9600])
@pytest.mark.parametrize("k", [2, 10, 80])
def test_the_chance_of_an_alarm_is_exactly_below_its_share(n: int, k: int) -> None:
    """An arm that is drawn with probability 1/k. It may raise its share of 5% of the alarms."""
    limit, exact = 0.05 / (k + 7), binomial(n, 1 / k)
    near = np.flatnonzero(exact > 1e-12)
    alarms = [draws for draws in near.tolist() if chance_of(np.where(np.arange(n) < draws, float(k), 0.0)) < limit]
    assert exact[alarms].sum() <= limit
    if n / k >= 100:
        assert exact[alarms].sum() >= 0.2 * limit  # nor is it much too shy


def test_no_draw_says_nothing() -> None:
    assert chance_of(np.zeros(5)) == 1
    assert chance_of(np.ones(5)) == 1


def raises(log: Log, chances: Floats) -> bool:
    log = Log(log.arm_names, log.times, log.arms, log.outcomes, log.outcome_times, chances)
    return bool(off_weights(evaluate_all(log, policies=[*range(log.n_arms), UNIFORM])))


def off_by_a_fifth(arms: Integers, k: int, seed: int) -> Floats:
    return np.random.default_rng(seed).choice([0.8, 1.2], k)[arms]


def test_eighty_equal_arms_raise_no_alarm() -> None:
    logs = [decided([0.2] * 80, 9600, seed) for seed in SEEDS]
    assert np.mean([raises(log, np.full(9600, 1 / 80)) for log in logs]) <= 0.08  # 5% and two standard errors


@pytest.mark.parametrize(("k", "n"), [(2, 600), (10, 2000), (80, 9600)])
def test_probabilities_off_by_a_fifth_are_found(k: int, n: int) -> None:
    logs = [decided([0.2] * k, n, seed) for seed in range(40)]
    assert all(raises(log, np.full(n, 1.2 / k)) for log in logs)
    mixed = [raises(log, off_by_a_fifth(log.arms, k, seed) / k) for seed, log in enumerate(logs)]
    assert np.mean(mixed) >= 0.95


def test_a_log_that_a_learner_wrote_raises_no_alarm() -> None:
    """Its probabilities become small, and its weights rare and large."""
    alarms = 0
    for seed in range(100):
        log = decided([0.2] * 10, 1000, seed, is_adaptive=True)
        assert log.probabilities is not None
        alarms += raises(log, log.probabilities)
    assert alarms <= 5
