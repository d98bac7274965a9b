"""The results of a sweep, as one tidy table."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, final

import numpy as np

from belated.extras import needs
from belated.folders import as_path, make_folder
from belated.lab.comparisons import frames
from belated.lab.comparisons.columns import labels, settings_of
from belated.lab.comparisons.grid import Point
from belated.lab.comparisons.results import Results
from belated.lab.comparisons.row import Row
from belated.lab.comparisons.tables import name_of, ratio_of, short

FILES = ("sweep.csv", "sweep.parquet")
HEADINGS = ("losses", "delays", "k", "n", "algorithm", "regret", "+-", "pseudo-regret", "+-", "bound", "/ lower")


@final
@dataclass(frozen=True, eq=False)
class SweepResults:
    """What `lab.sweep` returns. After Ctrl-C it has only the algorithms that finished all seeds of a problem."""

    points: Sequence[Point]
    results: Sequence[Results]  # one for each problem

    @property
    def is_whole(self) -> bool:
        """Whether all games are finished."""
        return all(results.is_whole for results in self.results)

    @cached_property
    def _labels(self) -> dict[int, str]:
        """The text of each rule, by its id."""
        comparisons = [point.comparison for point in self.points]
        return labels([one.losses for one in comparisons]) | labels([one.delays for one in comparisons])

    def tidy(self) -> Any:
        """A polars DataFrame with a line for each problem, algorithm, seed and checkpoint, and a column for all else.

        A column has null where a rule or an algorithm has no such setting, or where a number is not known.
        """
        with needs("lab"):
            import polars  # noqa: PLC0415  (only results need it)

        lines = list(self._lines())
        names = {group: dict.fromkeys(name for *_, line in lines for name in line[group]) for group in GROUPS}
        problem, parameters, losses, delays, algorithm = names.values()
        first = [*problem, *parameters, *losses, *delays, *algorithm]
        parts = []
        for row, depends, line in lines:
            constants = {name: value for group in line.values() for name, value in group.items()}
            filled = [_constant(name, constants.get(name)) for name in first]
            columns = frames.regrets(row, depends_on_horizon=depends) | _of_games(row)
            frame = frames.polars_frame(columns).with_columns(filled)
            parts.append(frame.select(*first, *(name for name in frame.columns if name not in first)))
        return polars.concat(parts, how="vertical_relaxed")

    def to_pandas(self) -> Any:
        """`tidy()` as a pandas DataFrame."""
        return frames.pandas_frame(self.tidy())

    def summary(self) -> list[tuple[str, ...]]:
        """The end of every game as text. `HEADINGS` are the columns."""
        lines = []
        for results in self.results:
            what = results.comparison
            losses, delays = self._labels[id(what.losses)], self._labels[id(what.delays)]
            problem = (losses, delays, str(what.arms), f"{what.rounds:,}")
            for row in results.rows:
                numbers = (row.regret, row.interval, row.pseudo, row.pseudo_interval, row.bound)
                lines.append((*problem, name_of(row), *map(short, numbers), ratio_of(row)))
        return lines

    def write(self, folder: Path | str) -> Path:
        """Write sweep.csv and sweep.parquet into a folder."""
        out = make_folder(as_path("folder", folder))
        table, (csv, parquet) = self.tidy(), FILES
        table.write_csv(out / csv)
        table.write_parquet(out / parquet)
        return out

    def _lines(self) -> Iterator[tuple[Row, bool, dict[str, dict[str, Any]]]]:
        """Every algorithm on every problem, whether that depends on n, and what stays the same in the games."""
        for point, results in zip(self.points, self.results, strict=True):
            what, problem = point.comparison, point.comparison.problem
            players = zip(what.players, what.algorithms, point.values, strict=True)
            given = {algorithm.name: (player, values) for algorithm, player, values in players}
            for row in results.rows:
                player, values = given[row.algorithm.name]
                yield (
                    row,
                    problem.depends_on_horizon,
                    {
                        "problem": {
                            "losses": self._labels[id(what.losses)],
                            "delays": self._labels[id(what.delays)],
                            "arms": what.arms,
                            "rounds": what.rounds,
                        },
                        "parameters": dict(values),
                        "losses": settings_of("losses", problem.losses),
                        "delays": settings_of("delays", problem.delays),
                        "algorithm": {"algorithm": row.algorithm.name} | settings_of("algorithm", player),
                    },
                )


GROUPS = ("problem", "parameters", "losses", "delays", "algorithm")


def _of_games(row: Row) -> dict[str, Any]:
    """What each game has once."""
    points = row.curves.checkpoints.size
    return {
        "bound": np.repeat(np.array([game.bound for game in row.games], np.float64), points),
        "lower_bound": np.repeat(np.array([game.lower for game in row.games], np.float64), points),
        "seconds": np.repeat([game.seconds for game in row.games], points),
    }


def _constant(name: str, value: Any) -> Any:
    import polars  # noqa: PLC0415

    kind = polars.Int64 if isinstance(value, int) and not isinstance(value, bool) else None
    return polars.lit(value, dtype=kind).alias(name)
