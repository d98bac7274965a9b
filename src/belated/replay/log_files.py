"""Reads a CSV or Parquet file as columns of text, in chunks of rows with their line numbers."""

import csv
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from belated.errors import InvalidInput
from belated.extras import needs

CHUNK_ROWS = 2_000  # larger chunks only cost memory
Texts = Sequence[str]


class Chunk(NamedTuple):
    """Some rows of a file. `lines` has the line (CSV) or row (Parquet) of each, from 1. `columns` follow the header."""

    lines: list[int]
    columns: list[Texts]


class LogTable(NamedTuple):
    """A file whose header has been read."""

    path: Path
    unit: str  # what `lines` counts, "line" or "row"
    header: list[str]
    chunks: Iterator[Chunk]


class Column(NamedTuple):
    """One column of a chunk. An empty cell is ""."""

    table: LogTable
    name: str
    lines: list[int]
    cells: Texts


def column_of(table: LogTable, chunk: Chunk, name: str) -> Column:
    """The column of a chunk with this name."""
    return Column(table, name, chunk.lines, chunk.columns[table.header.index(name)])


def refuse(column: Column, index: int, why: str) -> NoReturn:
    """Raise InvalidInput with the location of the cell, its content and the rule it breaks."""
    table = column.table
    location = f"{table.path}, {table.unit} {column.lines[index]}, column {column.name!r}"
    cell = column.cells[index]
    raise InvalidInput(f"{location}: {f'{cell[:60]!r} {why}' if cell else f'the cell is empty. {why}'}")


def open_table(path: Path) -> LogTable:
    """Open a file by its ending, .csv or .parquet."""
    if path.suffix.lower() == ".csv":
        return _open_csv(path)
    if path.suffix.lower() == ".parquet":
        return _open_parquet(path)
    raise InvalidInput(f"{path}: the file must end in .csv or .parquet. Export it as one of these")


def _open_csv(path: Path) -> LogTable:
    records = _records(path)
    line, header = next(records, (0, [""]))
    if line == 0:
        raise InvalidInput(f"{path} is empty. Its first line must name the columns")
    names = [name.strip() for name in header]
    for separator, word in ((";", "semicolons"), ("\t", "tabs")):
        if len(names) == 1 and separator in names[0]:
            raise InvalidInput(f"{path} is separated by {word}. Save it with commas, and numbers with a decimal point")
    _check_header(path, names)
    return LogTable(path, "line", names, _csv_chunks(path, records, len(names)))


def _check_header(path: Path, names: list[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise InvalidInput(f"{path}: the column {name!r} is named twice. Rename or remove one of them")


def _records(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The records of a CSV file that are not blank, each with its first line number."""
    line = 1
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True)
            for record in reader:
                if len(record) > 1 or (record and record[0].strip()):
                    yield line, record
                line = reader.line_num + 1  # a quoted cell may hold line breaks
    except OSError as error:
        raise InvalidInput(f"{path}: {error.strerror or error}") from error
    except csv.Error as error:
        raise InvalidInput(f"{path}, line {line}: not valid CSV ({error}). Check the quotes") from error
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"{path}, line {_first_undecodable(path)}: not UTF-8 text. Save the file as UTF-8"
        ) from error


def _first_undecodable(path: Path) -> int:
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError:
                return number
    return 1


def _csv_chunks(path: Path, records: Iterator[tuple[int, list[str]]], width: int) -> Iterator[Chunk]:
    while chunk := list(islice(records, CHUNK_ROWS)):
        for line, record in chunk:
            if len(record) != width:
                raise InvalidInput(
                    f"{path}, line {line}: {len(record)} cells where the header names {width} columns. "
                    "Check for a missing or extra comma, or a comma in a text without quotes"
                )
        lines, rows = zip(*chunk, strict=True)
        yield Chunk(list(lines), [[cell.strip() for cell in cells] for cells in zip(*rows, strict=True)])


def _open_parquet(path: Path) -> LogTable:
    with needs("lab"):
        import polars  # noqa: PLC0415  (only Parquet needs it)

    try:
        frame = polars.read_parquet(path, glob=False)
        if {"kind", "nonce", "drawn"} <= set(frame.columns):
            log = str(path).replace(".journal.parquet", ".parquet")
            raise InvalidInput(f"{path} has the journal of an archive. Give the file of its decisions, {log}")
        texts = frame.select(_as_text(frame[name]) for name in frame.columns)
    except OSError as error:
        raise InvalidInput(f"{path}: {error.strerror or error}") from error
    except polars.exceptions.PolarsError as error:
        raise InvalidInput(f"{path}: not a readable Parquet file: {error}") from error
    return LogTable(path, "row", texts.columns, _parquet_chunks(texts))


def _as_text(column: Any) -> Any:
    """Numbers with all their digits, dates as ISO 8601, booleans as 1 or 0. A missing value is ""."""
    import polars  # noqa: PLC0415

    if column.dtype == polars.Boolean:
        column = column.cast(polars.Int8)
    if isinstance(column.dtype, polars.Datetime):
        column = column.dt.to_string("iso:strict")
    if column.dtype.is_nested():
        column = polars.Series(
            column.name, [f"<{column.dtype}>"] * len(column)
        )  # refused later, because it is neither a name nor a number
    return column.cast(polars.String).fill_null("").str.strip_chars()


def _parquet_chunks(texts: Any) -> Iterator[Chunk]:
    for start in range(0, texts.height, CHUNK_ROWS):
        part = texts.slice(start, CHUNK_ROWS)
        lines = list(range(start + 1, start + 1 + part.height))
        yield Chunk(lines, [column.to_list() for column in part.get_columns()])
