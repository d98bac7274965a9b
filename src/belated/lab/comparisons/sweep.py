"""Many games, of one or several comparisons, in threads or on Dask. Each is kept when it ends."""

import hashlib
import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from belated import bounds
from belated.arrays import Floats, Integers
from belated.errors import BelatedError, GameError, InvalidInput
from belated.lab.algorithms import BY_NAME, Algorithm, Setting
from belated.lab.comparisons import finished_games
from belated.lab.comparisons.comparison import Comparison
from belated.lab.comparisons.fingerprint import fingerprint_of
from belated.lab.comparisons.finished_games import FinishedGame
from belated.lab.comparisons.results import Results
from belated.lab.comparisons.row import row_of
from belated.lab.games.curves import default_checkpoints
from belated.lab.games.play import Watch, check_players, play_game, warm_up
from belated.lab.games.shared_randomness import watched_randomness
from belated.lab.games.threads import run_all, watched
from belated.lab.problems.problem import Problem
from belated.progress import Progress
from belated.scalars import as_float
from belated.validation import whole_number


class Game(NamedTuple):
    """One game of a sweep. The comparison, from 0, has its problem. The algorithm is a name."""

    comparison: int
    algorithm: str
    seed: int


Games = Mapping[Game, Algorithm]
Problems = Sequence[Problem]  # one for each comparison
Finish = Callable[[Game, FinishedGame], None]
Run = Callable[[Games, Problems, Finish, Progress], None]  # plays the games and calls finish for each
Tell = Callable[[str], None]


def play_whole(algorithm: Algorithm, problem: Problem, seed: int, watch: Watch = iter) -> FinishedGame:
    """Play a game and compute its bounds. This is a pure function, so it does not matter where it runs."""
    warm_up()
    (played, seconds), setting = play_game(algorithm, problem, seed, default_checkpoints(problem.n_rounds), watch)
    if not problem.is_fixed:  # bounds are proven for such problems
        return FinishedGame(played, seconds, None, None)
    is_bounded = algorithm.has_lower_bound and not played.saw_all
    lower = _lower_bound(problem.n_arms, setting.drawn_delays) if is_bounded else None
    return FinishedGame(played, seconds, _bound(algorithm, setting), lower)


def _bound(algorithm: Algorithm, setting: Setting) -> float | None:
    """What the algorithm says is proven for this game, at most n. No regret exceeds n, because losses are at most 1."""
    where = f"{algorithm.name}, seed {setting.seed}: its bound"
    try:
        bound: Any = algorithm.bound(setting)
    except BelatedError:  # says what is wrong
        raise
    except Exception as error:
        raise GameError(f"{where} failed ({type(error).__name__}: {error})") from error
    if bound is not None and math.isnan(as_float(bound)):
        raise InvalidInput(f"{where} must be a number, or None if there is none, got {bound!r:.80}")
    return None if bound is None else min(float(bound), float(setting.n_rounds))


_lower_bounds: dict[tuple[int, bytes], float] = {}  # all algorithms play with the same delays


def _lower_bound(n_arms: int, delays: Integers) -> float:
    key = n_arms, hashlib.sha256(delays.tobytes()).digest()
    if key not in _lower_bounds:
        _lower_bounds[key] = bounds.lower_bound_of_delays(n_arms, delays)
    return _lower_bounds[key]


def on_threads(workers: int) -> Run:
    """Play games in threads of this process."""
    whole_number("workers", workers, 1)

    def run(games: Games, problems: Problems, finish: Finish, progress: Progress) -> None:
        stop = threading.Event()

        def watch(blocks: Iterator[Floats]) -> Iterator[Floats]:
            return watched(blocks, progress, stop)

        def play_one(game: Game) -> None:
            finish(game, play_whole(games[game], problems[game.comparison], game.seed, watch))

        theirs = dict.fromkeys(game.algorithm for game, one in games.items() if BY_NAME.get(game.algorithm) is not one)
        with watched_randomness(", ".join(theirs) or "the games", stacklevel=7):
            run_all(play_one, games, workers, stop)

    return run


def sweep(comparisons: Sequence[Comparison], run: Run, folder: Path | None, tell: Tell) -> list[Results]:
    """The results of every comparison. Games that are in the folder are not played. After Ctrl-C, the finished ones."""
    problems = [comparison.problem.loaded() for comparison in comparisons]
    for comparison, problem in zip(comparisons, problems, strict=True):
        next(problem.rows(0, lambda: 0))  # refuses a file that does not fit before any work
        check_players(comparison.players, problem, comparison.seed_numbers[0])
    games = {
        Game(number, algorithm.name, seed): algorithm
        for number, comparison in enumerate(comparisons)
        for algorithm in comparison.players
        for seed in comparison.seed_numbers
    }
    played = _play(games, problems, run, folder, tell)
    return [_results(number, comparison, played) for number, comparison in enumerate(comparisons)]


def _play(games: Games, problems: Problems, run: Run, folder: Path | None, tell: Tell) -> dict[Game, FinishedGame]:
    """Play what is not in the folder."""
    keys = {} if folder is None else _keys(games, problems)
    played = {} if folder is None else _kept(folder, keys, problems)
    if played:
        tell(f"{len(played)} of {len(games)} games were in {folder} already")
    missing = {game: algorithm for game, algorithm in games.items() if game not in played}
    with Progress("games", sum(problems[game.comparison].n_rounds for game in missing)) as progress:

        def finish(game: Game, result: FinishedGame) -> None:
            if folder:
                finished_games.write(folder, keys[game], result)
            played[game] = result
            progress.advance(0, f"{len(played)} of {len(games)} games")

        with suppress(KeyboardInterrupt):
            run(missing, problems, finish, progress)
    return played


def _keys(games: Games, problems: Problems) -> dict[Game, str]:
    """The name of each game's file, a digest of everything that determines its result."""
    common = [fingerprint_of(problem, default_checkpoints(problem.n_rounds)) for problem in problems]
    marks = {
        game[:2]: fingerprint_of(common[game.comparison], algorithm)[:32]
        for game, algorithm in {game._replace(seed=0): algorithm for game, algorithm in games.items()}.items()
    }
    return {game: f"{marks[game[:2]]}-{game.seed}" for game in games}


def _kept(folder: Path, keys: Mapping[Game, str], problems: Problems) -> dict[Game, FinishedGame]:
    """The games that are in the folder."""
    points = [default_checkpoints(problem.n_rounds).size for problem in problems]
    found = {
        game: finished_games.read(folder, key, points[game.comparison], problems[game.comparison].n_arms)
        for game, key in keys.items()
    }
    return {game: kept for game, kept in found.items() if kept is not None}


def _results(number: int, comparison: Comparison, played: Mapping[Game, FinishedGame]) -> Results:
    """The rows of a comparison. An algorithm that was interrupted has fewer seeds than the others and no row.

    A suspicious learner comes after all others, because its expected regret means nothing.
    """
    seeds, at = comparison.seed_numbers, default_checkpoints(comparison.rounds)
    rows = []
    for algorithm in comparison.players:
        games = [played.get(Game(number, algorithm.name, seed)) for seed in seeds]
        finished = [game for game in games if game is not None]
        if len(finished) == len(games):
            rows.append(row_of(algorithm, seeds, at, finished))
    return Results(comparison, sorted(rows, key=lambda row: (row.curves.is_suspicious, row.regret)))
