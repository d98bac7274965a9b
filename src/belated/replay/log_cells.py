"""Parses cells of text as numbers and times. Refuses the first invalid cell and says where it is."""

import math
from datetime import UTC, datetime
from typing import NoReturn

import numpy as np

from belated.arrays import Floats
from belated.replay.log_files import Column, refuse

NUMBER, NAIVE, AWARE = "a number", "a date-time without time zone", "a date-time with time zone"
EPOCHS = {NAIVE: datetime(1970, 1, 1), AWARE: datetime(1970, 1, 1, tzinfo=UTC)}
EXAMPLE = "2024-05-01T12:30:00+02:00"


def numbers(column: Column) -> Floats:
    """A finite number for each cell, NaN for an empty cell."""
    try:
        values = np.array([float(cell) if cell else math.nan for cell in column.cells])
        is_sound = np.count_nonzero(np.isfinite(values)) + column.cells.count("") == values.size
        is_sound = is_sound and not _has_underscores(column)
    except ValueError:
        is_sound = False
    if not is_sound:
        for index, cell in enumerate(column.cells):
            if cell and not _is_number(cell):
                refuse(column, index, f"is not a finite number such as 0.25{_hint(cell)}")
    return values


def _hint(cell: str) -> str:
    """How to write what the cell probably means."""
    if cell.lower() in ("nan", "null", "none", "na", "n/a"):
        return ". Leave the cell empty if no outcome has come"
    if cell.lower() in ("true", "false"):
        return ". Write 1 and 0"
    if cell.endswith("%"):
        return ". Write 0.33 for 33%"
    return ". Write a decimal point, not a comma" if "," in cell else ""


def _has_underscores(column: Column) -> bool:
    return "_" in "".join(column.cells)  # float() accepts 1_000


def _is_number(cell: str) -> bool:
    try:
        return math.isfinite(float(cell)) and "_" not in cell
    except ValueError:
        return False


def kind_of(cell: str) -> str | None:
    """How a time is written, or None if the cell is not a time."""
    if _is_number(cell):
        return NUMBER
    try:
        return NAIVE if datetime.fromisoformat(cell).tzinfo is None else AWARE
    except ValueError:
        return None


def instants(column: Column, kind: str) -> Floats:
    """Seconds since 1970 for each date-time, or the plain numbers. Infinite for an empty cell."""
    try:
        if kind == NUMBER:
            values = np.array([float(cell) if cell else math.inf for cell in column.cells])
            is_sound = np.count_nonzero(np.isfinite(values)) + column.cells.count("") == values.size
            is_sound = is_sound and not _has_underscores(column)
        else:
            read, epoch = datetime.fromisoformat, EPOCHS[kind]
            values = np.array([(read(cell) - epoch).total_seconds() if cell else math.inf for cell in column.cells])
            is_sound = 8 not in set(map(len, column.cells))  # 20240501 may be a number or a date
    except (TypeError, ValueError):
        is_sound = False
    if not is_sound:
        for index, cell in enumerate(column.cells):
            if cell and kind_of(cell) != kind:
                _refuse_instant(column, index, kind)
    return values


def _refuse_instant(column: Column, index: int, kind: str) -> NoReturn:
    found = kind_of(column.cells[index])
    if found is None:
        refuse(column, index, f"is neither a finite number nor an ISO 8601 date-time such as {EXAMPLE}")
    refuse(column, index, f"is {found}, but the first time of the file is {kind}. Write all times the same way")
