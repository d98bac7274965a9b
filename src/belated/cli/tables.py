"""Prints the tables of a report on a terminal. A wide table becomes several, so nothing is cut off."""

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from belated.reports import Table as Cells

LEAST_NAME = 14  # for the first column, whose cells may be folded
EDGES, GAP = 1, 2  # spaces before and after a table together, and after each column


def print_cells(cells: Cells, console: Console) -> None:
    """Print a table. Columns that do not fit go into a table below, which repeats the first column."""
    title = cells.title
    for columns in _parts(cells, console.width):
        console.print(_table(cells, title, columns, console.width))
        title = ""


def _parts(cells: Cells, room: int) -> list[list[int]]:
    """The columns of each table after the first column, at least one in each."""
    parts: list[list[int]] = [[]]
    for number in range(1, len(cells.header)):
        wider = [*parts[-1], number]
        if parts[-1] and _spare(_least(cells, wider), room) < 0:
            parts.append([number])
        else:
            parts[-1] = wider
    return parts


def _least(cells: Cells, columns: Sequence[int]) -> list[int]:
    """The least width of the first column and of these. Only headings wrap, and names of rows."""
    widest = [max((len(row[number]) for row in cells.rows), default=0) for number in (0, *columns)]
    widest[0] = min(widest[0], LEAST_NAME)
    words = [max(map(len, cells.header[number].split()), default=0) for number in (0, *columns)]
    return list(map(max, widest, words))


def _spare(widths: list[int], room: int) -> int:
    return room - EDGES - sum(width + GAP for width in widths)


def _widths(cells: Cells, columns: Sequence[int], room: int) -> list[int]:
    """The widths of the columns. Room that is left goes to those that would be much wider, one by one.

    Rich would let columns be narrower than their cells, and cut off what is beyond the edge.
    """
    widths = _least(cells, columns)
    full = [max(len(text) for text in (cells.header[n], *(row[n] for row in cells.rows))) for n in (0, *columns)]
    for _ in range(_spare(widths, room)):
        wanted = [most - width for most, width in zip(full, widths, strict=True)]
        if max(wanted) <= 0:
            break
        widths[wanted.index(max(wanted))] += 1
    return widths


def _table(cells: Cells, title: str, columns: Sequence[int], room: int) -> Table:
    table = Table(title=title or None, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    first, *others = _widths(cells, columns, room)
    table.add_column(cells.header[0], width=first, overflow="fold")
    for number, width in zip(columns, others, strict=True):
        table.add_column(cells.header[number], justify="right", width=width, overflow="fold")
    for row in cells.rows:
        table.add_row(*(Text(row[number]) for number in (0, *columns)))  # no markup, because names are the user's own
    return table
