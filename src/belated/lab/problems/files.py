"""Reads losses and delays from CSV, Parquet or npy files. The ending of the name decides."""

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from belated.arrays import Floats
from belated.errors import InvalidInput
from belated.extras import needs
from belated.validation import as_numbers


def _read_table(path: Path) -> Any:
    with needs("lab"):
        import polars  # noqa: PLC0415  (only files need it)

    readers: dict[str, Callable[[Path], Any]] = {
        ".csv": partial(polars.read_csv, null_values="", infer_schema_length=None),
        ".parquet": polars.read_parquet,
    }
    if path.suffix not in readers:
        raise InvalidInput(f"{path}: the file must end in .csv, .parquet or .npy")
    try:
        table = readers[path.suffix](path)
    except OSError as error:
        raise InvalidInput(f"{path}: {error.strerror or error}") from error
    except polars.exceptions.PolarsError as error:
        raise InvalidInput(f"{path}: not a readable {path.suffix} file: {error}") from error
    if path.suffix == ".csv" and all(not math.isnan(_number(name)) for name in table.columns):
        raise InvalidInput(f"{path}: the first line must name the columns, got {', '.join(table.columns):.60}")
    return table


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _load(path: Path) -> NDArray[Any]:
    try:
        return np.asarray(np.load(path, allow_pickle=False))
    except (OSError, EOFError, ValueError) as error:
        raise InvalidInput(f"{path}: not a readable .npy file of numbers") from error


def _as_floats(path: Path, values: NDArray[Any]) -> Floats:
    try:
        return as_numbers(values)
    except InvalidInput as error:
        raise InvalidInput(f"{path}: every cell must be a number, but {error}") from None


def read_matrix(path: Path) -> Floats:
    """All columns of a file."""
    return _as_floats(path, _load(path) if path.suffix == ".npy" else _read_table(path).to_numpy())


def read_column(path: Path, column: str) -> Floats:
    """One column by name, or the only one. An empty cell is NaN."""
    if path.suffix == ".npy":
        values = _load(path)
        if values.size != max(values.shape, default=0):
            raise InvalidInput(f"{path}: one column is needed, got an array of the shape {values.shape}")
        return _as_floats(path, values.ravel())
    table = _read_table(path)
    if column not in table.columns and table.width != 1:
        raise InvalidInput(f"{path}: no column {column!r}. The columns are {', '.join(table.columns)}")
    return _as_floats(path, table[column if column in table.columns else table.columns[0]].to_numpy())
