"""Play a problem for many seeds."""

import copy
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np

from belated.arrays import Floats, Integers
from belated.errors import InvalidInput
from belated.lab.algorithms import Algorithm, Game, Setting, find, setting_of
from belated.lab.games.compiled import Compiled, CompiledMeans, CompiledShadow
from belated.lab.games.curves import Curves, as_checkpoints, follow
from belated.lab.games.interpreted import Driver
from belated.lab.games.threads import run_all, watched
from belated.lab.problems.delays import NoDelay
from belated.lab.problems.losses import Wave
from belated.lab.problems.problem import Problem
from belated.learner.decisions import Learner, MakeLearner
from belated.progress import Progress
from belated.tunings import Means, Shadow, Tsallis, Tuning
from belated.validation import whole_number

Result = tuple[Floats, Floats, float]
Watch = Callable[[Iterator[Floats]], Iterator[Floats]]


def play(
    player: str | Algorithm | Tuning | Learner | type[Any] | MakeLearner,
    problem: Problem,
    seeds: Sequence[int] | range,
    *,
    checkpoints: Sequence[int] | None = None,
    workers: int = 1,
) -> Curves:
    """Play a problem once for each seed.

    A Tuning is played by a compiled loop, anything else through ask and tell. An Algorithm of the table, or its name,
    gets what it needs to know in advance. A learner is copied for each game. A function that makes learners is called
    with the number of arms and the seed.

    The results do not depend on `workers`, the number of threads. Ctrl-C keeps the seeds that are finished.

    >>> from belated import lab
    >>> from belated.tunings import Shadow
    >>> problem = lab.Problem(lab.Bernoulli(gap=0.3), lab.Fixed(10), n_arms=3, n_rounds=500)
    >>> curves = lab.play(Shadow(), problem, seeds=range(4), checkpoints=[100])
    >>> curves.checkpoints.tolist()
    [100, 500]
    >>> curves.expected.shape  # a row for each seed, a column for each checkpoint
    (4, 2)
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
    player: Algorithm | Tuning | MakeLearner, problem: Problem, seed: int, at: Integers, watch: Watch = iter
) -> tuple[Result, Setting]:
    """Play one game. Returns the regret at the checkpoints, expected and suffered, the seconds, and the setting.

    The game draws its delays once, into the setting. Everything else about the game takes them from there.
    """
    started = time.thread_time()
    setting = setting_of(problem, seed)
    delays, blocks = setting.drawn_delays, setting.loss_blocks()
    prepared = player.player(setting) if isinstance(player, Algorithm) else player
    game: Game
    if isinstance(prepared, Means) and problem.n_arms > 1:
        game = CompiledMeans(prepared, problem, delays, seed)
    elif isinstance(prepared, Shadow):
        game = CompiledShadow(prepared, problem, delays, seed)
    elif isinstance(prepared, Tuning):
        game = Compiled(prepared, problem, delays, seed)
    elif isinstance(prepared, Game):
        game = prepared
    else:
        game, blocks = Driver(prepared, problem, delays, seed), slices(blocks)
    curves = follow(game.play, watch(blocks), problem.n_arms, at)
    return (*curves, time.thread_time() - started), setting


def as_player(player: Any, problem: Problem) -> Algorithm | Tuning | MakeLearner:
    """Turn what the caller gave into something that can be played for each seed."""
    if isinstance(player, str):
        player = find(player)
    if isinstance(player, Algorithm) and problem.n_arms == 1:
        raise InvalidInput("with one arm there is nothing to compare. n_arms must be at least 2")
    if isinstance(player, Algorithm | Tuning):
        return player
    if isinstance(player, type):
        return lambda n_arms, seed: player(n_arms, seed=seed)
    if hasattr(player, "ask"):
        if player.n_arms != problem.n_arms:
            raise InvalidInput(f"the learner has {player.n_arms} arms, but the problem has {problem.n_arms}")
        return lambda _n_arms, _seed: copy.deepcopy(player)
    if not callable(player):
        raise InvalidInput(
            f"cannot play {player!r}. Give a tuning, an algorithm, a learner or a function that makes one"
        )
    maker: MakeLearner = player
    return maker


def slices(blocks: Iterator[Floats], rows: int = 1000) -> Iterator[Floats]:
    """The same rows in smaller blocks, so that an interpreted game notices Ctrl-C and shows its progress."""
    for block in blocks:
        for start in range(0, len(block), rows):
            yield block[start : start + rows]


@cache
def warm_up() -> None:
    """Load or compile the kernels, so that no game is charged for it."""
    problem = Problem(Wave(1), NoDelay(), 2, 1)
    for game in (
        Compiled(Tsallis(), problem, problem.draw_delays(0), 0),
        CompiledShadow(Shadow(), problem, problem.draw_delays(0), 0),
        CompiledMeans(Means(), problem, problem.draw_delays(0), 0),
    ):
        game.play(np.zeros((1, 2)))
