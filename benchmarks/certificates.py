"""Certificates against the regret, on delays that depend on arms and outcomes, and what it costs to keep them."""

import heapq
import itertools
import math
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import NamedTuple

import numpy as np

import belated
from belated.arrays import Floats
from belated.learner.ftrl import state_of
from belated.tunings import Advanced, Means, Shadow, Simple, Tuning
from benchmarks.judging import best_of, judge, timed
from benchmarks.learner import ours

Delay = Callable[[int, float, np.random.Generator], int]  # of an arm and its loss
LATE_200, LATE_500 = "failures 200 late", "failures 500 late"
DELAYS: dict[str, Delay] = {
    "no delay": lambda _arm, _loss, _chance: 0,
    "geometric 10": lambda _arm, _loss, chance: int(chance.geometric(1 / 11)) - 1,
    "geometric 50": lambda _arm, _loss, chance: int(chance.geometric(1 / 51)) - 1,
    "100 late": lambda _arm, _loss, _chance: 100,
    LATE_200: lambda _arm, loss, _chance: 200 if loss else 0,
    LATE_500: lambda _arm, loss, _chance: 500 if loss else 0,
    "arm 0 is slow": lambda arm, _loss, _chance: 0 if arm else 150,
    "arm 0 hides failures": lambda arm, loss, _chance: 10**9 if loss and not arm else 5,
}
DEPENDENT = (LATE_200, "arm 0 is slow", "arm 0 hides failures")


class Problem(NamedTuple):
    """A game. `losses` is "coins 0.1", the gap of the best arm from 0.5, "rare", "wave" or "drift"."""

    k: int
    losses: str
    delay: str
    tuning: Tuning
    n: int


class Run(NamedTuple):
    """The numbers at the end, and whether the bound was ever below the regret."""

    regret: float
    measured: float
    fixed: float
    any: float
    bound: float
    is_violated: bool


def matrix(problem: Problem, chance: np.random.Generator) -> Floats:
    """The losses of all rounds and arms. The best arm is another one in every run."""
    k, n, rounds = problem.k, problem.n, np.arange(problem.n)[:, None]
    if problem.losses == "wave":
        return np.asarray((np.arange(k) + rounds // 200) % 2, float)
    means = np.full((n, k), 0.92 if problem.losses == "rare" else 0.5)
    means[:, 0] -= 0.06 if problem.losses == "rare" else 0.1
    if problem.losses == "drift":
        means = 0.5 + 0.3 * np.sin(2 * math.pi * (rounds / n + np.arange(k) / k))
    return np.asarray(chance.random((n, k)) < means[:, chance.permutation(k)], float)


def play(problem: Problem, seed: int, looks: int = 0) -> Run:
    """Play a game and look at the bound so many times on the way."""
    chance = np.random.default_rng([seed, 3])
    losses, delay = matrix(problem, chance), DELAYS[problem.delay]
    learner, waiting = belated.FTRL(problem.k, problem.tuning, seed=seed), list[tuple[int, int, float]]()
    expected, is_violated, state = 0.0, False, state_of(learner)
    for t in range(problem.n):
        decision = learner.ask()
        expected += float(state.policies[state.played, belated.kernels.X] @ losses[t])
        loss = float(losses[t, decision.arm])
        heapq.heappush(waiting, (t + delay(decision.arm, loss, chance), decision.round, loss))
        while waiting and waiting[0][0] <= t:
            _, round, told = heapq.heappop(waiting)
            learner.tell(round, told)
        if looks and (t + 1) % (problem.n // looks) == 0:
            regret = expected - float(losses[: t + 1].sum(axis=0).min())
            is_violated = is_violated or regret > learner.regret_bound()
    regret = expected - float(losses.sum(axis=0).min())
    numbers = learner.certificate(), learner.certificate("any"), learner.regret_bound()
    return Run(regret, learner.measured_certificate(), *numbers, is_violated)


def this_run() -> None:
    """The bound on a run against the proven certificate, at 20,000 rounds."""
    print("\ncertificates after 20,000 rounds, mean of 6 games")
    print(f"  {'':44}{'regret':>8}{'measured':>10}{'this run':>10}{'any':>8}{'fixed':>8}")
    cases = [(10, "coins", "geometric 10"), (10, "coins", LATE_200), (2, "coins", LATE_500), (4, "wave", "100 late")]
    with ProcessPoolExecutor(2) as pool:
        for (k, losses, delay), tuning in itertools.product(cases, (Shadow(), Means())):
            rule = Advanced() if losses == "wave" and isinstance(tuning, Shadow) else tuning
            problem = Problem(k, losses, delay, rule, 20_000)
            mean = Run(*np.mean(list(pool.map(partial(play, problem), range(6))), axis=0))
            name = f"k = {k}, {losses}, {delay}, {type(rule).__name__}"
            regret, measured, fixed, any_delays, bound, _ = mean
            print(f"  {name:44}{regret:8,.0f}{measured:10,.0f}{bound:10,.0f}{any_delays:8,.0f}{fixed:8,.0f}")
            bar = 0.5 if delay in (LATE_200, LATE_500) else 1.0
            judge(f"{name}: this run / fixed", mean.bound / mean.fixed, bar, "x", at_most=True)


def never_below() -> None:
    """Means of certificates against the mean regret, and how often a run's regret ever exceeds its bound."""
    grid = itertools.product(
        (2, 4, 10),
        ("coins", "rare", "wave", "drift"),
        ("no delay", "geometric 50", "100 late", *DEPENDENT),
        (Means(), Shadow(), Simple()),
    )
    problems = [Problem(*one, 1500) for one in grid]
    dependent = sum(problem.delay in DEPENDENT for problem in problems)
    print(f"\ncertificates on {len(problems)} problems, {dependent} of them with delays that depend on arm or outcome")
    below, violated, runs = 0, 0, 0
    with ProcessPoolExecutor(2) as pool:
        for number, problem in enumerate(problems, 1):
            found = np.array(list(pool.map(partial(play, problem, looks=50), range(8))), float)
            mean = Run(*found.mean(axis=0))
            fixed = math.inf if problem.delay in DEPENDENT else mean.fixed  # it does not hold there
            below += mean.regret > min(mean.measured, mean.any, fixed)
            violated, runs = violated + int(found[:, -1].sum()), runs + len(found)
            print(f"\r  {number} of {len(problems)}", end="", flush=True)
    print("\r", end="")
    judge("problems whose mean regret is above the mean of a certificate", below, 0, "", at_most=True)
    judge(f"runs of {runs} whose regret was ever above its bound", 100 * violated / runs, 5, "%", at_most=True)


def without_bets(n_arms: int) -> Callable[[int], None]:
    """The same learner as `ours`, without bets."""
    learner = belated.FTRL(n_arms, seed=1)
    state = state_of(learner)
    state.bets = np.zeros((n_arms + 1, 2, 0))
    learner.ask(100)

    def play(rounds: int) -> None:
        for _ in range(rounds):
            round = learner.ask().round
            learner.tell(round - 100, 0.5)

    return play


def cost() -> None:
    """A round with all certificates kept, against one without the bets on this run."""
    print("\nask + tell with all certificates kept")
    for n_arms in (10, 1000):
        kept, without = ours(n_arms, 100), without_bets(n_arms)
        a, b = best_of(40, partial(timed, 1000, kept), partial(timed, 1000, without))
        judge(f"k = {n_arms}: {a:.2f} us against {b:.2f} us without", a / b, 1.15, "x", at_most=True)
