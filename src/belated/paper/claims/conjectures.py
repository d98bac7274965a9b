"""Claim 11 shows the two conjectures of the discussion as experiments. Nothing is judged."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from belated import bounds, lab
from belated.arrays import Floats, Integers
from belated.lab.intervals import half_width
from belated.paper.claim import OBLIVIOUS, Claim, ClaimKind, Effort, Finding
from belated.paper.orders import Blocks, block_lengths, must_lose
from belated.reports import Figure, Table, columns_of, lines
from belated.tunings import Advanced, Simple, Tsallis, Tuning

STOCHASTIC: dict[str, tuple[Tuning, lab.Delays]] = {
    "no delays": (Advanced(), lab.NoDelay()),
    "simple, fixed 100": (Simple(), lab.Fixed(100)),
    "advanced, fixed 100": (Advanced(), lab.Fixed(100)),
    "advanced, geometric 100": (Advanced(), lab.Geometric(100)),
    "β = 0, fixed 100": (Tsallis(), lab.Fixed(100)),
}


def growth(rounds: Integers, regret: Floats) -> tuple[float, str]:
    """The slope of the last decade in log-log scale, and whether a + b ln n or a + b sqrt(n) fits it better."""
    last = rounds >= rounds[-1] / 10
    n, values = rounds[last].astype(float), regret[last]
    slope = float(np.polyfit(np.log(n), np.log(np.maximum(values, 1e-9)), 1)[0])
    misfits = {}
    for name, basis in (("log", np.log(n)), ("sqrt", np.sqrt(n))):
        misfits[name] = float(((np.polyval(np.polyfit(basis, values, 1), basis) - values) ** 2).sum())
    return slope, min(misfits, key=misfits.__getitem__)


def stochastic(effort: Effort) -> tuple[Figure, Table]:
    """Play long games with coin flips."""
    n, seeds = effort.pick(300_000, 10_000_000), effort.seeds(4, 16)
    at = np.unique(np.geomspace(100, n, 40).astype(np.int64))
    points: list[tuple[str, int, float, float]] = []
    rows = []
    for name, (tuning, delays) in STOCHASTIC.items():
        problem = lab.Problem(lab.Bernoulli(gap=0.2), delays, 5, n)
        curves = effort.play(tuning, problem, seeds, at.tolist())
        points += zip([name] * at.size, at.tolist(), curves.mean.tolist(), curves.interval.tolist(), strict=True)
        slope, better = growth(at, curves.mean)
        rows.append((name, f"{curves.mean[-1]:,.0f} ± {curves.interval[-1]:,.0f}", f"{slope:.2f}", better))
    columns = columns_of(("learner", "round", "regret", "half width"), points)
    title = "Stochastic losses (coin flips, gap 0.2, k = 5)"
    draw = lines("round", "regret", "learner", half="half width", scales=("log", "linear"))
    header = ("learner", f"regret, n = {n:,}", "slope of the last decade", "better fit")
    return Figure("conjecture-stochastic", title, columns, draw), Table(
        "Does the regret grow like log or sqrt?", header, rows
    )


DELAYS: dict[str, lab.Delays] = {
    "unbalanced": lab.Unbalanced(),
    "Pareto 0.5": lab.Pareto(0.5),
    "geometric 100": lab.Geometric(100),
}
ORDERS: dict[str, Callable[[Integers, np.random.Generator], Integers]] = {
    "longest first": lambda delays, _: np.sort(delays)[::-1],
    "random order": lambda delays, generator: generator.permutation(delays),
    "longest last": lambda delays, _: np.sort(delays),
}
N_ARMS = 2
PLAYED = 32_000  # rounds of the games that are played. The share needs no game


class Tightness(NamedTuple):
    """What every algorithm must lose with one order of the delays, and what the advanced tuning loses there."""

    delays: str
    order: str
    n_rounds: int
    m: float
    unavoidable: float
    measured: Floats | None  # only where it is played

    @property
    def share(self) -> float:
        """What must be lost, in units of sqrt(kn) + m, the order of Theorem 2."""
        return self.unavoidable / (math.sqrt(N_ARMS * self.n_rounds) + self.m)


def tightness(name: str, order: str, n_rounds: int, effort: Effort) -> Tightness:
    """Draw the delays once, put them in order, and play the block coins for that order."""
    generator = np.random.default_rng([effort.seed, 7])
    drawn = np.minimum(DELAYS[name].draw(N_ARMS, n_rounds, generator), n_rounds)
    ordered = ORDERS[order](drawn, generator)
    lengths = block_lengths(ordered)
    problem = lab.Problem(Blocks(lengths), lab.GivenDelays(ordered), N_ARMS, n_rounds)
    is_played = n_rounds == PLAYED
    measured = effort.play(Advanced(), problem, effort.seeds(16, 64)).expected[:, -1] if is_played else None
    m = bounds.best_skipping(N_ARMS, np.sort(drawn)[::-1]).value  # of the set, with the least clipped by the end
    unavoidable = float(must_lose(N_ARMS, lengths, effort.pick(2_000, 20_000), generator).mean())
    return Tightness(name, order, n_rounds, m, unavoidable, measured)


def permuted(effort: Effort) -> tuple[Figure, Table, list[Tightness]]:
    """Put the same delays in three orders and compare what must be lost with the order of the bound."""
    horizons = [2_000 * 4**i for i in range(effort.pick(4, 5))]
    kinds = [(name, order, n) for name in DELAYS for order in ORDERS for n in horizons]
    found = [tightness(*kind, effort) for kind in effort.watch(kinds)]
    drawn = ("longest first", "random order")  # the table has all orders
    points = [(f"{at.delays}, {at.order}", at.n_rounds, at.share) for at in found if at.order in drawn]
    columns = columns_of(("what", "rounds", "share"), points)
    rows = [
        (
            f"{at.delays}, {at.order}",
            f"{math.sqrt(N_ARMS * at.n_rounds) + at.m:,.0f}",
            f"{at.unavoidable:,.0f}",
            f"{at.share:.2f}",
            f"{at.measured.mean():,.0f} ± {half_width(at.measured):,.0f}",
        )
        for at in found
        if at.measured is not None
    ]
    header = ("delays and order", "√(kn) + m", "every algorithm loses", "share", "advanced loses (measured)")
    title = f"The same delays in three orders, coins fixed in advance (k = {N_ARMS}, n = {PLAYED:,})"
    draw = lines("rounds", "share", "what", scales=("log", "log"))
    figure = Figure("conjecture-permuted", "Must be lost / (√(kn) + m), by the order of the delays", columns, draw)
    return figure, Table(title, header, rows), found


def investigate(effort: Effort) -> Finding:
    """Run both experiments."""
    first, growths = stochastic(effort)
    second, orders, found = permuted(effort)
    shares = {order: [at.share for at in found if at.order == order] for order in ORDERS}
    fits = {row[0]: row[3] for row in growths.rows}
    return Finding(
        f"on stochastic losses regret grows like {fits['no delays']} n without delays, and like "
        f"{fits['advanced, fixed 100']} n with delay 100 (advanced), by the better fit. With the longest delays first "
        f"every algorithm loses at least {min(shares['longest first']):.2f} of √(kn) + m",
        figures=[first, second],
        tables=[growths, orders],
        remarks=(
            "A fit to one decade of one problem is a hint, not a proof. "
            "A straight line in the first figure means log n.",
            "A share that stays level in the second figure means that the bound is tight up to a constant for that "
            "order, and a falling one leaves it open. The share is a lower bound for three sets of delays and one way "
            "to build losses. It is evidence for the conjecture, not a proof. A later paper (Masoudian, Zimmert & "
            "Seldin 2022) announces in its abstract a lower bound that matches the skipping bound.",
        ),
    )


CLAIM = Claim(
    "conjectures",
    "Two conjectures, as experiments",
    ClaimKind.EXPERIMENT,
    (
        "The paper's discussion has two conjectures. The first is that the algorithm has logarithmic regret for "
        "stochastic losses, as Tsallis-INF has without delays. The second is about the bound of Theorem 2. If the "
        "adversary may permute a fixed set of delays without changing their lengths, then the bound is tight.",
        "For the second, the same delays are put in three orders. Losses are fixed in advance, as coins shared by "
        "blocks of rounds in which no report comes before the end. Every algorithm then has the same expected regret, "
        "which is compared with √(kn) + m, the order of the bound.",
    ),
    investigate,
    OBLIVIOUS,
    cost=3,
)
