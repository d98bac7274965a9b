"""Games: a tuning played at compiled speed, or anything with ask and tell, against a problem, for many seeds."""

import copy
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from belated import kernels
from belated.bounds import clip
from belated.errors import InvalidInput
from belated.lab.algorithms import Algorithm, Setting, find, setting_of
from belated.lab.games.compiled import Compiled, CompiledShadow
from belated.lab.intervals import half_width
from belated.lab.problems.delays import NoDelay
from belated.lab.problems.losses import Matrix, Wave
from belated.lab.problems.problem import Problem
from belated.learner.ftrl import Learner
from belated.progress import Progress
from belated.tunings import Shadow, Tsallis, Tuning
from belated.validation import whole_number

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Result = tuple[Floats, Floats, float]
Make = Callable[[int, int], Learner]  # from the number of arms and a seed
Watch = Callable[[Iterator[Matrix]], Iterator[Matrix]]
Name = TypeVar("Name")
Played = TypeVar("Played")


@final
@dataclass(frozen=True, eq=False)
class Curves:
    """Regret at checkpoints, a row for each seed: in expectation over the draws, <x_t, l_t>, and of the drawn arms."""

    seeds: Integers
    checkpoints: Integers
    expected: Floats
    suffered: Floats
    seconds: float
    is_whole: bool = True  # False: interrupted, and only the finished seeds are here

    @property
    def mean(self) -> Floats:
        """Mean expected regret at each checkpoint."""
        return np.asarray(self.expected.mean(axis=0))

    @property
    def interval(self) -> Floats:
        """Half the width of the 95% confidence interval of the mean, by Student's t; NaN for a single seed."""
        return half_width(self.expected)

    @property
    def rounds_per_second(self) -> float:
        """Rounds played in a second of one core's time."""
        return float(len(self.seeds) * self.checkpoints[-1] / self.seconds)


def default_checkpoints(n_rounds: int, count: int = 50) -> Integers:
    """Up to 2 `count` rounds from 1 to n, evenly spaced on a logarithmic and on a linear scale."""
    spaced = np.append(np.geomspace(1, n_rounds, count), np.linspace(1, n_rounds, count))
    return np.unique(np.round(spaced).astype(np.int64))


def play(
    player: str | Algorithm | Tuning | Learner | type[Any] | Make,
    problem: Problem,
    seeds: Sequence[int] | range,
    *,
    checkpoints: Sequence[int] | None = None,
    workers: int = 1,
) -> Curves:
    """Play a problem once for each seed; a Tuning runs compiled, anything else through ask and tell.

    An Algorithm of the table, or its name, is told what it needs to know in advance of each game. A learner is copied
    for each game, and a function that makes one is called with the number of arms and the seed.

    The results do not depend on `workers`, the number of threads. Ctrl-C keeps the seeds that are finished.
    """
    at = as_checkpoints(checkpoints, problem.n_rounds)
    numbers = [whole_number("seed", seed, 0) for seed in seeds]
    if not numbers or len(set(numbers)) < len(numbers):
        raise InvalidInput(f"at least one seed is needed, and none twice, got {list(seeds)!r:.80}")
    player = as_player(player, problem)

    warm_up()
    stop = threading.Event()
    title = player.name if isinstance(player, Algorithm) else "games"
    with Progress(title, len(numbers) * problem.n_rounds) as progress:

        def one(seed: int) -> Result:
            return play_game(player, problem, seed, at, lambda blocks: watched(blocks, progress, stop))[0]

        finished = run_all(one, numbers, whole_number("workers", workers, 1), stop)
    expected, suffered, seconds = zip(*finished.values(), strict=True)
    is_whole = len(finished) == len(numbers)
    return Curves(np.array(list(finished)), at, np.array(expected), np.array(suffered), sum(seconds), is_whole)


def play_game(
    player: Algorithm | Tuning | Make, problem: Problem, seed: int, at: Integers, watch: Watch = iter
) -> tuple[Result, Setting]:
    """Play one game. Returns the regret at the checkpoints, expected and suffered, the seconds, and the setting.

    The delays are drawn here and nowhere else. Whatever else is computed for the game takes them from the setting.
    """
    started = time.thread_time()
    setting = setting_of(problem, seed)
    delays, blocks = setting.drawn_delays, setting.loss_blocks()
    told = player.player(setting) if isinstance(player, Algorithm) else player
    game: Compiled | CompiledShadow | Driver
    if isinstance(told, Shadow):
        game = CompiledShadow(told, problem, delays, seed)
    elif isinstance(told, Tuning):
        game = Compiled(told, problem, delays, seed)
    else:
        game, blocks = Driver(told, problem, delays, seed), slices(blocks)
    curves = follow(game.play, watch(blocks), problem.n_arms, at)
    return (*curves, time.thread_time() - started), setting


def as_player(player: Any, problem: Problem) -> Algorithm | Tuning | Make:
    """What can be played: a class of learners is made with a seed, a learner is copied for each game."""
    if isinstance(player, str):
        player = find(player)
    if isinstance(player, Algorithm) and problem.n_arms == 1:
        raise InvalidInput("with one arm there is nothing to compare: n_arms must be at least 2")
    if isinstance(player, Algorithm | Tuning):
        return player
    if isinstance(player, type):
        return lambda n_arms, seed: player(n_arms, seed=seed)
    if hasattr(player, "ask"):
        if player.n_arms != problem.n_arms:
            raise InvalidInput(f"the learner has {player.n_arms} arms, the problem {problem.n_arms}")
        return lambda _n_arms, _seed: copy.deepcopy(player)
    if not callable(player):
        raise InvalidInput(f"cannot play {player!r}: give a tuning, an algorithm, a learner, or what makes one")
    maker: Make = player
    return maker


