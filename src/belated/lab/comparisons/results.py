"""The results of a comparison, as ranked rows, tables, files and a figure."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, final

from belated.extras import needs
from belated.folders import as_path, make_folder
from belated.lab.comparisons import figure, frames, tables
from belated.lab.comparisons.comparison import Comparison
from belated.lab.comparisons.differences import Difference, differences_of
from belated.lab.comparisons.row import Row
from belated.lab.games import repeating
from belated.lab.games.curves import Measure
from belated.lab.games.mismatch import warning_of

FILES = ("results.csv", "results.parquet", "regret.png", "table.tex")


@final
@dataclass(frozen=True, eq=False)
class Results:
    """What `lab.compare` returns. After Ctrl-C it has only the algorithms that finished all seeds."""

    comparison: Comparison
    rows: Sequence[Row]  # the least mean regret first. Those that are suspicious come last

    @property
    def is_whole(self) -> bool:
        """Whether all algorithms finished."""
        return len(self.rows) == len(self.comparison.algorithms)

    @property
    def unfinished(self) -> list[str]:
        """The algorithms that have no row, because Ctrl-C came before they had finished all seeds."""
        finished = {row.algorithm.name for row in self.rows}
        return [player.name for player in self.comparison.players if player.name not in finished]

    @property
    def title(self) -> str:
        """The problem in one line."""
        what, n_seeds = self.comparison, len(self.comparison.seed_numbers)
        return (
            f"{what.losses} losses, {what.delays} delays, k = {what.arms}, n = {what.rounds:,}, "
            f"{n_seeds} seed{'s' if n_seeds > 1 else ''}"
        )

    @property
    def note(self) -> str:
        """What the regret before the end is not. Empty if the problem does not depend on its number of rounds."""
        what = self.comparison
        if not what.problem.depends_on_horizon:
            return ""
        return (
            f"The problem depends on n = {what.rounds:,}. So regret at an earlier round is not that of a shorter game."
        )

    @property
    def warnings(self) -> list[str]:
        """What to say of each algorithm whose expected regret means nothing. Tables mark it with `!`."""
        return [warning_of(row.algorithm.name) for row in self.rows if row.curves.is_suspicious]

    @property
    def unrepeatable(self) -> list[str]:
        """What to say of each algorithm whose games its seeds do not give again."""
        return [repeating.warning_of(row.algorithm.name) for row in self.rows if not row.curves.is_repeatable]

    def tidy(self) -> Any:
        """All regrets as a polars DataFrame, with one line for each algorithm, seed and checkpoint.

        Where `is_suspicious` is true, the expected regret means nothing. Where `is_partial` is true, the regret is not
        that of a shorter game, because the problem depends on its number of rounds.
        """
        with needs("lab"):
            import polars  # noqa: PLC0415  (only results need it)

        depends = self.comparison.problem.depends_on_horizon
        columns = [frames.regrets(row, depends_on_horizon=depends) for row in self.rows]
        return polars.concat(list(map(frames.polars_frame, columns)))

    def plays(self) -> Any:
        """How often each arm was played, with one line for each algorithm, seed, checkpoint and arm."""
        with needs("lab"):
            import polars  # noqa: PLC0415

        return polars.concat([frames.polars_frame(frames.plays(row)) for row in self.rows])

    def to_pandas(self) -> Any:
        """`tidy()` as a pandas DataFrame."""
        return frames.pandas_frame(self.tidy())

    def summary(self) -> list[tuple[str, ...]]:
        """The table as text. `tables.HEADINGS` are its columns."""
        return [tables.text_of(row) for row in self.rows]

    def to_markdown(self) -> str:
        """The table for Markdown."""
        return tables.markdown(self.rows)

    def to_latex(self, caption: str | None = None, label: str | None = None) -> str:
        """The table for LaTeX's package booktabs, with 95% intervals and the best learner in bold.

        With a caption or a label it is inside a table environment.
        """
        return tables.latex(self.rows, caption, label)

    def differences(self, against: str | None = None, of: Measure = "expected") -> list[Difference]:
        """The regret of every algorithm minus that of one, on the same seeds, with 95% intervals.

        The one is by default the learner with the least regret. `of` is "expected", "suffered", "pseudo" or "dynamic".
        The expected regret of a suspicious learner means nothing. So its differences are NaN and have no winner.
        """
        return differences_of(self.rows, against, of)

    def figure(
        self,
        path: Path | str,
        *,
        width: float | Literal["single", "double"] | None = None,
        height: float | None = None,
        font_size: float | None = None,
        scale: Literal["log", "linear", "both"] | None = None,
        of: Measure = "expected",
    ) -> None:
        """Draw the regret curves with their bands and bounds. The ending of the path decides the format.

        With a `width`, the figure is made for a paper. It has that size, small type and no title. "single" is one
        column of 3.35 inches and "double" two of 6.9. A number is in inches.
        """
        look = figure.look_of(width, height, font_size, scale)
        marks = tables.meanings(self.rows) if of == "expected" else []
        title = "\n".join(filter(None, (self.title, self.note, *marks)))
        figure.draw(
            self.rows, title, as_path("the path of a figure", path), look, of, depends_on_horizon=bool(self.note)
        )

    def write(self, folder: Path | str) -> Path:
        """Write results.csv, results.parquet, regret.png and table.tex into a folder."""
        out = make_folder(as_path("folder", folder))
        table, (csv, parquet, png, tex) = self.tidy(), FILES
        table.write_csv(out / csv)
        table.write_parquet(out / parquet)
        self.figure(out / png)
        (out / tex).write_text(self.to_latex(), encoding="utf-8")
        return out
