"""The bound of exponential weights with a constant rate, against the exact regret of every small game."""

import itertools
import math
from collections.abc import Sequence
from itertools import groupby

import numpy as np
import pytest

from belated.arrays import Floats
from belated.baselines import BZCBBDoubling, bzcbb_doubling, constant_rate, skipper
from tests.support.bandits import random_delays


def exact_regrets(k: int, delays: Sequence[int], losses: Floats, eta: float) -> Floats:
    """The expected regret of Exp3 on each of the loss matrices (m, n, k), by enumerating all draws."""
    draws = np.array(list(itertools.product(range(k), repeat=len(delays))))
    chance, suffered = np.ones((len(losses), len(draws))), np.zeros((len(losses), len(draws)))
    estimated = np.zeros((len(losses), len(draws), k))
    due: dict[int, list[tuple[int, Floats]]] = {}
    rows = np.arange(len(draws))
    for t, delay in enumerate(delays):
        weights = np.exp(-eta * (estimated - estimated.min(axis=2, keepdims=True)))
        x = (weights / weights.sum(axis=2, keepdims=True))[:, rows, draws[:, t]]
        loss = losses[:, t][:, draws[:, t]]
        chance *= x
        suffered += loss
        due.setdefault(t + delay, []).append((t, loss / np.maximum(x, 1e-290)))
        for s, estimate in due.pop(t, []):
            estimated[:, rows, draws[:, s]] += estimate
    expected: Floats = (chance * suffered).sum(axis=1) - losses.sum(axis=1).min(axis=1)
    return expected


@pytest.mark.parametrize("eta", [0.1, 0.5, 2.0, 10.0])
def test_no_short_game_of_two_arms_beats_the_bound(eta: float) -> None:
    n = 4
    losses = np.array(list(itertools.product([0.0, 1.0], repeat=2 * n))).reshape(-1, n, 2)
    losses = losses[losses[:, 0, 0] <= losses[:, 0, 1]]  # the others have the arms swapped
    for delays in itertools.product(*(range(n - t) for t in range(n))):
        worst = exact_regrets(2, delays, losses, eta).max()
        assert worst <= constant_rate.bound(2, n, sum(delays), eta)


def test_climbing_to_bad_games_does_not_beat_the_bound() -> None:
    """Change one loss at a time for the worse. Every start ends far below the bound."""
    rng, n, k, eta = np.random.default_rng(5), 6, 3, 0.7
    highest = 0.0
    for _ in range(4):
        delays = [int(rng.integers(0, n - t)) for t in range(n)]
        bound = constant_rate.bound(k, n, sum(delays), eta)
        game, regret = rng.integers(0, 2, (n, k)).astype(float), -math.inf
        while True:
            flips = np.array([np.abs(game - one.reshape(n, k)) for one in np.eye(n * k)])
            regrets = exact_regrets(k, delays, flips, eta)
            if regrets.max() <= regret + 1e-12:
                break
            game, regret = flips[regrets.argmax()], float(regrets.max())
        highest = max(highest, regret / bound)
    assert 0.2 < highest <= 1


def test_the_bound_is_the_sum_of_its_terms() -> None:
    assert constant_rate.bound(5, 100, 40, 0.1) == pytest.approx(math.log(5) * 10 + 0.1 * (250 + 10))
    assert constant_rate.bound(1, 100, 40, 0.1) == 0
    delays = [0, 9, 1, 3, 0, 9, 2, 1, 0, 0]  # the second waits until the end, for 8 rounds
    eta = skipper.dew_rate(3, delays, beta=5)
    assert skipper.bound(3, delays, beta=5) == pytest.approx(1 + constant_rate.bound(3, 9, 11, eta))


def test_the_bound_of_bzcbb_adds_up_its_epochs() -> None:
    n, k = 300, 3
    delays = random_delays(n, 12, 3)
    learner, due, epochs = BZCBBDoubling(k, seed=1), dict[int, list[int]](), []
    for t, delay in enumerate(delays, 1):
        learner.ask()
        epochs.append(learner.epoch)
        due.setdefault(t + delay, []).append(t)
        for s in due.pop(t, []):
            learner.tell(s, 0.0)
    total = 0.0
    for epoch, group in groupby(range(n), key=lambda t: epochs[t]):
        rounds = list(group)
        missing = sum(s + delays[s] >= t for t in rounds for s in rounds if s < t)
        total += constant_rate.bound(k, len(rounds), missing, math.sqrt(math.log(k) / 2**epoch))
    assert bzcbb_doubling.bound(k, delays) == pytest.approx(total)
    assert len(set(epochs)) > 6
