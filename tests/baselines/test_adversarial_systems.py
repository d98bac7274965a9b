"""Exp3 with uniform play and the algorithm for arm-dependent delays, each compared with a literal transcription."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from belated.baselines import Hoeven2022, MixedExp3, hoeven_2022, mixed_exp3
from belated.errors import InvalidInput
from tests.support.bandits import random_delays
from tests.support.oracles import exact_argmin


@pytest.mark.parametrize("gamma", [0.05, 1.0])
def test_mixed_exp3_is_the_rule(gamma: float) -> None:
    """Weights are multiplied by exp(gamma xhat / k) when a report comes. xhat is reward / probability."""
    n, k = 300, 3
    losses, delays = np.random.default_rng(1).random((n, k)), random_delays(n, 12, 1)
    learner, weights, due = MixedExp3(k, gamma, seed=2), np.ones(k), dict[int, list[int]]()
    drawn: list[tuple[int, float]] = []
    for t in range(1, n + 1):
        x = (1 - gamma) * weights / weights.sum() + gamma / k
        np.testing.assert_allclose(learner.distribution(), x, rtol=1e-9)
        arm = learner.ask().arm
        drawn.append((arm, float(x[arm])))
        due.setdefault(t + delays[t - 1], []).append(t)
        for s in due.pop(t, []):
            arm, probability = drawn[s - 1]
            weights[arm] *= math.exp(gamma * (1 - losses[s - 1, arm]) / probability / k)
            learner.tell(s, losses[s - 1, arm])


def test_mixed_exp3_has_its_best_gamma() -> None:
    for k, n in ((2, 100), (10, 5000)):
        gamma = mixed_exp3.best_gamma(k, n)
        least = mixed_exp3.bound(k, n, gamma)
        assert least == pytest.approx(2 * math.sqrt((math.e - 1) * n * k * math.log(k)))
        assert all(mixed_exp3.bound(k, n, gamma * factor) > least for factor in (0.9, 1.1))
    assert mixed_exp3.best_gamma(50, 3) == mixed_exp3.best_gamma(1, 9) == 1
    for gamma in (0, 1.01, -1):
        with pytest.raises(InvalidInput, match="gamma"):
            MixedExp3(3, gamma)


def by_arm(t: int, arm: int) -> int:
    return (3 * t + 11 * arm) % 17


def by_time(t: int, _arm: int) -> int:
    return (7 * t) % 23


@pytest.mark.parametrize("delay", [by_arm, by_time])
def test_hoeven_is_the_paper_algorithm(delay: Callable[[int, int], int]) -> None:
    """Section 4.2 with every sum computed from the list of rounds. `by_arm` has delays that depend on the arm."""
    n, k, rho = 80, 3, 23
    losses = np.random.default_rng(3).random((n, k)) * (0.2, 1.0, 0.7)
    learner, due = Hoeven2022(k, rho, seed=3), dict[int, list[int]]()
    rounds: list[tuple[int, float, int]] = []  # arm, probability, and when its loss comes
    missing_sums: list[float] = []
    for t in range(1, n + 1):
        estimates = np.zeros(k)
        for s, (arm, q, end) in enumerate(rounds, 1):
            if end < t:
                estimates[arm] += losses[s - 1, arm] / (q + 1 / math.sqrt(s))
        inverse_gamma = math.sqrt((rho * math.sqrt(t) + sum(missing_sums)) / math.log(k))
        if t % 8 == 0:
            x = exact_argmin(estimates.tolist(), math.sqrt(t), inverse_gamma, 20)
            np.testing.assert_allclose(learner.distribution(), [float(value) for value in x], rtol=1e-9)
        arm, probability = learner.ask()[1:]
        missing_sums.append(sum(1 / q for other, q, end in rounds if other == arm and end >= t))
        rounds.append((arm, probability, t + delay(t, arm)))
        due.setdefault(rounds[-1][2], []).append(t)
        for s in due.pop(t, []):
            learner.tell(s, losses[s - 1, rounds[s - 1][0]])
    assert sum(missing_sums) > rho


def test_the_bound_of_hoeven() -> None:
    expected = 9 * math.sqrt(5 * 400) + 8 + 3 * math.sqrt(6000 * math.log(5))
    assert hoeven_2022.bound(5, 400, 6000, 16) == pytest.approx(expected)
    with pytest.raises(InvalidInput, match="most_missing"):
        Hoeven2022(3, -1)


def test_hoeven_without_delays_has_no_entropy() -> None:
    """Nothing is ever missing. So it is the hybrid with beta = 0, on estimates with loss / (x + 1 / sqrt(t))."""
    learner, estimates = Hoeven2022(3, 0, seed=1), np.zeros(3)
    for t in range(1, 30):
        x = exact_argmin(estimates.tolist(), math.sqrt(t), 0.0, 20)
        np.testing.assert_allclose(learner.distribution(), [float(value) for value in x], rtol=1e-9)
        arm, probability = learner.ask()[1:]
        learner.tell(t, (0.3, 0.9, 0.5)[arm])
        estimates[arm] += (0.3, 0.9, 0.5)[arm] / (probability + 1 / math.sqrt(t))
