"""Comparisons: several algorithms on one problem, ranked, with intervals, bounds and distance to the lower bound."""

import math
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np

from belated import bounds
from belated.errors import InvalidInput
from belated.lab.algorithms import BY_NAME, Algorithm, find
from belated.lab.comparisons import dask_games, sweep
from belated.lab.comparisons.finished_games import FinishedGame
from belated.lab.games.play import Curves, default_checkpoints
from belated.lab.problems.delays import Delays, Fixed
from belated.lab.problems.losses import Losses
from belated.lab.problems.parsing import nearest, parse_delays, parse_losses
from belated.lab.problems.problem import Problem
from belated.validation import whole_number

if TYPE_CHECKING:
    from distributed import Client


@final
@dataclass(frozen=True)
class Comparison:
    """What to compare: experiments are data. Names as on the command line, or objects of your own."""

    algorithms: tuple[str | Algorithm, ...] = tuple(BY_NAME)
    losses: str | Losses = "bernoulli"
    delays: str | Delays = "geometric"
    arms: int = 10
    rounds: int = 10_000
    seeds: int = 8

    def __post_init__(self) -> None:
        if not (isinstance(self.algorithms, tuple) and self.algorithms):
            raise InvalidInput(f"algorithms must be one or more names, got {self.algorithms!r}")
        whole_number("arms", self.arms, 2)
        whole_number("rounds", self.rounds, 1)
        whole_number("seeds", self.seeds, 1)
        names = [algorithm.name for algorithm in self.players]
        if len(set(names)) < len(names):
            raise InvalidInput(f"every algorithm can be compared once only, got {', '.join(names)}")
        _ = self.problem

    @property
    def players(self) -> list[Algorithm]:
        """The algorithms by their names."""
        return [algorithm if isinstance(algorithm, Algorithm) else find(algorithm) for algorithm in self.algorithms]

    @property
    def problem(self) -> Problem:
        """The problem by its names."""
        losses = self.losses if isinstance(self.losses, Losses) else parse_losses(self.losses)
        delays = self.delays if isinstance(self.delays, Delays) else parse_delays(self.delays)
        return Problem(losses, delays, self.arms, self.rounds)


class Row(NamedTuple):
    """One algorithm's result at the end of the game."""

    algorithm: Algorithm
    curves: Curves
    regret: float
    interval: float
    bound: float | None
    ratio: float  # to the lower bound


def read_toml(path: Path) -> dict[str, Any]:
    """The settings of a TOML file, with the names of Comparison's fields."""
    try:
        settings = tomllib.loads(path.read_text())
    except OSError as error:
        raise InvalidInput(f"{path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path}: not a TOML file: {error}") from error
    for key in settings:
        if key not in Comparison.__dataclass_fields__:
            raise nearest("setting is", key, Comparison.__dataclass_fields__)
    for key, value in settings.items():
        kind: Any = {"algorithms": list, "losses": str, "delays": str}.get(key, int)
        if not isinstance(value, kind):
            raise InvalidInput(f"{path}: {key} must be of the kind {kind.__name__}, got {value!r}")
    if "algorithms" in settings:
        settings["algorithms"] = tuple(settings["algorithms"])
    return settings


def lower_bound(problem: Problem) -> float:
    """The larger of the two: without delays, and of block coins for a fixed delay."""
    least = bounds.lower_bound(problem.n_arms, problem.n_rounds)
    if isinstance(problem.delays, Fixed):
        least = max(least, bounds.lower_bound_uniform_delay(problem.n_arms, problem.n_rounds, problem.delays.d))
    return least


def compare(
    comparison: Comparison,
    *,
    workers: int = 1,
    client: "Client | None" = None,
    folder: Path | str | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> list[Row]:
    """Play every algorithm on the problem; rows ranked by mean regret. After Ctrl-C, those that are finished.

    The games are played by `workers` threads, or by the workers of a Dask `client`: no result depends on it. Finished
    games are kept in the `folder` at once, and those it holds already are not played again. `tell` hears of both.
    """
    problem = comparison.problem.loaded()
    next(problem.loss_blocks(0, problem.draw_delays(0)))  # a file that does not fit is refused before any work
    run = sweep.on_threads(workers) if client is None else dask_games.on_dask(client, tell)
    place = None if folder is None else Path(folder)
    played = sweep.sweep(comparison.players, comparison.seeds, problem, run, place, tell)
    rows = []
    for algorithm in comparison.players:
        games = [played[algorithm.name, seed] for seed in range(comparison.seeds) if (algorithm.name, seed) in played]
        if len(games) == comparison.seeds:  # otherwise interrupted: fewer seeds than the others
            rows.append(_row(algorithm, problem, games))
    if not rows:
        raise KeyboardInterrupt
    return sorted(rows, key=lambda row: row.regret)


def _row(algorithm: Algorithm, problem: Problem, games: Sequence[FinishedGame]) -> Row:
    expected, suffered, seconds, proven = zip(*games, strict=True)
    at = default_checkpoints(problem.n_rounds)
    curves = Curves(np.arange(len(games)), at, np.array(expected), np.array(suffered), sum(seconds))
    bound = None if None in proven else float(np.mean(np.array(proven, float)))
    regret = float(curves.mean[-1])
    return Row(algorithm, curves, regret, float(curves.interval[-1]), bound, regret / lower_bound(problem))


def tidy(rows: Sequence[Row]) -> Any:
    """All regrets as a polars DataFrame: one line for each algorithm, seed and checkpoint."""
    import polars  # noqa: PLC0415  (only results need it)

    tables = []
    for row in rows:
        curves = row.curves
        n_seeds, n_points = curves.expected.shape
        tables.append(
            polars.DataFrame(
                {
                    "algorithm": [row.algorithm.name] * (n_seeds * n_points),
                    "seed": np.repeat(curves.seeds, n_points),
                    "round": np.tile(curves.checkpoints, n_seeds),
                    "expected_regret": curves.expected.ravel(),
                    "suffered_regret": curves.suffered.ravel(),
                }
            )
        )
    return polars.concat(tables)


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}"


def summary(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    """The ranked table as text: algorithm, regret, interval, bound, ratio to the lower bound, rounds/s, needs."""
    return [
        (
            row.algorithm.name,
            _short(row.regret),
            "-" if math.isnan(row.interval) else _short(row.interval),
            "-" if row.bound is None else _short(row.bound),
            f"{row.ratio:.1f}",
            f"{row.curves.rounds_per_second:,.0f}",
            row.algorithm.needs,
        )
        for row in rows
    ]
