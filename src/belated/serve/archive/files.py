"""The files of an archive. For each experiment there is one that `belated replay` reads, and one with all entries.

A file is whole and on disk when it gets its name. No file is ever overwritten, except to erase decisions from it.
"""

import io
import os
from collections.abc import Generator, Iterable, Iterator
from itertools import chain, count, islice
from pathlib import Path
from typing import Any, Final, NamedTuple

import polars as pl

from belated.errors import StoreError
from belated.serve.archive.choosing import decisions, outcomes
from belated.serve.domain.entries import COLUMNS, Entry, EntryKind, Found
from belated.serve.domain.experiment import Experiment
from belated.serve.http import parquet
from belated.serve.http.exports import parquet_parts
from belated.serve.store.journal import Journal, Removal

AT_ONCE: Final = 1_000  # rows of a page
ENTRIES: Final = ".journal.parquet"  # how the names of files with all entries end
SCHEMA: Final[dict[str, Any]] = {
    **dict.fromkeys(COLUMNS, pl.Int64),
    **dict.fromkeys(("probability", "value", "old"), pl.Float64),
    "request": pl.String,
    **dict.fromkeys(("body", "drawn", "alias", "parts"), pl.Binary),
}


class Archived(NamedTuple):
    """The files of one experiment, and how many decisions and entries they hold."""

    files: list[Path]
    decisions: int
    entries: int


def chosen(journal: Journal, experiment: Experiment, what: Removal) -> tuple[Iterator[Found], Iterator[Entry]]:
    """Return the decisions and the outcomes of an experiment that a removal takes."""
    last = what.until if what.experiments is not None else min(what.until, what.decisions_until)
    return decisions(journal, experiment, 0, last), outcomes(journal, experiment, last, what.until)


def write(folder: Path, journal: Journal, experiment: Experiment, what: Removal) -> Archived:
    """Write what a removal takes of one experiment."""
    found, told = chosen(journal, experiment, what)
    stem = f"{experiment.name}-{what.until}"
    raw = _written(folder, stem, ENTRIES, parquet.parts(SCHEMA, _rows(chain((one.decision for one in found), told))))
    made = raw.rows(pl.col("kind") == int(EntryKind.DECIDED))
    if not made:
        return Archived([raw.path], 0, raw.rows())
    log = _written(folder, stem, ".parquet", parquet_parts(experiment, _pages(chosen(journal, experiment, what)[0])))
    if log.rows() != made:
        raise StoreError(f"the file {log.path} does not have all {made} decisions. Nothing was removed.")
    return Archived([log.path, raw.path], made, raw.rows())


def _pages(found: Iterator[Found]) -> Generator[list[Found]]:
    while page := list(islice(found, AT_ONCE)):
        yield page


def _rows(entries: Iterator[Entry]) -> Generator[list[tuple[Any, ...]]]:
    while page := list(islice(entries, AT_ONCE)):
        yield [tuple(getattr(entry, name) for name in COLUMNS) for entry in page]


class Written(NamedTuple):
    """A file of an archive."""

    path: Path

    def rows(self, where: pl.Expr | None = None) -> int:
        """Read the file, and count its rows."""
        table = pl.scan_parquet(self.path, glob=False)
        return int((table if where is None else table.filter(where)).select(pl.len()).collect().item())


def _written(folder: Path, stem: str, ending: str, parts: Generator[bytes]) -> Written:
    """Write a file under a new name, and return it when it is on disk."""
    partial = folder / f".{stem}{ending}.{os.getpid()}.partial"
    try:
        fill(partial, parquet.joined(parts))
        for number in count(1):
            path = folder / f"{stem}{'' if number == 1 else f'-{number}'}{ending}"
            try:
                path.hardlink_to(partial)  # fails if somebody has this name
            except FileExistsError:
                continue
            sync(folder)
            return Written(path)
    finally:
        partial.unlink(missing_ok=True)
    raise AssertionError("not reached")


def fill(path: Path, content: Iterable[bytes]) -> None:
    """Write a file, and return when its content is on disk."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.writelines(content)
        file.flush()
        os.fsync(file.fileno())


def put(path: Path, content: Iterable[bytes]) -> None:
    """Put content in the place of a file, whole and on disk."""
    partial = path.with_name(f".{path.name}.partial")
    fill(partial, content)
    partial.replace(path)
    sync(path.parent)


def put_table(path: Path, table: pl.DataFrame) -> None:
    """Put a table in the place of a file."""
    target = io.BytesIO()
    table.write_parquet(target)
    put(path, [target.getvalue()])


def sync(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read(path: Path) -> list[Entry]:
    """Return the entries in a file that has all entries."""
    rows = pl.read_parquet(path, glob=False).iter_rows(named=True)
    return [Entry(**{**row, "kind": EntryKind(row["kind"])}) for row in rows]
