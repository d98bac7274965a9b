"""`belated paper`: every claim of ZS20 as a measured verdict, and a report."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from belated.cli.application import app, console
from belated.errors import InvalidInput
from belated.lab.problems.parsing import nearest
from belated.paper import CLAIMS, Claim, ClaimResult, Effort, Verdict, run
from belated.paper.report import NUMBERS, page_of, title_of
from belated.reports import pages

STYLES = {
    Verdict.HOLDS: "bold green",
    Verdict.FAILS: "bold red",
    Verdict.UNDECIDED: "bold yellow",
    Verdict.SHOWN: "bold cyan",
}


def chosen(only: str | None) -> list[Claim]:
    """The claims with these names or numbers, in the paper's order; all if nothing is given."""
    if only is None:
        return list(CLAIMS)
    by_number = {str(number): name for name, number in NUMBERS.items()}
    names = [by_number.get(name.strip(), name.strip().lower()) for name in only.split(",") if name.strip()]
    if not names:
        raise InvalidInput(f"--only {only!r} names no claim; there are {', '.join(NUMBERS)}")
    for name in names:
        if name not in NUMBERS:
            raise nearest("claim is", name, NUMBERS)
    return [claim for claim in CLAIMS if claim.name in names]


def print_row(claim: str | Text, verdict: str | Text, measured: str | Text) -> None:
    """One line of the table, or more where a cell is long: every claim is printed as soon as it is judged."""
    row = Table.grid(padding=(0, 2), expand=True)
    row.add_column(ratio=4)
    row.add_column(width=9)
    row.add_column(ratio=6)
    row.add_row(claim, verdict, measured)
    console.print(row)


def tell(outcome: ClaimResult) -> None:
    """Print what became of a claim."""
    print_row(title_of(outcome), Text(outcome.verdict.value, STYLES[outcome.verdict]), outcome.headline)


@app.command()
def paper(
    full: Annotated[bool, typer.Option("--full", help="More seeds and longer games: tight intervals.")] = False,
    only: Annotated[
        str | None, typer.Option(help=f"Claims by name or number, separated by commas: {', '.join(NUMBERS)}.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Another number gives other games throughout.")] = 0,
    workers: Annotated[int, typer.Option(min=1, help="Threads; they change no result.")] = 2,
    out: Annotated[Path, typer.Option(help="The folder of the report.")] = Path("belated-paper"),
) -> None:
    """Try every claim of the paper: a table of verdicts, and a report with figures. Exit code 1 if a theorem fails."""
    claims, effort = chosen(only), Effort(full, seed, workers)
    pages.make_folder(out)
    print_row(Text("claim", "dim"), Text("verdict", "dim"), Text("measured", "dim"))
    outcomes = run(claims, effort, tell, console if console.is_terminal else None)
    page = pages.write(page_of(outcomes, effort), out)
    broken = [title_of(outcome) for outcome in outcomes if outcome.is_broken]
    if broken:
        console.print(Text(f"theorems that fail: {'; '.join(broken)}", "bold red"))
    console.print(Text(f"report: {page}"), soft_wrap=True)
    if broken:
        raise typer.Exit(1)
