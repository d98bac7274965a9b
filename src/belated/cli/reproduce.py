"""`belated reproduce` plays the problems of papers beside the numbers that they printed."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from belated.cli.application import app, console
from belated.folders import make_folder
from belated.lab.literature import PAPERS, Paper
from belated.lab.literature.naming import paper_of
from belated.lab.literature.reproduce import Row, rows_of
from belated.lab.literature.tables import HEADER, cells_of, markdown, write_csv
from belated.validation import whole_number

WIDTHS = (28, 26, 22, 20, 5, 12)
LEAST = (14, 16, 13, 12, 5, 12)  # on a terminal of 80 columns. Cells are folded
GAP = 1  # between columns


def show_papers() -> None:
    """Print a line for each paper."""
    for paper in PAPERS:
        about = f"not played, because {paper.note}" if paper.note else f"{len(paper.cases)} games"
        console.print(f"[cyan]{paper.name:25}[/cyan] {paper.citation}. [dim]{about}[/dim]", soft_wrap=True)
    console.print("\nPlay one with `belated reproduce NAME`, or all with `belated reproduce all`.", highlight=False)


def widths_within(room: int) -> list[int]:
    """The widths of the columns. Room beyond the least goes one by one to those that would be much wider."""
    widths = list(LEAST)
    for _ in range(room - sum(LEAST) - GAP * len(LEAST)):
        wanted = [most - width for most, width in zip(WIDTHS, widths, strict=True)]
        if max(wanted) == 0:
            break
        widths[wanted.index(max(wanted))] += 1
    return widths


def print_row(cells: tuple[str, ...]) -> None:
    """Print a row of the table. Rows are printed one by one, as soon as they are played."""
    table = Table.grid(padding=(0, GAP))
    for number, width in enumerate(widths_within(console.width)):
        table.add_column(width=width, justify="left" if number in (0, 1, 5) else "right", overflow="fold")
    table.add_row(*map(Text, cells))
    console.print(table, highlight=False)


def play(paper: Paper, full: bool, seed: int, rows: list[Row]) -> None:
    """Play a paper. Finished rows are in `rows`, also after Ctrl-C."""
    console.print(f"\n[bold]{paper.name}[/bold] {paper.citation}", highlight=False)
    console.print(f"[dim]{paper.settings}. Read: {paper.read}.[/dim]", highlight=False)
    if paper.note:
        console.print(f"[dim]Not played, because {paper.note}.[/dim]", highlight=False)
        return
    print_row(HEADER)
    for row in rows_of(paper, full=full, seed=seed):
        rows.append(row)
        print_row(cells_of(row))


def write(rows: list[Row], papers: list[Paper], out: Path) -> None:
    """Write the rows as CSV and as Markdown."""
    write_csv(rows, out / "reproduction.csv")
    sections = [markdown(paper, [row for row in rows if row.paper == paper.name]) for paper in papers]
    (out / "reproduction.md").write_text("\n".join(sections), encoding="utf-8")
    console.print(f"\nreproduction.csv and reproduction.md are in {out}", soft_wrap=True, highlight=False)


@app.command()
def reproduce(
    name: Annotated[str | None, typer.Argument(help="A paper, or all. Without it, the papers are listed.")] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Games as long as published, and more of them. It takes half an hour.")
    ] = False,
    seed: Annotated[int, typer.Option(help="The first seed.")] = 0,
    out: Annotated[Path | None, typer.Option(help="A folder for reproduction.csv and reproduction.md.")] = None,
) -> None:
    """Play the problems of papers, and print our numbers beside the published ones."""
    if name is None:
        show_papers()
        return
    papers = list(PAPERS) if name == "all" else [paper_of(name)]
    first = whole_number("seed", seed, 0)
    if out is not None:
        make_folder(out)
    rows, played = list[Row](), list[Paper]()
    try:
        for paper in papers:
            played.append(paper)
            play(paper, full, first, rows)
    except KeyboardInterrupt:
        console.print("Interrupted. Only the rows above are finished.", highlight=False)
        raise
    finally:
        if out is not None:
            write(rows, played, out)
