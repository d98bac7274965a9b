"""Reads the range and direction of the outcomes, if a log has them in constant columns. Exports of the service do."""

import re

from belated.errors import InvalidInput
from belated.learner.outcomes import OutcomeRange
from belated.replay.log_cells import numbers
from belated.replay.log_files import Chunk, Column, LogTable, Texts, column_of, refuse

MARKED = re.compile(r"'+[=+\-@\t\r\uff1d\uff0b\uff0d\uff20]")
LOWEST, HIGHEST, BETTER = NAMES = ("outcome_lowest", "outcome_highest", "outcome_better")


def declares_range(table: LogTable) -> bool:
    """Whether the file has the three columns. A file with only some of them is refused."""
    missing = [name for name in NAMES if name not in table.header]
    if missing and len(missing) < len(NAMES):
        found = next(name for name in NAMES if name in table.header)
        raise InvalidInput(
            f"{table.path}: the column {found!r} needs the column {missing[0]!r} too. "
            f"Add it, or remove {found!r} and give the range with --lowest, --highest and --reward"
        )
    return not missing


def range_in(table: LogTable, chunk: Chunk, known: OutcomeRange | None) -> OutcomeRange:
    """The range in these rows. It must be the same in each, and the one known from earlier rows."""
    found = known or _first(table, chunk)
    rule = "as in the rows above. A log has one range of outcomes"
    for name, value in ((LOWEST, found.lowest), (HIGHEST, found.highest)):
        column = column_of(table, chunk, name)
        differs = numbers(column) != value
        if differs.any():
            refuse(column, int(differs.argmax()), f"{_must(column, int(differs.argmax()))} be {value:g} {rule}")
    better = column_of(table, chunk, BETTER)
    if better.cells.count(found.better) != len(better.cells):
        first = next(index for index, cell in enumerate(better.cells) if cell != found.better)
        refuse(better, first, f"{_must(better, first)} be {found.better!r} {rule}")
    return found


def names_in(column: Column) -> Texts:
    """The names in a column. A CSV file of the service has an apostrophe before names that look like a formula."""
    if column.table.unit != "line" or not declares_range(column.table):
        return column.cells
    return [cell[1:] if MARKED.match(cell) else cell for cell in column.cells]


def _must(column: Column, index: int) -> str:
    return "must" if column.cells[index] else "It must"


def _first(table: LogTable, chunk: Chunk) -> OutcomeRange:
    """The range in the first row."""
    columns = [column_of(table, chunk, name) for name in NAMES]
    for column in columns:
        if not column.cells[0]:
            refuse(column, 0, "Every row needs the range and direction of the outcomes")
    lowest, highest = (float(numbers(column)[0]) for column in columns[:2])
    word = columns[2].cells[0]
    if word not in ("higher", "lower"):
        refuse(columns[2], 0, "must be 'higher' or 'lower'")
    try:
        return OutcomeRange(lowest, highest, "higher" if word == "higher" else "lower")
    except InvalidInput as error:
        raise InvalidInput(f"{table.path}, columns {LOWEST!r} and {HIGHEST!r}: {error}") from error
