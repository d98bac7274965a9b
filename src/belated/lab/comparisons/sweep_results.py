"""The results of a sweep, as one tidy table."""

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np

from belated.folders import make_folder
from belated.lab.algorithms import Algorithm
from belated.lab.algorithms.players import Given
from belated.lab.comparisons import frames
from belated.lab.comparisons.grid import Point
from belated.lab.comparisons.results import Results
from belated.lab.comparisons.row import Row
from belated.lab.comparisons.tables import name_of, ratio_of, short
from belated.lab.problems.delays import Delays
from belated.lab.problems.feedback import Feedback
from belated.lab.problems.losses import Losses
from belated.lab.problems.reacting import Reacting
from belated.tunings import Tuning

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

    def tidy(self) -> Any:
        """A polars DataFrame with a line for each problem, algorithm, seed and checkpoint, and a column for all else.

        A column has null where a rule or an algorithm has no such setting, or where a number is not known.
        """
        import polars  # noqa: PLC0415  (only results need it)

        lines = list(self._lines())
        names = {group: dict.fromkeys(name for *_, line in lines for name in line[group]) for group in GROUPS}
        problem, parameters, losses, delays, algorithm = names.values()
        first = [*problem, *parameters, *losses, *delays, *algorithm]
        parts = []
        for row, line in lines:
            constants = {name: value for group in line.values() for name, value in group.items()}
            filled = [_constant(name, constants.get(name)) for name in first]
            frame = frames.polars_frame(frames.regrets(row) | _of_games(row)).with_columns(filled)
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
            problem = (str(what.losses), str(what.delays), str(what.arms), f"{what.rounds:,}")
            for row in results.rows:
                numbers = (row.regret, row.interval, row.pseudo, row.pseudo_interval, row.bound)
                lines.append((*problem, name_of(row), *map(short, numbers), ratio_of(row)))
        return lines

    def write(self, folder: Path | str) -> Path:
        """Write sweep.csv and sweep.parquet into a folder."""
        out = make_folder(Path(folder))
        table, (csv, parquet) = self.tidy(), FILES
        table.write_csv(out / csv)
        table.write_parquet(out / parquet)
        return out

    def _lines(self) -> Iterator[tuple[Row, dict[str, dict[str, Any]]]]:
        """Every algorithm on every problem, with what stays the same in its games."""
        for point, results in zip(self.points, self.results, strict=True):
            what, problem = point.comparison, point.comparison.problem
            players = zip(what.players, what.algorithms, point.values, strict=True)
            given = {algorithm.name: (player, values) for algorithm, player, values in players}
            for row in results.rows:
                player, values = given[row.algorithm.name]
                yield (
                    row,
                    {
                        "problem": {
                            "losses": str(what.losses),
                            "delays": str(what.delays),
                            "arms": what.arms,
                            "rounds": what.rounds,
                        },
                        "parameters": dict(values),
                        "losses": _settings("losses", problem.losses),
                        "delays": _settings("delays", problem.delays),
                        "algorithm": {"algorithm": row.algorithm.name} | _settings("algorithm", player),
                    },
                )


RULES = (Losses, Reacting, Delays, Feedback, Tuning)
GROUPS = ("problem", "parameters", "losses", "delays", "algorithm")


def _of_games(row: Row) -> dict[str, Any]:
    """What each game has once."""
    points = row.curves.checkpoints.size
    return {
        "bound": np.repeat(np.array([game.bound for game in row.games], np.float64), points),
        "lower_bound": np.repeat(np.array([game.lower for game in row.games], np.float64), points),
        "seconds": np.repeat([game.seconds for game in row.games], points),
    }


def _settings(prefix: str, what: Any) -> dict[str, Any]:
    """The settings of a rule or a tuning that are plain values. Those of a rule inside it count too.

    A player under another name has the settings of what it stands for.
    """
    if isinstance(what, Algorithm) and isinstance(what.player, Given):
        given = what.player
        return _settings(prefix, given.what) | {f"{prefix}_{name}": value for name, value in given.settings}
    if isinstance(what, str):
        return {f"{prefix}_{name}": value for name, value in _written(what).items()}
    found: dict[str, Any] = {}
    is_ours = isinstance(what, RULES) and dataclasses.is_dataclass(what)
    for field in dataclasses.fields(what) if is_ours else ():
        value = getattr(what, field.name)
        if isinstance(value, RULES):
            found = _settings(prefix, value) | found
        elif isinstance(value, bool | int | float | str):
            found[f"{prefix}_{field.name}"] = value
    return found


def _written(text: str) -> dict[str, Any]:
    """The settings at the end of an algorithm's text, such as `shadow:scale=2`."""
    settings = text.rpartition(":")[2]
    pairs = [one.partition("=") for one in settings.split(",")] if "=" in settings else []
    return {name.strip(): _number(value) for name, _, value in pairs}


def _number(text: str) -> Any:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text


def _constant(name: str, value: Any) -> Any:
    import polars  # noqa: PLC0415

    kind = polars.Int64 if isinstance(value, int) and not isinstance(value, bool) else None
    return polars.lit(value, dtype=kind).alias(name)
