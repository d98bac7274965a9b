"""Claim 10 measures the distance to the lower bound, for uniform delays as d grows."""

from typing import NamedTuple

import numpy as np

from belated import bounds, lab
from belated.arrays import Floats
from belated.paper.claim import Check, Claim, ClaimKind, Effort, Finding, exactly, near
from belated.reports import Figure, Table, columns_of, lines
from belated.tunings import Simple

LOSSES: dict[str, lab.Losses] = {
    "coin flips, gap 0.1": lab.Bernoulli(gap=0.1),
    "coin flips, gap 0.3": lab.Bernoulli(gap=0.3),
    "resonant wave": lab.Wave(),
    "shifting best arm": lab.Shifting(),
    "comeback": lab.Comeback(),
}
N_ARMS = 10
DELAYS = (0, 3, 10, 30, 100, 300, 1_000)


class Distance(NamedTuple):
    """The bound, the largest regret over the losses and the lower bound, for one delay."""

    delay: int
    proven: float
    largest: float
    least: float


def measure(delay: int, n_rounds: int, effort: Effort) -> tuple[Distance, Check]:
    """Play all losses and block coins, which attain the lower bound."""
    delays, seeds = lab.Fixed(delay), effort.seeds(16, 64)
    whole = n_rounds - n_rounds % (delay + 1)  # the formula counts whole blocks
    of_coins = bounds.lower_bound_uniform_delay(N_ARMS, n_rounds, delay)
    coins = play(lab.Problem(lab.BlockCoins(), delays, N_ARMS, whole), seeds, effort.workers)
    games = [
        play(lab.Problem(losses, delays, N_ARMS, n_rounds), seeds[: effort.pick(4, 16)], effort.workers)
        for losses in LOSSES.values()
    ]
    largest = max(float(ends.mean()) for ends in [*games, coins])
    least = max(of_coins, bounds.lower_bound(N_ARMS, n_rounds))
    check = near(f"d = {delay:,}, block coins cost what the formula says", coins, of_coins)
    return Distance(delay, bounds.theorem_1(N_ARMS, np.full(n_rounds, delay)), largest, least), check


def play(problem: lab.Problem, seeds: range, workers: int) -> Floats:
    """The simple tuning's regret of every seed. With one delay for all rounds there is nothing to skip."""
    curves = lab.play(Simple(), problem, seeds, checkpoints=[problem.n_rounds], workers=workers)
    return np.asarray(curves.expected[:, -1])


def figure(distances: list[Distance], n_rounds: int) -> Figure:
    """A figure of all three against d."""
    names = {"proven": "Theorem 1", "largest": "largest measured regret", "least": "lower bound"}
    rows = [(words, at.delay + 1, getattr(at, field)) for field, words in names.items() for at in distances]
    draw = lines("d + 1", "regret", "what", scales=("log", "log"), dashed=("Theorem 1", "lower bound"))
    title = f"Uniform delay d (k = {N_ARMS}, n = {n_rounds:,})"
    return Figure("lower-bound", title, columns_of(("what", "d + 1", "regret"), rows), draw)


def investigate(effort: Effort) -> Finding:
    """Measure every d in turn."""
    n = effort.pick(10_000, 100_000)
    distances, checks = map(list, zip(*(measure(d, n, effort) for d in DELAYS), strict=True))
    proven = [at.proven / at.least for at in distances]
    measured = [at.largest / at.least for at in distances]
    text = ", ".join(f"{ratio:.1f}" for ratio in proven)
    what = "The bound / the lower bound never grows with d (from formulas, without games)"
    rows = [(f"{d:,}", f"{a:.1f}", f"{b:.1f}") for d, a, b in zip(DELAYS, proven, measured, strict=True)]
    header = ("d", "bound / lower bound", "largest regret / lower bound")
    return Finding(
        f"regret at most {max(measured):.1f} times the lower bound, the proven bound at most {max(proven):.0f} times",
        [*checks, exactly(what, sorted(proven, reverse=True) == proven, text)],
        [figure(distances, n)],
        [Table("Distance to the lower bound", header, rows)],
    )


CLAIM = Claim(
    "lower-bound",
    "The distance to the lower bound",
    ClaimKind.MEASUREMENT,
    (
        "For a uniform delay d no algorithm can be better than order √(kn) + √(dn ln k), so ZS20's bound is optimal "
        "up to a constant. The lower bound used here comes from blocks of d + 1 rounds that share one fair coin for "
        "each arm. Nothing can be learned in time, so every algorithm has exactly the same expected regret.",
    ),
    investigate,
    cost=1,
)
