"""Play a problem for many seeds."""

import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from functools import cache
from itertools import tee
from typing import Any

import numpy as np

from belated import kernels
from belated.arrays import Floats, Integers
from belated.errors import BelatedError, GameError, InvalidInput, RepeatWarning, UnfinishedWarning
from belated.lab.algorithms import Algorithm, Game, Player, Setting, resolve, setting_of
from belated.lab.algorithms.players import Given, check_games
from belated.lab.games import repeating, worlds
from belated.lab.games.compiled import Compiled, CompiledMeans, CompiledShadow
from belated.lab.games.curves import Curves, Played, as_checkpoints, curves_of, follow
from belated.lab.games.interpreted import Driver
from belated.lab.games.mismatch import warn_of, warning_of
from belated.lab.games.own_game import OwnGame
from belated.lab.games.seeds import as_seeds
from belated.lab.games.shared_randomness import watched_randomness
from belated.lab.games.threads import run_all, watched
from belated.lab.problems.delays import NoDelay
from belated.lab.problems.losses import Deterministic, Wave
from belated.lab.problems.problem import Problem, as_problem
from belated.lab.problems.reproducible import reproducible
from belated.learner.decisions import Learner, MakeLearner
from belated.learner.ftrl import FTRL
from belated.progress import Progress
from belated.tunings import Means, Shadow, Tsallis, Tuning
from belated.validation import whole_number

Result = tuple[Played, float]
Watch = Callable[[Iterator[Floats]], Iterator[Floats]]


def play(
    player: str | Algorithm | Tuning | Learner | type[Any] | MakeLearner,
    problem: Problem,
    seeds: int | Sequence[int] | range,
    *,
    checkpoints: Sequence[int] | None = None,
    workers: int = 1,
) -> Curves:
    """Play a problem once for each seed. `seeds=8` stands for the seeds 0 to 7.

    A Tuning is played by a compiled loop, anything else through ask and tell. An Algorithm of the table, or its name,
    gets what it needs to know in advance. A class or a function that makes learners is called with the number of arms
    and the seed. FTRL that has not played yet plays with the seed of each game. docs/players.md has the rest.

    The results do not depend on `workers`, the number of threads. Ctrl-C keeps the seeds that are finished, and
    an UnfinishedWarning says how many. A MismatchWarning says that a learner's distribution does not fit the arms that
    it draws. A RepeatWarning or a SharedRandomnessWarning says that no seed gives the same games again.

    >>> from belated import lab
    >>> from belated.tunings import Shadow
    >>> problem = lab.Problem(lab.Bernoulli(gap=0.3), lab.Fixed(10), n_arms=3, n_rounds=500)
    >>> curves = lab.play(Shadow(), problem, seeds=range(4), checkpoints=[100])
    >>> curves.checkpoints.tolist()
    [100, 500]
    >>> curves.expected.shape  # a row for each seed, a column for each checkpoint
    (4, 2)
    """
    at, numbers = as_checkpoints(checkpoints, as_problem(problem).n_rounds), as_seeds(seeds)
    algorithm = resolve(player)
    if isinstance(player, str | Algorithm) and problem.n_arms == 1:
        raise InvalidInput("with one arm there is nothing to compare. n_arms must be at least 2")
    check_games(algorithm, problem.n_arms, len(numbers))

    warm_up()
    stop = threading.Event()
    with (
        watched_randomness(algorithm.name, stacklevel=4),
        Progress(algorithm.name, len(numbers) * problem.n_rounds) as progress,
    ):

        def one(seed: int) -> Result:
            return play_game(algorithm, problem, seed, at, lambda blocks: watched(blocks, progress, stop))[0]

        finished = run_all(one, numbers, whole_number("workers", workers, 1), stop)
    played, seconds = zip(*finished.values(), strict=True)
    curves = curves_of(list(finished), at, played, sum(seconds), is_whole=len(finished) == len(numbers))
    if not curves.is_whole:
        done = f"{len(finished)} of {len(numbers)} seeds"
        warnings.warn(f"{algorithm.name}: interrupted. The curves have only {done}", UnfinishedWarning, stacklevel=2)
    if curves.is_suspicious:
        warn_of([warning_of(algorithm.name)])
    if not curves.is_repeatable:
        warn_of([repeating.warning_of(algorithm.name)], RepeatWarning)
    return curves


def play_game(
    algorithm: Algorithm, problem: Problem, seed: int, at: Integers, watch: Watch = iter
) -> tuple[Result, Setting]:
    """Play one game. Returns what was played at the checkpoints, the seconds, and the setting.

    The game draws its delays once, into the setting. Everything else about the game takes them from there.
    """
    if not problem.is_fixed:
        worlds.warm_up()
    if isinstance(algorithm.player, Given):
        _ = algorithm.player.code  # on Dask this runs a file, or imports a package, which is no part of the game
    started = time.thread_time()
    setting = setting_of(problem, seed)
    game, blocks = begin(algorithm, player_of(algorithm, setting), setting)
    means, opening = problem.mean_blocks(seed, setting.drawn_delays), list[Floats]()
    is_checked = isinstance(game, Driver | worlds.StepDriver) and repeating.is_of_your_own(algorithm)
    blocks = repeating.kept(blocks, opening) if is_checked else blocks
    if isinstance(problem.losses, Deterministic) and problem.is_fixed:  # its losses are their own means
        blocks, means = tee(blocks)
    with repeating.first_alone(algorithm) if is_checked else nullcontext():
        played = follow(game, watch(blocks), means, problem.n_arms, at)
        seconds = time.thread_time() - started
        if is_checked:
            is_same = repeating.is_repeatable(algorithm, game, opening, lambda: begin_again(algorithm, setting))
            played = played._replace(is_repeatable=is_same)
    if isinstance(game, OwnGame | Driver | worlds.StepDriver):
        played = played._replace(evidence=game.log_evidence)
    if isinstance(game, Driver):
        played = played._replace(saw_all=game.guarded.feedback == "vector")
    return (played, seconds), setting


