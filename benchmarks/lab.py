"""Whole games of the lab against other simulators, games by steps, its flat cost, two workers, and memory."""

import contextlib
import io
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import belated
from belated import FTRL, lab
from belated.adapters.side_effects import left_as_they_were
from belated.tunings import Exp3, Means, Tsallis, Tuning
from benchmarks.judging import best_of, judge

SMPYBANDITS = 3100  # rounds/s of its Tsallis-INF at k = 10, measured apart: it needs NumPy 1.26 and SciPy 1.11
CPP = {100: 1.84, 1000: 18.3}  # us a round of a C++ Tsallis-INF loop (FAMAB, -O3), measured apart


def problem(n_arms: int, n_rounds: int) -> lab.Problem:
    """Bernoulli losses, geometric delays of mean 100."""
    return lab.Problem(lab.Bernoulli(gap=0.1), lab.Geometric(mean=100), n_arms, n_rounds)


def ours(n_arms: int, n_rounds: int) -> Callable[[], float]:
    """Microseconds a round of a whole game of ours, ZS20 advanced, one core."""

    def run() -> float:
        started = time.perf_counter()
        lab.play(belated.tunings.Advanced(), problem(n_arms, n_rounds), [1])
        return (time.perf_counter() - started) / n_rounds * 1e6

    return run


def pymab(n_arms: int, n_rounds: int) -> Callable[[], float]:
    """Microseconds a round of PyMAB's Rust simulator with Exp3, which knows no delays."""
    from pymab import BanditEnvironment, BernoulliReward, Experiment, ExperimentConfig  # noqa: PLC0415
    from pymab.policies.adversarial import EXP3Policy  # noqa: PLC0415

    environment = BanditEnvironment(means=np.append(0.6, np.full(n_arms - 1, 0.5)), reward_model=BernoulliReward())
    config = ExperimentConfig(horizon=n_rounds, n_replicates=1, seed=1)

    def run() -> float:
        policies = {"exp3": EXP3Policy(n_arms=n_arms, gamma=0.1)}
        experiment = Experiment(environment=environment, policies=policies, config=config)
        started = time.perf_counter()
        experiment.run()
        return (time.perf_counter() - started) / n_rounds * 1e6

    return run


def whole_games() -> None:
    """Rounds per second of whole simulated games."""
    print("\nwhole games, ZS20 advanced, geometric delays of mean 100, one core")
    cost: dict[int, float] = {}
    for n_arms, rounds, peer_rounds, bar in [
        (10, 200_000, 20_000, 10),
        (100, 100_000, 3000, 30),
        (1000, 20_000, 500, 30),
    ]:
        mine, rust = best_of(6, ours(n_arms, rounds), pymab(n_arms, peer_rounds))
        print(f"  k = {n_arms}: {1e6 / mine:,.0f} rounds/s ({mine:.2f} us), PyMAB without delays {1e6 / rust:,.0f}")
        judge(f"k = {n_arms}: times as fast as PyMAB 2.0.1's simulator", rust / mine, bar, "x", at_most=False)
        cost[n_arms] = mine
        if n_arms == 10:
            times = 1e6 / mine / SMPYBANDITS
            judge("k = 10: times as fast as SMPyBandits 0.9.7 Tsallis-INF (quoted)", times, 300, "x", at_most=False)
        if n_arms in CPP:
            judge(
                f"k = {n_arms}: a round, against a C++ Tsallis-INF loop (quoted)", mine, CPP[n_arms], "us", at_most=True
            )
    judge("cost linear in k: k = 1000 over k = 100", cost[1000] / cost[100], 10.0, "x", at_most=True)


def flat_cost() -> None:
    """Cost per round as the game grows from 1e4 to 1e7 rounds."""
    print("\ncost of a round as the game grows, k = 10")
    many = problem(10, 10_000)

    def hundred_short_games() -> float:
        started = time.perf_counter()
        lab.play(belated.tunings.Advanced(), many, range(100))
        return (time.perf_counter() - started) / 1e6 * 1e6

    short, middle, long = best_of(4, hundred_short_games, ours(10, 1_000_000), ours(10, 10_000_000))
    print(f"  n = 1e4: {short:.3f} us, 1e6: {middle:.3f} us, 1e7: {long:.3f} us")
    judge("largest over smallest", max(short, middle, long) / min(short, middle, long), 1.2, "x", at_most=True)


