"""Prints the tables of a report on a terminal. A wide table becomes several, so nothing is cut off."""

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from belated.reports import Table as Cells

LEAST_NAME = 14  # for the first column, whose cells may be folded
ANY_WIDTH = 10_000


def print_cells(cells: Cells, console: Console) -> None:
    """Print a table. Columns that do not fit go into a table below, which repeats the first column."""
    title = cells.title
    for columns in _parts(cells, console):
        console.print(_table(cells, title, columns))
        title = ""


def _parts(cells: Cells, console: Console) -> list[list[int]]:
    """The columns of each table after the first column, at least one in each."""
    parts: list[list[int]] = [[]]
    for number in range(1, len(cells.header)):
        wider = [*parts[-1], number]
        if parts[-1] and _least_width(_table(cells, "", wider), console) > console.width:
            parts.append([number])
        else:
            parts[-1] = wider
    return parts


def _least_width(table: Table, console: Console) -> int:
    return Measurement.get(console, console.options.update(width=ANY_WIDTH), table).minimum


def _table(cells: Cells, title: str, columns: Sequence[int]) -> Table:
    table = Table(title=title or None, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    widest = max((len(row[0]) for row in cells.rows), default=0)
    table.add_column(cells.header[0], min_width=min(widest, LEAST_NAME), overflow="fold")
    for number in columns:
        least = max((len(row[number]) for row in cells.rows), default=0)  # so only the heading wraps
        table.add_column(cells.header[number], justify="right", min_width=least, overflow="fold")
    for row in cells.rows:
        table.add_row(*(Text(row[number]) for number in (0, *columns)))  # no markup, because names are the user's own
    return table
