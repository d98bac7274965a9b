"""Play a comparison and rank the algorithms."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from belated import bounds
from belated.lab.algorithms import Algorithm
from belated.lab.comparisons import dask_games, sweep
from belated.lab.comparisons.comparison import Comparison, read_toml
from belated.lab.comparisons.finished_games import FinishedGame
from belated.lab.comparisons.results import Results
from belated.lab.comparisons.row import Row
from belated.lab.games.curves import Curves, default_checkpoints
from belated.lab.problems.delays import Fixed
from belated.lab.problems.problem import Problem

if TYPE_CHECKING:
    from distributed import Client


def compare(
    comparison: Comparison | Path | str,
    *,
    workers: int = 1,
    client: "Client | None" = None,
    folder: Path | str | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> Results:
    """Play every algorithm on the problem and rank them by mean regret.

    The comparison is a `Comparison`, or the path of a TOML file with its settings. The games are played by `workers`
    threads, or by the workers of a Dask `client`. No result depends on which. With a `folder`, every finished game is
    kept there at once and is not played again. `tell` gets a message about games that were kept.

    After Ctrl-C the results contain the algorithms that finished all seeds.

    >>> from belated import lab
    >>> wanted = lab.Comparison(("tsallis-inf", "zs20-simple"), "wave", "fixed:d=20", arms=4, rounds=800, seeds=2)
    >>> results = lab.compare(wanted)
    >>> [row.algorithm.name for row in results.rows]
    ['zs20-simple', 'tsallis-inf']
    >>> results.tidy().columns
    ['algorithm', 'seed', 'round', 'expected_regret', 'suffered_regret']

    `results.write("folder")` writes the table and the figure, and `results.figure("regret.png")` only the figure.
    """
    wanted = comparison if isinstance(comparison, Comparison) else Comparison(**read_toml(Path(comparison)))
    problem = wanted.problem.loaded()
    next(problem.loss_blocks(0, problem.draw_delays(0)))  # refuses a file that does not fit before any work
    run = sweep.on_threads(workers) if client is None else dask_games.on_dask(client, tell)
    kept_in = None if folder is None else Path(folder)
    played = sweep.sweep(wanted.players, wanted.seeds, problem, run, kept_in, tell)
    rows = []
    for algorithm in wanted.players:
        games = [played[algorithm.name, seed] for seed in range(wanted.seeds) if (algorithm.name, seed) in played]
        if len(games) == wanted.seeds:  # an interrupted algorithm has fewer seeds than the others
            rows.append(_row(algorithm, problem, games))
    if not rows:
        raise KeyboardInterrupt
    return Results(wanted, sorted(rows, key=lambda row: row.regret))


def lower_bound(problem: Problem) -> float:
    """The lower bound without delays, or that for a fixed delay if it is larger."""
    least = bounds.lower_bound(problem.n_arms, problem.n_rounds)
    if isinstance(problem.delays, Fixed):
        least = max(least, bounds.lower_bound_uniform_delay(problem.n_arms, problem.n_rounds, problem.delays.d))
    return least


def _row(algorithm: Algorithm, problem: Problem, games: Sequence[FinishedGame]) -> Row:
    expected, suffered, seconds, proven = zip(*games, strict=True)
    at = default_checkpoints(problem.n_rounds)
    curves = Curves(np.arange(len(games)), at, np.array(expected), np.array(suffered), sum(seconds))
    bound = None if None in proven else float(np.mean(np.array(proven, float)))
    regret = float(curves.mean[-1])
    return Row(algorithm, curves, regret, float(curves.interval[-1]), bound, regret / lower_bound(problem))