def by_steps(game: lab.Problem, tuning: Tuning) -> Callable[[], float]:
    """Microseconds of processor time a round of a game of FTRL through the step interface."""

    def run() -> float:
        started = time.thread_time()
        under_way, learner = game.start(1), FTRL(game.n_arms, tuning, seed=1)
        while not under_way.is_over:
            for round, _, loss in under_way.step(learner.ask().arm).reports:
                learner.tell(round, loss)
        return (time.thread_time() - started) / game.n_rounds * 1e6

    return run


def smpybandits() -> Any:
    """The policies of SMPyBandits 0.9.7. It imports a function that SciPy has renamed, and prints warnings."""
    special: Any = import_module("scipy.special")
    if not hasattr(special, "btdtri"):
        special.btdtri = special.betaincinv
    with left_as_they_were(), warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        return import_module("SMPyBandits.Policies")


def in_gymnasium(game: lab.Problem, policy: type[Any], rounds: int) -> Callable[[], float]:
    """Microseconds a round of a policy of SMPyBandits on the same problem, as a plain environment of Gymnasium.

    The policy learns from every report when it arrives. The environment does only what it has to.
    """
    from gymnasium import Env, spaces  # noqa: PLC0415

    class Bandit(Env):  # type: ignore[misc,unused-ignore]  # typed only where it is installed
        action_space, observation_space = spaces.Discrete(game.n_arms), spaces.Discrete(1)

        def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[int, dict[str, Any]]:
            super().reset(seed=seed)
            self.under_way = game.start(seed or 0)
            return 0, {}

        def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
            step = self.under_way.step(action)
            return 0, 1.0 - step.suffered, self.under_way.is_over, False, {"reports": step.reports}

    def run() -> float:
        environment, learner = Bandit(), policy(game.n_arms)
        learner.startGame()
        environment.reset(seed=1)
        started = time.thread_time()
        for _ in range(rounds):
            _, _, _, _, info = environment.step(int(learner.choice()))
            for report in info["reports"]:
                learner.getReward(report.arm, 1.0 - report.loss)
        return (time.thread_time() - started) / rounds * 1e6

    return run


def steps() -> None:
    """A game by steps, against the same algorithm of SMPyBandits in an environment of Gymnasium."""
    print("\ngames by steps, geometric delays of mean 100, k = 10")
    policies, game = smpybandits(), problem(10, 50_000)
    with np.errstate(all="ignore"):  # SMPyBandits divides by 0 at first
        for name, tuning in (("Exp3", Exp3(0.01)), ("TsallisInf", Tsallis())):
            mine, theirs = best_of(12, by_steps(game, tuning), in_gymnasium(game, getattr(policies, name), 5000))
            print(f"  {name}: {1e6 / mine:,.0f} rounds/s by steps, {1e6 / theirs:,.0f} in Gymnasium")
            judge(f"times as fast as SMPyBandits' {name} in Gymnasium", theirs / mine, 10, "x", at_most=False)
        ucb = in_gymnasium(game, policies.UCB, 5000)
        mine, theirs = best_of(6, by_steps(game, Means()), ucb)
        print(f"          our default against UCB, their fastest: {theirs / mine:.1f} x. Another algorithm, not judged")


def two_workers() -> None:
    """The same seeds with one thread and with two."""
    print("\ntwo workers, k = 10")
    game = problem(10, 200_000)

    def run(workers: int) -> float:
        started = time.perf_counter()
        lab.play(belated.tunings.Advanced(), game, range(8), workers=workers)
        return time.perf_counter() - started

    one, two = best_of(6, lambda: run(1), lambda: run(2))
    judge("one worker's time over two workers'", one / two, 1.7, "x", at_most=False)


def memory() -> None:
    """Peak memory of a process that plays ten million rounds."""
    print("\na game of 10,000,000 rounds, k = 10")
    code = (
        "import belated; from benchmarks.judging import memory_of; from belated import lab as games;"
        "problem = games.Problem(games.Bernoulli(), games.Geometric(100), 10, 10_000_000);"
        "games.play(belated.tunings.Advanced(), problem, [1]);"
        "print(memory_of(what='VmHWM'))"
    )
    here = Path(__file__).parent.parent
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=here)
    judge("peak memory of the process", float(done.stdout) / 1e9, 1.0, "GB", at_most=True)
