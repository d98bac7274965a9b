"""Statistical tests with fixed seeds. Every threshold comes from the variance of the statistic."""

import math

import numpy as np
import pytest

from belated import FTRL
from belated.tunings import schedule
from tests.support.catalogue import TUNINGS
from tests.support.oracles import play

Z = 4.5  # one test in 150,000 would fail by chance


@pytest.mark.parametrize(
    ("name", "refresh"), [("advanced", 1), ("advanced, discarding", 1), ("shadow", 4), ("means", 1)]
)
def test_loss_estimates_are_unbiased_in_a_small_sample(name: str, refresh: int) -> None:
    """A few hundred games. tests/system/learner plays thousands with every tuning."""
    assert_unbiased(name, refresh, runs=200)


def assert_unbiased(name: str, refresh: int, runs: int) -> None:
    """The mean of the estimates differs from the true losses by chance only."""
    k, n = 3, 40
    generator = np.random.default_rng(len(name))
    losses = generator.random((n, k)) * [1.0, 0.6, 0.2]
    delays = (generator.geometric(0.1, n) - 1).clip(max=n - np.arange(1, n + 1))
    kept = np.ones(n, bool)
    if TUNINGS[name].discard:
        skipped_in = schedule(TUNINGS[name], k, delays).skipped_in
        kept = (skipped_in == 0) | (skipped_in > np.arange(1, n + 1) + delays)
    estimates = np.empty((runs, k))
    for seed in range(runs):
        learner = FTRL(k, TUNINGS[name], seed=seed, refresh=refresh)
        play(learner, delays.tolist(), losses)
        assert learner.outstanding == 0
        estimates[seed] = learner.status.estimated_losses
    error = estimates.mean(axis=0) - losses[kept].sum(axis=0)
    assert (np.abs(error) < Z * estimates.std(axis=0) / math.sqrt(runs)).all()


@pytest.mark.parametrize("k", [2, 10])
def test_drawn_arms_match_their_stated_probabilities(k: int) -> None:
    """Chi-square of a large batch from one uneven distribution."""
    learner = FTRL(k, seed=6)
    for _ in range(20):
        for decision in learner.ask(k):
            learner.tell(decision.round, (decision.arm % 5) / 4)
    size = 500 * k
    x = learner.distribution()
    assert x.max() / x.min() > 2
    counts = np.bincount([decision.arm for decision in learner.ask(size)], minlength=k)
    chi_square = ((counts - size * x) ** 2 / (size * x)).sum()
    assert abs(chi_square - (k - 1)) < Z * math.sqrt(2 * (k - 1)) + Z**2


@pytest.mark.parametrize("name", TUNINGS)
def test_arms_match_probabilities_along_a_game(name: str) -> None:
    """sum_t (1[A_t = i] - x_t[i]) is a martingale with variance sum_t x_t[i] (1 - x_t[i])."""
    k, n = 4, 4000
    learner = FTRL(k, TUNINGS[name], seed=21)
    surplus, variance = np.zeros(k), np.zeros(k)
    for t in range(1, n + 1):
        x = learner.distribution()
        decision = learner.ask()
        surplus += (np.arange(k) == decision.arm) - x
        variance += x * (1 - x)
        if t > 15:
            learner.tell(t - 15, 0.9 if t % 2 else 0.1)
    assert (np.abs(surplus) < Z * np.sqrt(variance)).all()
