"""Claim 10 measures the distance to the lower bound, for uniform delays as d grows."""

import math
from typing import NamedTuple

import numpy as np

from belated import bounds, lab
from belated.arrays import Floats
from belated.paper.claim import (
    OBLIVIOUS,
    SEVERITY,
    Check,
    Claim,
    ClaimKind,
    Effort,
    Finding,
    at_most,
    exactly,
    judge_mean,
    near,
)
from belated.reports import Figure, Table, columns_of, lines
from belated.tunings import Simple

LOSSES: dict[str, lab.Losses] = {
    "coin flips, gap 0.1": lab.Bernoulli(gap=0.1),
    "coin flips, gap 0.3": lab.Bernoulli(gap=0.3),
    "coin flips, gap 0.9": lab.Bernoulli(gap=0.9, mean=0.95),
    "resonant wave": lab.Wave(),
    "shifting best arm": lab.Shifting(),
    "comeback": lab.Comeback(),
}
N_ARMS = 10
DELAYS = (0, 3, 10, 30, 100, 300, 1_000)
HEAVY = "comeback"  # rare draws decide its games, so it needs more seeds than the others


class Distance(NamedTuple):
    """The bound, the largest regret over the losses and the lower bound, for one delay."""

    delay: int
    proven: float
    games: dict[str, Floats]  # the regret of every seed, for all losses
    least: float

    @property
    def largest(self) -> float:
        """The largest mean regret over the losses."""
        return max(float(ends.mean()) for ends in self.games.values())

    def judged(self) -> Check:
        """Check that the regret on all losses is at most the proven bound, in units of the lower bound."""
        limit = self.proven / self.least
        ratios = {name: ends / self.least for name, ends in self.games.items()}
        name = max(ratios, key=lambda at: (SEVERITY.index(judge_mean(ratios[at], limit)), ratios[at].mean()))
        return at_most(f"d = {self.delay:,}, largest regret / lower bound ({name})", ratios[name], limit)


def measure(delay: int, n_rounds: int, effort: Effort) -> tuple[Distance, Check]:
    """Play all losses and block coins, which attain the lower bound."""
    delays, seeds = lab.Fixed(delay), effort.seeds(16, 64)
    whole = n_rounds - n_rounds % (delay + 1)  # the formula counts whole blocks
    of_coins = bounds.lower_bound_uniform_delay(N_ARMS, n_rounds, delay)
    coins = play(lab.Problem(lab.BlockCoins(), delays, N_ARMS, whole), seeds, effort)
    few, many = effort.seeds(4, 16), effort.seeds(96, 256)
    games = {
        name: play(lab.Problem(losses, delays, N_ARMS, n_rounds), many if name == HEAVY else few, effort)
        for name, losses in LOSSES.items()
    }
    least = max(of_coins, bounds.lower_bound(N_ARMS, n_rounds))
    check = near(f"d = {delay:,}, block coins cost what the formula says", coins, of_coins)
    return Distance(
        delay, bounds.theorem_1(N_ARMS, np.full(n_rounds, delay)), games | {"block coins": coins}, least
    ), check


def condition(n_rounds: int) -> Check:
    """Check that the lower bound's condition d <= n / ln k is where sqrt(d n ln k) exceeds n, for every d."""
    log_k = math.log(N_ARMS)
    right = [(math.sqrt(d * n_rounds * log_k) <= n_rounds) == (d <= n_rounds / log_k) for d in range(n_rounds)]
    text = f"{sum(right):,} of {len(right):,} delays (formulas, no games)"
    return exactly("√(dn ln k) ≤ n, the most that can be lost, exactly if d ≤ n / ln k", all(right), text)


def play(problem: lab.Problem, seeds: range, effort: Effort) -> Floats:
    """The simple tuning's regret of every seed. With one delay for all rounds there is nothing to skip."""
    return np.asarray(effort.play(Simple(), problem, seeds).expected[:, -1])


def figure(distances: list[Distance], n_rounds: int) -> Figure:
    """A figure of all three against d."""
    names = {"proven": "Theorem 1", "largest": "largest measured regret", "least": "lower bound"}
    rows = [(words, at.delay + 1, float(getattr(at, field))) for field, words in names.items() for at in distances]
    draw = lines("d + 1", "regret", "what", scales=("log", "log"), dashed=("Theorem 1", "lower bound"))
    title = f"Uniform delay d (k = {N_ARMS}, n = {n_rounds:,})"
    return Figure("lower-bound", title, columns_of(("what", "d + 1", "regret"), rows), draw)


def investigate(effort: Effort) -> Finding:
    """Measure every d in turn."""
    n = effort.pick(10_000, 100_000)
    distances, checks = map(list, zip(*(measure(d, n, effort) for d in DELAYS), strict=True))
    proven = [at.proven / at.least for at in distances]
    measured = [at.largest / at.least for at in distances]
    rows = [(f"{d:,}", f"{a:.1f}", f"{b:.1f}") for d, a, b in zip(DELAYS, proven, measured, strict=True)]
    header = ("d", "bound / lower bound (formulas)", "largest regret / lower bound (measured)")
    return Finding(
        f"regret at most {max(measured):.1f} times the lower bound, the proven bound at most {max(proven):.0f} times",
        [*(at.judged() for at in distances), *checks, condition(n)],
        [figure(distances, n)],
        [Table(f"Distance to the lower bound, fixed losses and delays, k = {N_ARMS}, n = {n:,}", header, rows)],
    )


CLAIM = Claim(
    "lower-bound",
    "The distance to the lower bound",
    ClaimKind.MEASUREMENT,
    (
        "For a uniform delay d ≤ n / ln k no algorithm can be better than order √(kn) + √(dn ln k), so ZS20's bound is "
        "optimal up to a constant. For a longer delay √(dn ln k) exceeds n, and more than n cannot be lost. All delays "
        "here are shorter. The lower bound used here comes from blocks of d + 1 rounds that share one fair coin for "
        "each arm. Nothing can be learned in time, so all algorithms that cannot see the "
        "future have the same expected regret. The limit of a measured ratio is the proven bound / the lower bound.",
    ),
    investigate,
    f"{OBLIVIOUS} All delays are the same d ≤ n / ln k.",
    cost=1,
)
