"""The results of a comparison, as ranked rows, a table, files and a figure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np

from belated.folders import make_folder
from belated.lab.comparisons import figure
from belated.lab.comparisons.comparison import Comparison
from belated.lab.comparisons.row import Row

FILES = ("results.csv", "results.parquet", "regret.png")


@final
@dataclass(frozen=True, eq=False)
class Results:
    """What `lab.compare` returns. After Ctrl-C it has only the algorithms that finished all seeds."""

    comparison: Comparison
    rows: Sequence[Row]  # the least mean regret first

    @property
    def is_whole(self) -> bool:
        """Whether all algorithms finished."""
        return len(self.rows) == len(self.comparison.algorithms)

    @property
    def title(self) -> str:
        """The problem in one line."""
        what = self.comparison
        return (
            f"{what.losses} losses, {what.delays} delays, k = {what.arms}, n = {what.rounds:,}, "
            f"{what.seeds} seed{'s' if what.seeds > 1 else ''}"
        )

    def tidy(self) -> Any:
        """All regrets as a polars DataFrame, with one line for each algorithm, seed and checkpoint."""
        import polars  # noqa: PLC0415  (only results need it)

        return polars.concat([polars.DataFrame(_columns(row)) for row in self.rows])

    def summary(self) -> list[tuple[str, ...]]:
        """The table as text, with algorithm, regret, interval, bound, ratio to the lower bound, rounds/s and needs."""
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
            for row in self.rows
        ]

    def figure(self, path: Path | str) -> None:
        """Draw the regret curves with their bands and bounds. The ending of the path decides the format."""
        figure.draw(self.rows, self.title, Path(path))

    def write(self, folder: Path | str) -> Path:
        """Write results.csv, results.parquet and regret.png into a folder."""
        out = make_folder(Path(folder))
        table, (csv, parquet, png) = self.tidy(), FILES
        table.write_csv(out / csv)
        table.write_parquet(out / parquet)
        self.figure(out / png)
        return out


def _columns(row: Row) -> dict[str, Any]:
    curves = row.curves
    n_seeds, n_points = curves.expected.shape
    return {
        "algorithm": [row.algorithm.name] * (n_seeds * n_points),
        "seed": np.repeat(curves.seeds, n_points),
        "round": np.tile(curves.checkpoints, n_seeds),
        "expected_regret": curves.expected.ravel(),
        "suffered_regret": curves.suffered.ravel(),
    }


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}"