def begin(algorithm: Algorithm, player: Player, setting: Setting) -> tuple[Game, Iterator[Floats]]:
    """A game, and the blocks of losses that it plays. If losses react, the game itself fills the blocks in."""
    problem, seed = setting.problem, setting.seed
    if problem.is_fixed:
        game = game_of(algorithm, player, setting)
        blocks = reproducible(problem, seed, setting.drawn_delays, setting.loss_blocks())
        return game, slices(blocks) if isinstance(game, Driver) else blocks
    game, blocks = worlds.game_of(player, problem, seed, algorithm.name)
    return game, reproducible(problem, seed, setting.drawn_delays, blocks)


def begin_again(algorithm: Algorithm, setting: Setting) -> Game:
    """Another game with the same seed. Its learner may share something with the first one."""
    given = algorithm.player
    player = given.alone(setting) if isinstance(given, Given) else player_of(algorithm, setting)
    return begin(algorithm, player, setting)[0]


def check_players(algorithms: Sequence[Algorithm], problem: Problem, seed: int) -> None:
    """Refuse those that cannot play where losses or delays are not fixed beforehand. Names them, and the others.

    Learners of your own are not made for this. The game itself refuses them.
    """
    if problem.is_fixed:
        return
    setting, refused = setting_of(problem, seed), dict[str, InvalidInput]()
    for algorithm in algorithms:
        try:
            player = player_of(algorithm, setting)
            if not isinstance(algorithm.player, Given):
                worlds.game_of(player, problem, seed, algorithm.name)
        except InvalidInput as error:
            refused[algorithm.name] = error
    if refused:
        others = [algorithm.name for algorithm in algorithms if algorithm.name not in refused]
        fix = f" Compare only {','.join(others)}" if others else ""
        raise InvalidInput(f"{', '.join(refused)} cannot play this problem ({next(iter(refused.values()))}).{fix}")


def player_of(algorithm: Algorithm, setting: Setting) -> Player:
    """What the algorithm plays in this game."""
    try:
        player = algorithm.player(setting)
    except BelatedError:  # says what is wrong
        raise
    except Exception as error:
        what = f"{algorithm.name}, seed {setting.seed}: it could not be prepared ({type(error).__name__}: {error})"
        raise GameError(what) from error
    if not (callable(player) or isinstance(player, Tuning | Game)):
        raise InvalidInput(f"{algorithm.name} gave {player!r:.80}. It must give a tuning, or a function (n_arms, seed)")
    return player


def game_of(algorithm: Algorithm, player: Player, setting: Setting) -> Game:
    """The game of a player whose losses and delays are fixed. A tuning is played by a compiled loop."""
    problem, delays, seed = setting.problem, setting.drawn_delays, setting.seed
    if isinstance(player, Means) and problem.n_arms > 1:
        return CompiledMeans(player, problem, delays, seed)
    if isinstance(player, Shadow) and problem.n_arms > 1:
        return CompiledShadow(player, problem, delays, seed)
    if isinstance(player, Tuning):
        try:
            return Compiled(player, problem, delays, seed)
        except BelatedError:
            raise
        except Exception as error:
            what = f"{algorithm.name}, seed {seed}: its rates failed ({type(error).__name__}: {error})"
            raise GameError(what) from error
    if isinstance(player, Game):
        return OwnGame(player, problem.n_arms, problem.n_rounds, seed, algorithm.name)
    return Driver(player, problem, delays, seed, algorithm.name)


def slices(blocks: Iterator[Floats], rows: int = 1000) -> Iterator[Floats]:
    """The same rows in smaller blocks, so that an interpreted game notices Ctrl-C and shows its progress."""
    for block in blocks:
        for start in range(0, len(block), rows):
            yield block[start : start + rows]


@cache
def warm_up() -> None:
    """Load or compile the kernels, so that no game is charged for it."""
    kernels.compile_first()
    keep_memory()
    problem = Problem(Wave(1), NoDelay(), 2, 1)
    for game in (
        Compiled(Tsallis(), problem, problem.draw_delays(0), 0),
        CompiledShadow(Shadow(), problem, problem.draw_delays(0), 0),
        CompiledMeans(Means(), problem, problem.draw_delays(0), 0),
        Driver(lambda k, seed: FTRL(k, Tsallis(), seed=seed), problem, problem.draw_delays(0), 0),
    ):
        game.play(np.zeros((1, 2)))


def keep_memory() -> None:
    """Let the C library keep blocks of up to 16 MB for the next game. glibc does so once it has freed one of that size.

    Otherwise it maps the arrays of each game anew, which takes 5% of a game's time.
    """
    block = bytearray(16 << 20)
    del block
