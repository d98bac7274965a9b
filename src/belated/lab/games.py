"""Games: a tuning played at compiled speed, or anything with ask and tell, against a problem, for many seeds."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from belated import kernels
from belated.errors import InvalidInput
from belated.lab.losses import Matrix
from belated.lab.problems import Arrivals, Problem, arrivals
from belated.lab.progress import Progress
from belated.learners import FTRL, Learner
from belated.tunings import Tuning, schedule
from belated.validation import whole_number

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Make = Callable[[int, int], Learner]  # from the number of arms and a seed
T_95 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)  # Student's, 1 to 10 degrees of freedom


@final
@dataclass(frozen=True, eq=False)
class Curves:
    """Regret at checkpoints, a row for each seed: in expectation over the draws, <x_t, l_t>, and of the drawn arms."""

    seeds: Integers
    checkpoints: Integers
    expected: Floats
    suffered: Floats
    seconds: float

    @property
    def mean(self) -> Floats:
        """Mean expected regret at each checkpoint."""
        return np.asarray(self.expected.mean(axis=0))

    @property
    def interval(self) -> Floats:
        """Half the width of the 95% confidence interval of the mean, by Student's t; NaN for a single seed."""
        n = len(self.seeds)
        if n == 1:
            return np.full(len(self.checkpoints), np.nan)
        quantile = T_95[n - 2] if n - 2 < len(T_95) else 1.96 * (1 + 1.25 / (n - 1))
        return np.asarray(quantile * self.expected.std(axis=0, ddof=1) / np.sqrt(n))

    @property
    def rounds_per_second(self) -> float:
        """Rounds played in a second of one core's time."""
        return float(len(self.seeds) * self.checkpoints[-1] / self.seconds)


def geometric_checkpoints(n_rounds: int, count: int = 60) -> Integers:
    """About `count` rounds from 1 to n, evenly spaced in the logarithm."""
    return np.unique(np.round(np.geomspace(1, n_rounds, count)).astype(np.int64))


def play(
    player: Tuning | Make,
    problem: Problem,
    seeds: Sequence[int] | range,
    *,
    checkpoints: Sequence[int] | None = None,
    workers: int = 1,
) -> Curves:
    """Play a problem once for each seed; a Tuning runs compiled, a maker of learners through ask and tell.

    The results do not depend on `workers`, the number of threads. Ctrl-C keeps the seeds that are finished.
    """
    at = (
        geometric_checkpoints(problem.n_rounds)
        if checkpoints is None
        else _as_checkpoints(checkpoints, problem.n_rounds)
    )
    numbers = [whole_number("seed", seed, 0) for seed in seeds]
    if not numbers:
        raise InvalidInput("at least one seed is needed")

    def one(seed: int) -> tuple[Floats, Floats, float]:
        started = time.perf_counter()
        delays = problem.draw_delays(seed)
        blocks = segments(problem.loss_blocks(seed, delays), at)
        game = (
            Compiled(player, problem, delays, seed)
            if isinstance(player, Tuning)
            else Driver(player, problem, delays, seed)
        )
        curves = follow(game.play, blocks, problem.n_arms, at)
        return *curves, time.perf_counter() - started

    finished: dict[int, tuple[Floats, Floats, float]] = {}
    with Progress(len(numbers)) as progress, ThreadPoolExecutor(whole_number("workers", workers, 1)) as pool:
        futures = {seed: pool.submit(one, seed) for seed in numbers}
        try:
            for seed, future in futures.items():
                finished[seed] = future.result()
                progress.advance()
        except KeyboardInterrupt:
            pool.shutdown(cancel_futures=True)
            finished |= {
                seed: future.result() for seed, future in futures.items() if future.done() and not future.cancelled()
            }
            if not finished:
                raise
    expected, suffered, seconds = zip(*finished.values(), strict=True)
    return Curves(np.array(list(finished)), at, np.array(expected), np.array(suffered), sum(seconds))


def _as_checkpoints(checkpoints: Sequence[int], n_rounds: int) -> Integers:
    rounds = np.unique([whole_number("a checkpoint", round, 1, n_rounds) for round in checkpoints])
    return np.unique(np.append(rounds, n_rounds))


