"""The table, the figure and the report page of a plan."""

import math
from dataclasses import asdict
from typing import Any, Final

from belated.figure_style import plain_ticks
from belated.lab.plans.results import QUANTILES, RUNNING, PlanResults, PlanRow, days_in_words, rounded
from belated.lab.plans.settings import PlanSettings
from belated.reports import Figure, Page, Section, Table, columns_of, lines
from belated.reports.charts import Columns

FOUND_LATE: Final = (
    "Games were looked at after every 2% more decisions, and to stop and wait was tried after every 5%. So the numbers "
    "are too large by up to that much. There is random error too, which more --games make smaller."
)


def table(results: PlanResults) -> Table:
    """A column for each row of the results."""
    rows = results.rows
    cells: list[tuple[str, ...]] = []
    for name, share in QUANTILES.items():
        reached = [row.decisions(share) for row in rows]
        cells.append((f"{name} decided", *(_decisions(row, n) for row, n in zip(rows, reached, strict=True))))
        times = [("-" if n == math.inf else days_in_words(row.days(n))) for row, n in zip(rows, reached, strict=True)]
        cells.append(("  which takes", *times))
    shares = {
        "decided right": [row.right for row in rows],
        "decided wrong": [row.wrong for row in rows],
        "undecided": [row.undecided for row in rows],
    }
    cells += [(name, *(f"{share:.0%}" for share in values)) for name, values in shares.items()]
    cells.append(("successes lost", *(rounded(row.lost) for row in rows)))
    return Table(title(results.settings), ("", *map(label, rows)), cells)


def _decisions(row: PlanRow, decisions: float) -> str:
    return f"> {row.settings.most:,}" if decisions == math.inf else rounded(decisions)


def label(row: PlanRow) -> str:
    """The player, and the way if there are two."""
    return row.player if row.settings.wait_decisions == 0 else f"{row.player}: {row.way}"


def title(settings: PlanSettings) -> str:
    """The experiment in one line."""
    better = settings.base_rate + settings.difference
    return (
        f"{settings.options} options, {settings.base_rate:.4g} or {better:.4g}, {settings.per_day:,g} decisions a day, "
        f"{settings.games} games"
    )


def figure(results: PlanResults) -> Figure:
    """The share of games that are decided after so many decisions, with days on a second axis."""
    start = min(one.decisions for row in results.rows for one in row.endings) / 2
    rows = [(label(row), *point) for row in results.rows for point in _steps(row, start)]
    columns = columns_of(("who", "decisions", "days", "experiments decided"), rows)
    dashed = [label(row) for row in results.rows if row.way == RUNNING and results.settings.wait_decisions]
    curves = lines("decisions", "experiments decided", "who", scales=("log", "linear"), dashed=dashed, percent=True)
    per_day = results.settings.per_day

    def draw(axis: Any, columns: Columns) -> None:
        curves(axis, columns)
        first, last = min(columns["decisions"]), max(columns["decisions"])
        axis.set(ylim=(-0.02, 1.02), xlim=(first, last))
        axis.legend(fontsize=9, loc="upper left")
        days = axis.twiny()
        days.set(xscale="log", xlim=(first / per_day, last / per_day), xlabel="days of decisions")
        days.grid(visible=False)
        for one in (axis, days):
            one.xaxis.get_major_locator().set_params(subs=(1.0, 2.0, 5.0))
            plain_ticks(one)

    return Figure("plan", title(results.settings), columns, draw)


def _steps(row: PlanRow, start: float) -> list[tuple[float, float, float]]:
    """The corners of the curve, as decisions, days and share."""
    found = sorted(one.decisions for one in row.endings if one.is_right is not None)
    corners = [(start, 0.0)]
    for number, decisions in enumerate(found):
        corners += [(decisions, number / len(row.endings)), (decisions, (number + 1) / len(row.endings))]
    corners.append((row.settings.most, len(found) / len(row.endings)))
    return [(decisions, row.settings.days(decisions), share) for decisions, share in corners]


def page(results: PlanResults) -> Page:
    """The report."""
    first, *more = results.sentences()
    section = Section(
        "plan",
        "When it is decided",
        headline=first,
        paragraphs=[*more, FOUND_LATE],
        tables=[table(results)],
        figures=[figure(results)],
    )
    return Page(
        "Plan of an experiment", [title(results.settings)], [section], asdict(results.settings), results.as_data()
    )
