"""False winners, wrong intervals, and how many decisions a verdict needs (docs/theory/verdicts.md).

Somebody looks at the page after every report. The games run compiled (tests/support/watched_games.py), and tests
compare them with the library, which the page shows.
"""

import math
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from belated import FTRL, Decision, tunings
from belated.arrays import Floats, Integers
from belated.verdicts import Evidence
from benchmarks.judging import judge
from tests.support.betting import difference_bet, hedged_disjoint
from tests.support.watched_games import Found, play

GAMES, N = 2_000, 1_000
THREADS = 2
DelayRule = Callable[[np.random.Generator, Floats], Integers]  # from the losses: of every round and arm
MeansRule = Callable[[int], Floats]


def none(_: np.random.Generator, losses: Floats) -> Integers:
    """Outcomes at once."""
    return np.zeros(losses.shape, np.int64)


def geometric(rng: np.random.Generator, losses: Floats) -> Integers:
    """About 30 decisions later."""
    return rng.geometric(1 / 30, losses.shape)


def failures_slow(rng: np.random.Generator, losses: Floats) -> Integers:
    """Successes at once, failures about 100 decisions later."""
    return np.where(losses > 0.5, rng.geometric(1 / 100, losses.shape), 0)


def one_slow(rng: np.random.Generator, losses: Floats) -> Integers:
    """The first option about 100 decisions later, the others about 5."""
    return rng.geometric(np.where(np.arange(losses.shape[1]) == 0, 1 / 100, 1 / 5), losses.shape)


DELAYS: dict[str, DelayRule] = {
    "no delay": none,
    "geometric": geometric,
    "failures slow": failures_slow,
    "one option slow": one_slow,
}


def still(*means: float) -> MeansRule:
    """Means that stay."""
    return lambda n: np.tile(means, (n, 1))


def wave(*means: float, depth: float = 0.4, length: int = 500) -> MeansRule:
    """The same wave for all options."""
    return lambda n: np.clip(np.array(means) + depth * np.sin(np.arange(n) * 2 * math.pi / length)[:, None], 0.0, 1.0)


def fall(*means: float, least: float = 0.2) -> MeansRule:
    """All options fall together, from the given means to a part of them."""
    return lambda n: np.array(means) * np.linspace(1, least, n)[:, None]


class Problem(NamedTuple):
    """A world with coin flips, or with outcomes between 0 and 1."""

    name: str
    means: MeansRule
    delays: DelayRule
    is_binary: bool = True
    n: int = N

    def game(self, tuning: tunings.Tuning, seed: int, **looks: int) -> Found:
        """Play it once."""
        rng, means = np.random.default_rng((seed, 3)), self.means(self.n)
        losses = (rng.random(means.shape) < means).astype(float)
        if not self.is_binary:  # Beta(m, 1 - m) x 2 has the same mean and less spread
            losses = rng.beta(np.maximum(2 * means, 1e-9), np.maximum(2 * (1 - means), 1e-9))
        return play(tuning, losses, self.delays(rng, losses), means, seed, **looks).found


def games(problem: Problem, tuning: tunings.Tuning, seeds: range, **looks: int) -> list[Found]:
    """Play it with many seeds."""
    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(lambda seed: problem.game(tuning, seed, **looks), seeds))


def false_winners() -> None:
    """Identical options: how often the page ever names any of them the best, at 95%."""
    print(f"\nfalse winners among identical options, {GAMES:,} games of {N:,} decisions, a look after every report")
    worst, plain = 0.0, 0.0
    for k in (2, 5):
        for name, delays in DELAYS.items():
            for world, means in (("still", still(*[0.5] * k)), ("wave", wave(*[0.5] * k)), ("fall", fall(*[0.9] * k))):
                problem = Problem(world, means, delays)
                found = games(problem, tunings.Means(), range(GAMES), every_plain=200)
                share = sum(one.named > 0 for one in found) / GAMES
                naive = sum(one.plain for one in found) / GAMES
                worst, plain = max(worst, share), max(plain, naive)
                print(f"  k = {k}, {name:16} {world:6} {share:7.2%}, by plain averages {naive:7.2%}", flush=True)
    judge("most false winners", 100 * worst, 5, "%", at_most=True)
    judge("by plain averages in a world that moves, for contrast", 100 * plain, 5, "%", at_most=False)


PROBLEMS = (
    Problem("two alike", still(0.5, 0.5), none),
    Problem("two, one better", still(0.5, 0.3), geometric),
    Problem("two, rare losses", still(0.02, 0.05), failures_slow),
    Problem("two, rare wins", still(0.98, 0.95), failures_slow),
    Problem("two, far apart", still(0.9, 0.1), one_slow),
    Problem("two in a wave", wave(0.5, 0.4), one_slow),
    Problem("two that fall", fall(0.9, 0.8), failures_slow),
    Problem("five alike", still(*[0.3] * 5), one_slow),
    Problem("five spread", still(0.2, 0.3, 0.4, 0.5, 0.6), geometric),
    Problem("five in a wave", wave(*[0.5] * 4, 0.45, depth=0.3), failures_slow),
    Problem("ten, one better", still(*[0.5] * 9, 0.4), geometric),
    Problem("three with spread outcomes", still(0.5, 0.45, 0.4), one_slow, is_binary=False),
    Problem("two with spread outcomes that fall", fall(0.8, 0.8), failures_slow, is_binary=False),
)
TUNINGS: tuple[tunings.Tuning, ...] = (
    tunings.Means(),
    tunings.Shadow(),
    tunings.Advanced(),
    tunings.Simple(),
    tunings.Tsallis(),
    tunings.AdaptiveExp3(),
    tunings.Exp3(0.05),
    tunings.Exp3(0.5),
)
COVERAGE_GAMES = 200