def segments(blocks: Iterator[Matrix], checkpoints: Integers) -> Iterator[Matrix]:
    """The same rows, cut so that every checkpoint ends a piece."""
    start = 0
    for block in blocks:
        inside = checkpoints[(checkpoints > start) & (checkpoints < start + len(block))] - start
        yield from np.split(block, inside)
        start += len(block)


def follow(
    play: Callable[[Matrix], tuple[Floats, Floats]], pieces: Iterator[Matrix], n_arms: int, checkpoints: Integers
) -> tuple[Floats, Floats]:
    """Regret at the checkpoints, expected and suffered, against the best arm up to there."""
    t, arm_losses, expected, suffered = 0, np.zeros(n_arms), 0.0, 0.0
    regrets: list[tuple[float, float]] = []
    for piece in pieces:
        mean, real = play(piece)
        t += len(piece)
        arm_losses += piece.sum(axis=0)
        expected += float(mean.sum())
        suffered += float(real.sum())
        if t == checkpoints[len(regrets)]:
            best = float(arm_losses.min())
            regrets.append((expected - best, suffered - best))
    curves = np.array(regrets)
    return curves[:, 0], curves[:, 1]


@final
class Compiled:
    """A tuning against known delays: all rates are computed beforehand, and one compiled loop serves every tuning."""

    def __init__(self, tuning: Tuning, problem: Problem, delays: Integers, seed: int) -> None:
        n, k = problem.n_rounds, problem.n_arms
        plan = schedule(tuning, k, delays)
        self.alpha, self.beta = plan.alpha, plan.beta
        order, at = arrivals(delays)
        if tuning.discard:
            used = (plan.skipped_in[order] == 0) | (plan.skipped_in[order] > at + 1)
            order, at = order[used], at[used]
        self.arrivals = Arrivals(order, at)
        self.generator = np.random.default_rng(seed)
        self.policy = np.zeros((kernels.ROWS, k))
        self.policy[kernels.V] = 0.5 * np.log(k)
        self.cdf = np.empty(-(-k // kernels.BLOCK))
        self.arms, self.estimates = np.empty(n, np.int64), np.empty(n)
        self.t = self.reported = 0

    def play(self, losses: Matrix) -> tuple[Floats, Floats]:
        """The next rounds, one for each row: <x_t, l_t> and the loss of the drawn arm."""
        rounds = len(losses)
        expected, suffered = np.empty(rounds), np.empty(rounds)
        self.reported = kernels.play_block(
            self.t,
            np.ascontiguousarray(losses),
            self.alpha,
            self.beta,
            self.generator.random(rounds),
            *self.arrivals,
            self.policy,
            self.cdf,
            self.arms,
            self.estimates,
            expected,
            suffered,
            self.reported,
        )
        self.t += rounds
        return expected, suffered


@final
class Driver:
    """Anything with ask and tell; without a distribution of its own, its expected loss is that of the drawn arm."""

    def __init__(self, make: Make, problem: Problem, delays: Integers, seed: int) -> None:
        self.learner = make(problem.n_arms, seed)
        self.due: dict[int, list[tuple[int, float]]] = defaultdict(list)
        self.delays = delays.tolist()
        self.t = 0

    def play(self, losses: Matrix) -> tuple[Floats, Floats]:
        """The next rounds, one for each row: <x_t, l_t> and the loss of the drawn arm."""
        learner = self.learner
        expected, suffered = np.empty(len(losses)), np.empty(len(losses))
        for i, row in enumerate(np.ascontiguousarray(losses)):
            if isinstance(learner, FTRL):
                expected[i] = kernels.expectation(learner.distribution(), row)
            decision = learner.ask()
            suffered[i] = loss = float(row[decision.arm])
            self.due[self.t + self.delays[self.t]].append((decision.round, loss))
            for round, report in self.due.pop(self.t, ()):
                learner.tell(round, report)
            self.t += 1
        return (expected if isinstance(learner, FTRL) else suffered), suffered
