"""The regret of the shadow and of the default against their rivals, and the cost of both.

The settings of belated.tunings.Shadow were chosen on the problems of shadow_search.py. These are others. Those of
belated.tunings.Means were chosen on the problems of means_search.py, which include the games of 5,000 rounds here.
"""

import math
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np

import belated
from belated import lab
from benchmarks.judging import best_of, judge, timed
from benchmarks.learner import ours
from benchmarks.worlds import geometric_mean, mean_regret

RIVALS = {
    "blind": belated.tunings.Tsallis(),
    "simple": belated.tunings.Simple(),
    "advanced": belated.tunings.Advanced(),
}
PLAYERS = {**RIVALS, "shadow": belated.tunings.Shadow(), "default": belated.tunings.DEFAULT}
SEEDS = {5000: range(1000, 1040), 50_000: range(1000, 1008)}  # short games differ more, and a few would decide a ratio


def families(n: int) -> dict[str, tuple[lab.Losses, lab.Delays]]:
    """The problems of the report, for games of n rounds."""
    return {
        "coin flips, gap 0.1, geometric": (lab.Bernoulli(0.1), lab.Geometric(n / 200)),
        "coin flips, gap 0.5, fixed 1000": (lab.Bernoulli(0.5), lab.Fixed(1000)),
        "coin flips, gap 0.3, uniform": (lab.Bernoulli(0.3, 0.4), lab.Uniform(n // 50)),
        "coin flips, gap 0.1, no delay": (lab.Bernoulli(0.1), lab.NoDelay()),
        "coin flips, gap 0.2, bursts": (lab.Bernoulli(0.2), lab.Bursts(n // 100)),
        "coin flips, gap 0.2, unbalanced": (lab.Bernoulli(0.2), lab.Unbalanced()),
        "coin flips, gap 0.2, 30% lost": (lab.Bernoulli(0.2), lab.Lost(0.3, n // 100)),
        "constrained adversary, geometric": (lab.Constrained(), lab.Geometric(n / 200)),
        "shifting best arm, Pareto": (lab.Shifting(0.3, 6), lab.Pareto(0.5)),
        "shifting best arm, fixed": (lab.Shifting(0.4, 10), lab.Fixed(n // 200)),
        "wave, fixed n/200": (lab.Wave(), lab.Fixed(n // 200)),
        "wave, fixed n/40": (lab.Wave(), lab.Fixed(n // 40)),
        "wave, 5% lost": (lab.Wave(), lab.Lost(0.05, n // 200)),
        "weak wave, uniform": (lab.Wave(strength=0.7), lab.Uniform(n // 60)),
        "sine, fixed": (lab.Sine(), lab.Fixed(n // 200)),
        "slow sine, geometric": (lab.Sine(period=n / 10), lab.Geometric(n / 100)),
        "block coins, fixed": (lab.BlockCoins(), lab.Fixed(n // 150)),
    }


def ratios(n_arms: int, n_rounds: int) -> list[list[float]]:
    """Mean regret over the best rival's in every family, each at least sqrt(n). Prints a table."""

    def regrets(family: tuple[lab.Losses, lab.Delays]) -> list[float]:
        problem = lab.Problem(*family, n_arms, n_rounds)
        return [mean_regret(player, problem, SEEDS[n_rounds]) for player in PLAYERS.values()]

    print(f"\n  k = {n_arms}, n = {n_rounds:,}{'':18}" + "".join(f"{name:>9}" for name in (*PLAYERS, "ratios")))
    found, least = [], math.sqrt(n_rounds)
    with ThreadPoolExecutor(2) as pool:
        for name, row in zip(families(n_rounds), pool.map(regrets, families(n_rounds).values()), strict=True):
            found.append([max(regret, least) / max(min(row[: len(RIVALS)]), least) for regret in row])
            cells = "".join(f"{regret:9,.0f}" for regret in row)
            print(f"  {name:34}{cells}{found[-1][-2]:9.2f}{found[-1][-1]:6.2f}", flush=True)
    return found


def regret() -> None:
    """The worst ratio and the geometric mean over all families, sizes and horizons."""
    print(
        "\nregret: the mean of 40 short or 8 long games, over that of the best of three rivals (each at least sqrt(n))"
    )
    everyone = {(k, n): np.array(ratios(k, n)) for k in (2, 10, 50, 200) for n in (5000, 50_000)}
    print(f"\n  worst ratio, geometric mean{'':10}" + "".join(f"{name:>16}" for name in PLAYERS))
    for (k, n), table in everyone.items():
        cells = zip(table.max(axis=0), map(geometric_mean, table.T), strict=True)
        print(f"  k = {k:3}, n = {n:6,}{'':17}" + "".join(f"{worst:9.2f},{mean:6.2f}" for worst, mean in cells))
    for name, bars in {"shadow": (3.0, 2.0, 1.3), "default": (1.7, 1.4, 0.85)}.items():
        found = {key: table[:, list(PLAYERS).index(name)] for key, table in everyone.items()}
        few, many = (max(max(row) for (k, _), row in found.items() if (k == 2) == is_two) for is_two in (True, False))
        judge(f"{name}, k = 2: worst ratio", few, bars[0], "x", at_most=True)
        judge(f"{name}, k >= 10: worst ratio", many, bars[1], "x", at_most=True)
        mean = geometric_mean(np.concatenate(list(found.values())))
        judge(f"{name}: geometric mean of all ratios", mean, bars[2], "x", at_most=True)


def game_time(tuning: belated.tunings.Tuning, problem: lab.Problem) -> Callable[[], float]:
    """Microseconds a round of a whole compiled game."""

    def run() -> float:
        started = time.perf_counter()
        lab.play(tuning, problem, [1])
        return (time.perf_counter() - started) / problem.n_rounds * 1e6

    return run


def cost() -> None:
    """A round of the shadow in rounds of the advanced tuning, and one of the default in rounds of the shadow."""
    print("\na round of the shadow, in rounds of the advanced tuning, and of the default, in rounds of the shadow")
    tunings = belated.tunings.Advanced(), belated.tunings.Shadow(), belated.tunings.DEFAULT
    for k, n in ((2, 100_000), (10, 100_000), (100, 30_000), (1000, 5000)):
        for name, family in {
            "coin flips": (lab.Bernoulli(0.1), lab.Geometric(100)),
            "wave": (lab.Wave(), lab.Fixed(100)),
        }.items():
            problem = lab.Problem(*family, k, n)
            judge_cost(f"k = {k}: compiled game, {name}", *best_of(12, *(game_time(t, problem) for t in tunings)))
        plays = [ours(k, 100, tuning) for tuning in tunings]
        judge_cost(f"k = {k}: ask + tell, 100 late", *best_of(20, *(partial(timed, 1000, play) for play in plays)))


def judge_cost(name: str, advanced: float, shadow: float, default: float) -> None:
    """Judge the times of a round."""
    judge(f"{name}, the shadow", shadow / advanced, 2.2, "x", at_most=True)
    judge(f"{name}, the default", default / shadow, 1.3, "x", at_most=True)
