"""The default's regret in worlds whose best arm moves, over that of the better one of Tsallis-INF and the shadow.

The settings of belated.tunings.Means were chosen on the problems of means_search.py. These are others.
"""

import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from belated import lab
from belated.arrays import Floats
from belated.tunings import DEFAULT, Shadow, Tsallis
from benchmarks.judging import judge
from benchmarks.worlds import MeansRule, Moving, mean_regret, switching, thompson

N, SEEDS, SIZES = 20_000, range(4000, 4040), (2, 10, 50)
WAITS = {"no delay": lab.NoDelay(), "geometric 50": lab.Geometric(50), "fixed 300": lab.Fixed(300)}
RISING = "another arm rises above the favourite"


def drifting(k: int, n: int, generator: np.random.Generator) -> Floats:
    """Each mean goes along a line from one random value to another."""
    start, end = generator.uniform(0.2, 0.8, (2, k))
    return np.asarray(start + (end - start) * np.arange(n)[:, None] / n)


def swinging(k: int, n: int, generator: np.random.Generator) -> Floats:
    """Each mean swings two and a half times, with a phase of its own."""
    return np.asarray(0.4 + 0.2 * np.sin(2 * np.pi * (2.5 * np.arange(n)[:, None] / n + generator.random(k))))


def falling(k: int, n: int, _generator: np.random.Generator) -> Floats:
    """The favourite becomes the worst arm."""
    means = np.full((n, k), 0.5)
    means[:, 0] = np.where(np.arange(n) < 0.4 * n, 0.3, 0.7)
    return means


def rising(k: int, n: int, _generator: np.random.Generator) -> Floats:
    """Another arm becomes better than the favourite, which stays as it is."""
    means = np.full((n, k), 0.55)
    means[:, 0], means[int(0.4 * n) :, 1] = 0.4, 0.25
    return means


def walking(k: int, n: int, generator: np.random.Generator) -> Floats:
    """Each mean walks at random between 0.1 and 0.9."""
    steps = np.cumsum(generator.normal(0, 0.01, (n, k)), axis=0) + generator.uniform(0, 1.6, k)
    return np.asarray(0.1 + np.abs(steps % 1.6 - 0.8))


WORLDS: dict[str, MeansRule] = {
    "drift": drifting,
    "swings": swinging,
    "the favourite becomes the worst": falling,
    RISING: rising,
    "7 switches": switching(8, 0.25, 0.6),
    "29 switches": switching(30, 0.4, 0.6),
    "random walk": walking,
}


def ratio(problem: lab.Problem, player: Any = DEFAULT) -> float:
    """A player's mean regret over the better rival's, each at least sqrt(n)."""
    ours, *rivals = (mean_regret(other, problem, SEEDS) for other in (player, Tsallis(), Shadow()))
    return max(ours, math.sqrt(N)) / max(min(rivals), math.sqrt(N))


def table() -> dict[str, list[list[float]]]:
    """The ratios of every world, with a row for each number of arms and a column for each delay. Printed too."""
    print(f"  {'':46}" + "".join(f"{name:>14}" for name in WAITS))
    found: dict[str, list[list[float]]] = {name: [] for name in WORLDS}
    with ThreadPoolExecutor(2) as pool:
        for k in SIZES:
            for name, rule in WORLDS.items():
                problems = [lab.Problem(Moving(rule), delays, k, N) for delays in WAITS.values()]
                found[name].append(list(pool.map(ratio, problems)))
                print(f"  k = {k:2}, {name:38}" + "".join(f"{cell:14.2f}" for cell in found[name][-1]), flush=True)
    return found


def regret() -> None:
    """The worst ratio. The arm that rises is judged apart, because a learner that rarely looks finds it late."""
    print(
        f"\nmoving worlds: mean regret of {len(SEEDS)} games of {N:,} rounds / the best of Tsallis-INF and the shadow"
    )
    found = table()
    for k, row in zip(SIZES, found.pop(RISING), strict=True):
        judge(f"k = {k}, {RISING}: worst ratio", max(row), 1.2, "x", at_most=True)
        problems = [lab.Problem(Moving(rising), delays, k, N) for delays in WAITS.values()]
        print(f"  {'':8}Thompson sampling's own ratio there: {max(ratio(each, thompson) for each in problems):.2f} x")
    others = np.array(list(found.values()))
    judge(f"all other {others.size} problems: worst ratio", float(others.max()), 1.2, "x", at_most=True)