def coverage() -> None:
    """The share of games in which every interval of a kind held at every look, looked at after every 10 reports.

    The page shows the interval of a difference for the first blocks. Here it must hold for any number of them.
    """
    print(f"\nintervals that always hold, {len(PROBLEMS)} problems x {len(TUNINGS)} tunings x {COVERAGE_GAMES} games")
    worst = {"differences": 1.0, "means": 1.0}
    for problem in PROBLEMS:
        line = []
        for tuning in TUNINGS:
            found = games(problem, tuning, range(COVERAGE_GAMES), every=10)
            held = {
                "differences": 1 - sum(one.missed_differences for one in found) / COVERAGE_GAMES,
                "means": 1 - sum(one.missed_means for one in found) / COVERAGE_GAMES,
            }
            worst = {kind: min(worst[kind], held[kind]) for kind in worst}
            line.append("/".join(f"{100 * held[kind]:.1f}" for kind in held))
        print(f"  {problem.name:36} {'  '.join(line)}", flush=True)
    for kind, share in worst.items():
        judge(f"all intervals of {kind} in a game hold", 100 * share, 95, "%", at_most=False)


RATES = (
    (0.5, 0.6),
    (0.5, 0.7),
    (0.2, 0.8),
    (0.02, 0.04),
    (0.05, 0.1),
    (0.01, 0.05),
    (0.96, 0.98),
    (0.9, 0.95),
    (0.1, 0.12),
)


def until_verdict() -> None:
    """Two options drawn uniformly, no delay: decisions until a verdict, over those of bets that keep all outcomes."""
    print(
        "\ndecisions until a verdict at 95%, two options drawn uniformly: ours, a bet on the difference, disjoint "
        "intervals"
    )
    ratios = []
    for low, high in RATES:
        own = np.mean([ours(low, high, seed) for seed in range(24)])
        bet = np.mean([difference_bet(coins(low, high, seed)) for seed in range(24)])
        disjoint = np.mean([hedged_disjoint(coins(low, high, seed)) for seed in range(24)])
        ratios.append(float(own / min(bet, disjoint)))
        print(f"  losses {low:g} and {high:g}: {own:7.0f} {bet:7.0f} {disjoint:7.0f}", flush=True)
    judge("decisions until a verdict, over the best bet, worst", max(ratios), 1.5, "x", at_most=True)


def coins(low: float, high: float, seed: int) -> Iterator[tuple[int, float]]:
    """Uniformly drawn arms with their outcomes, for ever."""
    rng = np.random.default_rng((seed, 9))
    while True:
        arms, uniforms = rng.integers(0, 2, 1000), rng.random(1000)
        yield from zip(arms.tolist(), (uniforms < np.where(arms == 0, low, high)).astype(float).tolist(), strict=True)


def ours(low: float, high: float, seed: int) -> int:
    """Decisions until the library decides. The look is late by at most 1%."""
    evidence = Evidence.new(2)
    for position, (arm, outcome) in enumerate(coins(low, high, seed), 1):
        evidence.decide(position, arm, 0.5, (0.5, 0.5))
        evidence.report(position, arm, 0.5, outcome)
        if position % max(1, position // 100) == 0 and evidence.verdict().is_decided:
            return position
    raise AssertionError


def cost() -> None:
    """Blocks, and the time of a decision with its report, and of a look."""
    print("\nevidence: blocks after 100,000 decisions of the default, microseconds a decision and report, and a look")
    for k, delay in ((2, 0), (2, 50), (5, 50), (50, 0), (50, 50)):
        evidence, spent = fed(k, delay, 100_000 if k < 50 else 30_000)
        start = time.perf_counter()
        evidence.verdict()
        look = time.perf_counter() - start
        print(
            f"  k = {k:2}, delay {delay:2}: {len(evidence.blocks)} blocks, {spent:.1f} us, {1e3 * look:.1f} ms",
            flush=True,
        )
        judge(f"k = {k}, delay {delay}: blocks", len(evidence.blocks), 400, "blocks", at_most=True)


def fed(k: int, delay: int, n: int) -> tuple[Evidence, float]:
    """Evidence of a game of the default learner, and the microseconds that each decision took it."""
    learner, evidence, rng = FTRL(k, seed=1), Evidence.new(k), np.random.default_rng(1)
    means, spent = np.linspace(0.3, 0.5, k), 0.0
    due: dict[int, list[tuple[int, Decision, float]]] = {}
    for position in range(n):
        x = learner.distribution()
        decision = learner.ask()
        outcome = float(rng.random() < means[decision.arm])
        due.setdefault(position + int(rng.integers(0, 2 * delay + 1)), []).append((position, decision, outcome))
        start = time.perf_counter()
        evidence.decide(position, decision.arm, decision.probability, x)
        spent += time.perf_counter() - start
        for at, one, value in due.pop(position, []):
            learner.tell(one, value)
            start = time.perf_counter()
            evidence.report(at, one.arm, one.probability, value)
            spent += time.perf_counter() - start
    return evidence, spent / n * 1e6
