"""Prints the tables of a report on a terminal. A wide table becomes several, so nothing is cut off."""

from collections.abc import Collection, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from belated.cells import Table as Cells

LEAST_NAME = 14  # for columns of texts, whose cells may be folded
EDGES, GAP = 1, 2  # spaces before and after a table together, and after each column
INTERVAL = "+-"  # the heading of a column that stays beside the column before it


def print_cells(cells: Cells, console: Console, texts: Collection[int] = ()) -> None:
    """Print a table. Columns that do not fit go into a table below, which repeats the first column.

    The first column and those of `texts` are folded where there is little room.
    """
    if cells.title:
        console.print(Text(cells.title, "table.title"))
    folded = {0, *texts}
    for columns in _parts(cells, folded, console.width):
        console.print(_table(cells, columns, folded, console.width))


def _parts(cells: Cells, folded: Collection[int], room: int) -> list[list[int]]:
    """The columns of each table. All have the first column, and at least one other."""
    parts = [[0]]
    for group in _groups(cells.header):
        wider = [*parts[-1], *group]
        if parts[-1] != [0] and _spare(_least(cells, wider, folded), room) < 0:
            parts.append([0, *group])
        else:
            parts[-1] = wider
    return parts


def _groups(header: Sequence[str]) -> list[list[int]]:
    """The columns after the first one. A number and its interval stay together."""
    groups: list[list[int]] = []
    for number in range(1, len(header)):
        if header[number] == INTERVAL and groups:
            groups[-1].append(number)
        else:
            groups.append([number])
    return groups


def _least(cells: Cells, columns: Sequence[int], folded: Collection[int]) -> list[int]:
    """The least width of each column. Only headings and texts wrap."""
    widths = []
    for number in columns:
        widest = max((len(row[number]) for row in cells.rows), default=0)
        word = max(map(len, cells.header[number].split()), default=0)
        widths.append(max(min(widest, LEAST_NAME) if number in folded else widest, word))
    return widths


def _spare(widths: Sequence[int], room: int) -> int:
    return room - EDGES - sum(width + GAP for width in widths)


def _widths(cells: Cells, columns: Sequence[int], folded: Collection[int], room: int) -> list[int]:
    """The widths of the columns. Room that is left goes to those that would be much wider, one by one.

    Rich would let columns be narrower than their cells, and cut off what is beyond the edge.
    """
    widths = _least(cells, columns, folded)
    full = [max(len(text) for text in (cells.header[n], *(row[n] for row in cells.rows))) for n in columns]
    for _ in range(_spare(widths, room)):
        wanted = [most - width for most, width in zip(full, widths, strict=True)]
        if max(wanted) <= 0:
            break
        widths[wanted.index(max(wanted))] += 1
    return widths


def _table(cells: Cells, columns: Sequence[int], folded: Collection[int], room: int) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for number, width in zip(columns, _widths(cells, columns, folded, room), strict=True):
        heading = Text(cells.header[number])
        table.add_column(heading, justify="left" if number in folded else "right", width=width, overflow="fold")
    for row in cells.rows:
        table.add_row(*(Text(row[number]) for number in columns))  # no markup, because names are the user's own
    return table
