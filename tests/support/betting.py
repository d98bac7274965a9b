"""Bets that keep every outcome, transcribed from Waudby-Smith & Ramdas, Estimating means of bounded random variables by
betting, JRSS B 2024: rivals for belated.verdicts. Two options, drawn uniformly."""

import math
from collections.abc import Iterable

import numpy as np

from belated.arrays import Floats

ALPHA = 0.05


def difference_bet(outcomes: Iterable[tuple[int, float]]) -> int:
    """Decisions until a bet on one of the two signs has 2 / alpha.

    u_t = +-(y_t - c_t), c_t the mean so far. The bets are aGRAPA, truncated.
    """
    totals, squares, wealth = 0.0, 0.25, [0.0, 0.0]
    total = 0.5
    for t, (arm, outcome) in enumerate(outcomes, 1):
        u = (1 if arm else -1) * (outcome - total / t)
        bet = max(-0.9, min(0.9, totals / squares))
        wealth = [wealth[0] + math.log1p(max(0.0, bet) * u), wealth[1] + math.log1p(min(0.0, bet) * u)]
        totals, squares, total = totals + u, squares + u * u, total + outcome
        if max(wealth) >= math.log(2 / ALPHA):
            return t
    raise AssertionError


class Hedged:
    """The hedged capital process of one mean, on a grid of means (their Theorem 3, with c = 1/2 and theta = 1/2)."""

    def __init__(self, alpha: float) -> None:
        self.alpha, self.grid = alpha, np.linspace(0.0005, 0.9995, 1000)
        self.up, self.down = np.zeros(1000), np.zeros(1000)
        self.is_alive = np.ones(1000, bool)
        self.t, self.total, self.spread = 0, 0.5, 0.25

    def add(self, outcome: float) -> None:
        """Bet with the predictable plug-in (their equation 26)."""
        self.t += 1
        t = self.t
        bet = math.sqrt(2 * math.log(2 / self.alpha) / (self.spread / t * t * math.log(t + 1)))
        self.up += np.log1p(np.minimum(bet, 0.5 / self.grid) * (outcome - self.grid))
        self.down += np.log1p(-np.minimum(bet, 0.5 / (1 - self.grid)) * (outcome - self.grid))
        self.is_alive &= np.maximum(self.up, self.down) < math.log(2 / self.alpha)
        self.total += outcome
        self.spread += (outcome - self.total / (t + 1)) ** 2

    def interval(self) -> Floats:
        """The means that are left."""
        alive = self.grid[self.is_alive]
        return np.array([alive.min(), alive.max()]) if alive.size else np.full(2, self.total / (self.t + 1))


def hedged_disjoint(outcomes: Iterable[tuple[int, float]]) -> int:
    """Decisions until the intervals of the two means, each at 1 - alpha / 2, do not meet."""
    sides = Hedged(ALPHA / 2), Hedged(ALPHA / 2)
    for t, (arm, outcome) in enumerate(outcomes, 1):
        sides[arm].add(outcome)
        if t % 10 == 0:
            one, two = sides[0].interval(), sides[1].interval()
            if one[1] < two[0] or two[1] < one[0]:
                return t
    raise AssertionError
