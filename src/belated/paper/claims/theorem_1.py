"""Claim 2 is ZS20's Theorem 1, for the simple tuning and for any proper rule."""

import math

import numpy as np

from belated import bounds, lab
from belated.arrays import Integers
from belated.paper import grid
from belated.paper.claim import OBLIVIOUS, Check, Claim, ClaimKind, Effort, Finding, exactly
from belated.paper.claims.the_game import random_delays
from belated.tunings import Simple, SquareRoot, Tuning, schedule

OWN_LOSSES = ("coin flips, gap 0.9", "constrained adversary")


class Cautious(Tuning):
    """A custom rule with three times the simple tuning's entropy and a head start."""

    elementwise = True

    def rates(
        self, n_arms: int, round: int, outstanding: int, backlog: int, sqrt: SquareRoot = math.sqrt
    ) -> tuple[float, float]:
        return sqrt(round), 1 + 3 * sqrt(2 * backlog / math.log(n_arms))


class Steady(Tuning):
    """A custom rule that ignores delays."""

    def rates(self, n_arms: int, round: int, outstanding: int, backlog: int) -> tuple[float, float]:
        return math.sqrt(round), 2 * math.sqrt(round)


def general_bound(tuning: Tuning) -> grid.Bound:
    """The bound 4 sqrt(kn) + beta_n ln k + sum_t o_t / beta_t."""

    def bound(n_arms: int, delays: Integers) -> float:
        return bounds.theorem_3(n_arms, delays, schedule(tuning, n_arms, delays).beta)

    return bound


def algebra(effort: Effort) -> Check:
    """Check beta_n ln k + sum_t o_t / beta_t <= sqrt(8 D ln k) with the tuning's own rates."""
    generator, runs = np.random.default_rng([effort.seed, 5]), effort.pick(1_000, 20_000)
    largest = 0.0
    for _ in range(runs):
        delays, n_arms = random_delays(generator), int(generator.choice([2, 3, 8, 100]))
        plain = 4 * math.sqrt(n_arms * delays.size)
        allowed = bounds.theorem_1(n_arms, delays) - plain
        if allowed > 0:
            largest = max(largest, (general_bound(Simple())(n_arms, delays) - plain) / allowed)
    text = f"at most {largest:.3f} of √(8 D ln k), {runs:,} delay sequences (formulas, no games)"
    return exactly("The general form with the simple tuning's rates is at most the bound", largest <= 1 + 1e-9, text)


def own_rules(effort: Effort) -> list[grid.Cell]:
    """Play both custom rules on every kind of delay."""
    cells, n = [], effort.pick(8_000, 40_000)
    for tuning in (Cautious(), Steady()):
        for name, delays in grid.DELAYS.items():
            for label in OWN_LOSSES:
                problem = lab.Problem(grid.LOSSES[label], delays, 10, n)
                words = f"{label}, rule {type(tuning).__name__}"
                case = grid.Case(name, words, problem, effort.seeds(4, 32), grid.worst_arm)
                cells += grid.against([grid.play(tuning, case, effort)], general_bound(tuning))
    return cells


def investigate(effort: Effort) -> Finding:
    """Play the whole grid with the simple tuning, and custom rules on every kind of delay."""
    measured, own = (
        grid.against(grid.play_all(Simple(), effort, grid.LATE_COMEBACK), bounds.theorem_1),
        own_rules(effort),
    )
    nearest = grid.worst(measured)
    return Finding(
        f"regret at most {nearest.ratio:.2f} of the bound on {len(grid.informative(measured))} problems where a bad "
        "learner breaks it",
        [
            grid.judge("Reg ≤ 4 √(kn) + √(8 D ln k), simple tuning", measured),
            algebra(effort),
            grid.judge("Reg ≤ 4 √(kn) + β_n ln k + Σ o_t / β_t, custom rules", own),
        ],
        [
            grid.figure("theorem-1", "Theorem 1: regret / bound, informative problems", measured),
            grid.figure("theorem-1-own-rules", "The general form with custom rules", own),
        ],
        [grid.table("Nearest to the bound", measured)],
    )


CLAIM = Claim(
    "theorem-1",
    "Theorem 1: the simple tuning",
    ClaimKind.THEOREM,
    (
        "If all outstanding observations tune the rate, the regret is at most "
        "4 √(kn) + √(8 D ln k) for all losses and delays, without knowing n or D. "
        "For any other proper rule β_t it is at most 4 √(kn) + β_n ln k + Σ o_t / β_t. "
        "Losses and delays are fixed in advance.",
    ),
    investigate,
    OBLIVIOUS,
    cost=8,
)
