"""Claim 6 is TCS19's unbalanced example. A few excessive delays change the order of growth.

TCS19 is Thune, Cesa-Bianchi & Seldin, Nonstochastic Multiarmed Bandits with Unrestricted Delays, NeurIPS 2019.
"""

from typing import NamedTuple

import numpy as np

from belated import bounds, lab
from belated.arrays import Floats
from belated.lab.intervals import half_width
from belated.paper.claim import OBLIVIOUS, Claim, ClaimKind, Effort, Finding, at_most
from belated.reports import Figure, Table, columns_of, lines
from belated.tunings import Advanced, Simple

N_ARMS = 2
TUNINGS = {"simple": Simple(), "advanced": Advanced()}
BOUNDS = {"simple": bounds.theorem_1, "advanced": bounds.theorem_2}


def slope(rounds: list[int], values: Floats) -> float:
    """The slope of the least-squares line through (ln n, ln value)."""
    return float(np.polyfit(np.log(rounds), np.log(values), 1)[0])


class Growth(NamedTuple):
    """The results of a tuning on games of growing length."""

    regrets: Floats  # a row for each length, a column for each seed
    bounds: list[float]
    slopes: list[float]  # of the regret, for each seed
    proven: float  # of the delay's part of the bound


def measure(name: str, horizons: list[int], effort: Effort) -> Growth:
    """Play all lengths and fit the slopes."""
    problems = [lab.Problem(lab.Bernoulli(gap=0.5), lab.Unbalanced(), N_ARMS, n) for n in horizons]
    seeds = effort.seeds(8, 32)
    games = [effort.play(TUNINGS[name], problem, seeds) for problem in problems]
    regrets = np.array([game.expected[:, -1] for game in games])
    limits = [BOUNDS[name](N_ARMS, problem.draw_delays(0)) for problem in problems]
    of_delay = np.array(limits) - 4 * np.sqrt(N_ARMS * np.array(horizons))
    return Growth(regrets, limits, [slope(horizons, column) for column in regrets.T], slope(horizons, of_delay))


def figure(horizons: list[int], growths: dict[str, Growth]) -> Figure:
    """A figure of the regret and the bound of both tunings."""
    rows: list[tuple[str, int, float, float]] = []
    for name, growth in growths.items():
        halves = [float(half_width(of_seeds)) for of_seeds in growth.regrets]
        rows += zip([f"{name}: regret"] * len(horizons), horizons, growth.regrets.mean(axis=1), halves, strict=True)
        rows += [(f"{name}: bound", n, bound, 0.0) for n, bound in zip(horizons, growth.bounds, strict=True)]
    columns = columns_of(("what", "rounds", "regret", "half width"), rows)
    dashed = ("simple: bound", "advanced: bound")
    draw = lines("rounds", "regret", "what", half="half width", scales=("log", "log"), dashed=dashed)
    return Figure("unbalanced", "Unbalanced delays, k = 2", columns, draw)


def investigate(effort: Effort) -> Finding:
    """Compare the slopes of the measured regret with those of the delay's part of the bounds."""
    horizons = [2_000 * 4**i for i in range(effort.pick(4, 5))]
    growths = {name: measure(name, horizons, effort) for name in TUNINGS}
    simple, advanced = growths["simple"], growths["advanced"]
    exponents = np.mean(simple.slopes), np.mean(advanced.slopes)
    checks = [
        at_most("The simple tuning's regret grows like n^(3/4) or slower", simple.slopes, 0.75),
        at_most("The advanced tuning's regret grows like n^(1/2) or slower", advanced.slopes, 0.5),
        at_most("Advanced exponent minus simple exponent", np.subtract(advanced.slopes, simple.slopes), -0.1),
    ]
    rows = [(name, f"{growth.proven:.3f}", f"{np.mean(growth.slopes):.3f}") for name, growth in growths.items()]
    header = ("tuning", "exponent of the delay's part of the bound (formula)", "exponent of the regret (measured)")
    headline = "regret grows like n^{:.2f} with the simple, n^{:.2f} with the advanced tuning".format(*exponents)
    span = f"n from {horizons[0]:,} to {horizons[-1]:,}"
    table = Table(f"Growth with n (coin flips, gap 0.5, k = {N_ARMS}, {span})", header, rows)
    return Finding(headline, checks, [figure(horizons, growths)], [table])


CLAIM = Claim(
    "unbalanced",
    "Unbalanced delays: n^(3/4) against n^(1/2)",
    ClaimKind.MEASUREMENT,
    (
        "Suppose the first √(kn / ln k) reports come only at the end and all others at once. Then D is of order "
        "n^(3/2), and the simple tuning's bound is of order n^(3/4). The advanced tuning stops waiting and keeps "
        "n^(1/2). Losses and delays are fixed in advance. The exponents are fitted to games of "
        "four lengths or more. That the bounds grow so is arithmetic, shown in the table and not judged.",
    ),
    investigate,
    OBLIVIOUS,
    cost=1,
)
