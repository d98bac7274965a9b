"""Claim 11 shows the two conjectures of the discussion as experiments. Nothing is judged."""

import numpy as np

from belated import lab
from belated.arrays import Floats, Integers
from belated.lab.intervals import half_width
from belated.paper.claim import Claim, ClaimKind, Effort, Finding
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
        curves = lab.play(tuning, problem, seeds, checkpoints=at.tolist(), workers=effort.workers)
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


def permuted(effort: Effort) -> tuple[Figure, Table]:
    """Play the unbalanced delays as they are and in random order."""
    horizons, seeds = [2_000 * 4**i for i in range(effort.pick(4, 5))], effort.seeds(8, 32)
    kept: list[tuple[str, int, float, float]] = []
    for tuning in (Simple(), Advanced()):
        for order, delays in (("as they are", lab.Unbalanced()), ("permuted", lab.Permuted(lab.Unbalanced()))):
            for n in horizons:
                problem = lab.Problem(lab.Bernoulli(gap=0.5), delays, 2, n)
                ends = lab.play(tuning, problem, seeds, checkpoints=[n], workers=effort.workers).expected[:, -1]
                kept.append(
                    (f"{type(tuning).__name__.lower()}, {order}", n, float(ends.mean()), float(half_width(ends)))
                )
    columns = columns_of(("what", "rounds", "regret", "half width"), kept)
    draw = lines("rounds", "regret", "what", half="half width", scales=("log", "log"))
    names = list(dict.fromkeys(row[0] for row in kept))
    rows = [(name, *(f"{mean:,.0f} ± {half:,.0f}" for what, _, mean, half in kept if what == name)) for name in names]
    table = Table("Regret with the same delays in another order", ("", *(f"n = {n:,}" for n in horizons)), rows)
    return Figure("conjecture-permuted", "Unbalanced delays, permuted (k = 2)", columns, draw), table


def investigate(effort: Effort) -> Finding:
    """Run both experiments."""
    first, growths = stochastic(effort)
    second, orders = permuted(effort)
    fits = {row[0]: row[3] for row in growths.rows}
    return Finding(
        f"on stochastic losses regret grows like {fits['no delays']} n without delays, and like "
        f"{fits['advanced, fixed 100']} n with delay 100 (advanced), by the better fit",
        figures=[first, second],
        tables=[growths, orders],
        remarks=(
            "A fit to one decade of one problem is a hint, not a proof. "
            "A straight line in the first figure means log n.",
        ),
    )


CLAIM = Claim(
    "conjectures",
    "Two open questions, as experiments",
    ClaimKind.EXPERIMENT,
    (
        "The paper's discussion leaves two questions open. Does the algorithm adapt to stochastic losses? Tsallis-INF "
        "does so without delays, where its regret grows like log n. And what happens if the adversary may choose the "
        "delays, but not their order? The two experiments below show one problem each. They prove nothing.",
    ),
    investigate,
    cost=3,
)
