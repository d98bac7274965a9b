"""Many games of several algorithms on one problem, in threads or on Dask. Each is kept when it ends."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from belated.arrays import Floats, Integers
from belated.lab.algorithms import Algorithm
from belated.lab.comparisons import finished_games
from belated.lab.comparisons.fingerprint import fingerprint_of
from belated.lab.comparisons.finished_games import FinishedGame
from belated.lab.games.curves import default_checkpoints
from belated.lab.games.play import Watch, play_game, warm_up
from belated.lab.games.threads import run_all, watched
from belated.lab.problems.problem import Problem
from belated.progress import Progress
from belated.validation import whole_number

Game = tuple[str, int]  # an algorithm's name and a seed
Games = Mapping[Game, Algorithm]
Finish = Callable[[Game, FinishedGame], None]
Run = Callable[[Games, Problem, Integers, Finish, Progress], None]  # plays the games and calls finish for each


def play_whole(algorithm: Algorithm, problem: Problem, seed: int, at: Integers, watch: Watch = iter) -> FinishedGame:
    """Play a game and compute its bound. This is a pure function, so it does not matter where it runs."""
    warm_up()
    result, setting = play_game(algorithm, problem, seed, at, watch)
    return FinishedGame(*result, algorithm.bound(setting))


def on_threads(workers: int) -> Run:
    """Play games in threads of this process."""
    whole_number("workers", workers, 1)

    def run(games: Games, problem: Problem, at: Integers, finish: Finish, progress: Progress) -> None:
        stop = threading.Event()

        def watch(blocks: Iterator[Floats]) -> Iterator[Floats]:
            return watched(blocks, progress, stop)

        def one(game: Game) -> None:
            finish(game, play_whole(games[game], problem, game[1], at, watch))

        run_all(one, games, workers, stop)

    return run


def sweep(
    algorithms: Sequence[Algorithm],
    n_seeds: int,
    problem: Problem,
    run: Run,
    folder: Path | None,
    tell: Callable[[str], None],
) -> dict[Game, FinishedGame]:
    """A game for each algorithm and seed, from the folder if it is there. After Ctrl-C, the finished ones."""
    at = default_checkpoints(problem.n_rounds)
    games = {(algorithm.name, seed): algorithm for algorithm in algorithms for seed in range(n_seeds)}
    keys = {} if folder is None else _keys(games, fingerprint_of(problem, at))
    played: dict[Game, FinishedGame] = {}
    for game, key in keys.items():
        found = finished_games.read(folder, key, at.size) if folder else None
        if found:
            played[game] = found
    if played:
        tell(f"{len(played)} of {len(games)} games were in {folder} already")
    missing = {game: algorithm for game, algorithm in games.items() if game not in played}
    with Progress("games", len(missing) * problem.n_rounds) as progress:

        def finish(game: Game, result: FinishedGame) -> None:
            if folder:
                finished_games.write(folder, keys[game], result)
            played[game] = result
            progress.advance(0, f"{len(played)} of {len(games)} games")

        with suppress(KeyboardInterrupt):
            run(missing, problem, at, finish, progress)
    return played


def _keys(games: Games, common: str) -> dict[Game, str]:
    """The name of each game's file, a digest of everything that determines its result."""
    marks = {algorithm.name: fingerprint_of(common, algorithm)[:32] for algorithm in games.values()}
    return {(name, seed): f"{marks[name]}-{seed}" for name, seed in games}
