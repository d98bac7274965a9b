"""The rows of a reproduction as cells, as CSV and as Markdown."""

import csv
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields
from pathlib import Path

from belated.lab.literature.records import Paper
from belated.lab.literature.reproduce import Row

HEADER = ("game", "system", "published", "ours", "games", "verdict")


def cells_of(row: Row) -> tuple[str, ...]:
    """A row as text."""
    published = published_cell(row.published, row.reading)
    ours = _number(row.ours) + ("" if math.isnan(row.interval) else f" ± {_number(row.interval)}")
    return row.title, row.system, published, ours, str(row.seeds or "-"), row.verdict.value


def published_cell(value: float, reading: float) -> str:
    """A published number as text. One that was read off a figure has its error behind it."""
    return _number(value) + (f" ± {reading:g} (read off)" if reading else "")


def _number(value: float) -> str:
    if math.isnan(value):
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.1f}".removesuffix(".0")


def write_csv(rows: Iterable[Row], path: Path) -> None:
    """One line for each row, with every field."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Row)])
        writer.writeheader()
        for row in rows:
            values = asdict(row)
            writer.writerow({name: "" if value != value else value for name, value in values.items()})  # noqa: PLR0124


def markdown(paper: Paper, rows: Sequence[Row]) -> str:
    """A section of the page on reproductions."""
    lines = [f"### {paper.name}", "", f"{paper.citation}.", "", f"- **Settings.** {paper.settings}."]
    lines.append(f"- **Read.** {paper.read}.")
    if paper.note:
        return "\n".join([*lines, f"- **Not played**, because {paper.note}.", ""])
    lines += ["", f"| {' | '.join(HEADER)} |", "|" + "---|" * len(HEADER)]
    lines += [f"| {' | '.join(cells_of(row))} |" for row in rows]
    return "\n".join([*lines, ""])