def slices(blocks: Iterator[Matrix], rows: int = 1000) -> Iterator[Matrix]:
    """The same rows, not too many at a time: an interpreted game shall notice Ctrl-C and show its progress."""
    for block in blocks:
        for start in range(0, len(block), rows):
            yield block[start : start + rows]


def watched(blocks: Iterator[Matrix], progress: Progress, stop: threading.Event) -> Iterator[Matrix]:
    """The same blocks, counted as they are played, until it is time to stop."""
    for block in blocks:
        if stop.is_set():
            raise KeyboardInterrupt
        yield block
        progress.advance(len(block))


def run_all(
    one: Callable[[Name], Played], games: Iterable[Name], workers: int, stop: threading.Event
) -> dict[Name, Played]:
    """One result for each game, in order; after Ctrl-C those that are finished, if any."""
    finished: dict[Name, Played] = {}
    with ThreadPoolExecutor(workers) as pool:
        futures = {name: pool.submit(one, name) for name in games}
        try:
            for name, future in futures.items():
                finished[name] = future.result()
        except BaseException as error:
            stop.set()
            pool.shutdown(cancel_futures=True)
            done = {name: future for name, future in futures.items() if future.done() and not future.cancelled()}
            finished |= {name: future.result() for name, future in done.items() if future.exception() is None}
            if not (isinstance(error, KeyboardInterrupt) and finished):
                raise
    return finished


@cache
def warm_up() -> None:
    """Load or compile the kernels, so that no game's time includes it."""
    problem = Problem(Wave(1), NoDelay(), 2, 1)
    for game in (
        Compiled(Tsallis(), problem, problem.draw_delays(0), 0),
        CompiledShadow(Shadow(), problem, problem.draw_delays(0), 0),
    ):
        game.play(np.zeros((1, 2)))


def as_checkpoints(checkpoints: Sequence[int] | None, n_rounds: int) -> Integers:
    """The checkpoints in order, the last round among them; many if none are given."""
    if checkpoints is None:
        return default_checkpoints(n_rounds)
    rounds = np.unique([whole_number("a checkpoint", round, 1, n_rounds) for round in checkpoints])
    return np.unique(np.append(rounds, n_rounds))


def follow(
    play: Callable[[Matrix], tuple[Floats, Floats]], blocks: Iterator[Matrix], n_arms: int, checkpoints: Integers
) -> tuple[Floats, Floats]:
    """Regret at the checkpoints, expected and suffered, against the best arm up to there."""
    t, totals = 0, np.zeros(2 + n_arms)  # expected, suffered, each arm's
    at_checkpoints: list[Floats] = []
    for block in blocks:
        expected, suffered = play(block)
        ends = checkpoints[(checkpoints > t) & (checkpoints <= t + len(block))] - t
        starts = np.append(0, ends[ends < len(block)])
        columns = (expected[:, None], suffered[:, None], block)
        pieces = np.hstack([np.add.reduceat(column, starts, axis=0) for column in columns])
        sums = totals + np.cumsum(pieces, axis=0)
        at_checkpoints.extend(sums[: len(ends)])
        totals = sums[-1]
        t += len(block)
    reached = np.array(at_checkpoints)
    regrets = reached[:, :2] - reached[:, 2:].min(axis=1, keepdims=True)
    return regrets[:, 0], regrets[:, 1]


@final
class Driver:
    """Anything with ask and tell; without a distribution of its own, its expected loss is that of the drawn arm.

    A learner that declares `needs_delay` is handed the delay when it is asked. One whose `feedback` is "vector" is told
    the losses of all arms, one whose feedback is "sum" only the sum of what arrives in a round.
    """

    def __init__(self, make: Make, problem: Problem, delays: Integers, seed: int) -> None:
        self.learner: Any = make(problem.n_arms, seed)
        self.needs_delay = getattr(self.learner, "needs_delay", False)
        self.feedback = getattr(self.learner, "feedback", "loss")
        self.has_distribution = hasattr(self.learner, "distribution")
        self.due: dict[int, list[tuple[int, Any]]] = defaultdict(list)
        self.delays, self.clipped = delays.tolist(), clip(delays).tolist()
        self.t = 0

    def play(self, losses: Matrix) -> tuple[Floats, Floats]:
        """The next rounds, one for each row: <x_t, l_t> and the loss of the drawn arm."""
        expected, suffered = np.empty(len(losses)), np.empty(len(losses))
        for i, row in enumerate(np.ascontiguousarray(losses)):
            arrives = self.t + self.delays[self.t]
            known = (self.clipped[self.t],) if self.needs_delay else ()
            x = self.learner.distribution(*known) if self.has_distribution else None
            decision = self.learner.ask(*known)
            suffered[i] = row[decision.arm]
            expected[i] = suffered[i] if x is None else kernels.expectation(x, row)
            if arrives < len(self.delays):
                report = row.copy() if self.feedback == "vector" else float(suffered[i])
                self.due[arrives].append((decision.round, report))
            self.tell(self.due.pop(self.t, []))
            self.t += 1
        return expected, suffered

    def tell(self, reports: list[tuple[int, Any]]) -> None:
        """Reveal what arrives at the end of a round."""
        if self.feedback == "sum":
            if reports:
                self.learner.tell_sum(sum(loss for _, loss in reports))
            return
        tell = self.learner.tell_vector if self.feedback == "vector" else self.learner.tell
        for round, report in reports:
            tell(round, report)
