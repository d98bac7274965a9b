"""`belated paper` tries every claim of ZS20, prints the verdicts and writes a report."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from belated.cli.application import app, console
from belated.errors import InvalidInput
from belated.paper import CLAIMS, Claim, ClaimResult, Effort, Verdict, run
from belated.paper.report import NUMBERS, page_of, title_of
from belated.paper.saboteurs import SABOTEURS, Saboteur
from belated.reports import pages
from belated.suggestions import unknown_name

STYLES = {
    Verdict.HOLDS: "bold green",
    Verdict.FAILS: "bold red",
    Verdict.UNDECIDED: "bold yellow",
    Verdict.SHOWN: "bold cyan",
}


def chosen(only: str | None) -> list[Claim]:
    """The claims with these names or numbers in the paper's order, or all claims for None."""
    if only is None:
        return list(CLAIMS)
    by_number = {str(number): name for name, number in NUMBERS.items()}
    names = [by_number.get(name.strip(), name.strip().lower()) for name in only.split(",") if name.strip()]
    if not names:
        raise InvalidInput(f"--only {only!r} names no claim. The claims are {', '.join(NUMBERS)}")
    for name in names:
        if name not in NUMBERS:
            raise unknown_name("claim", name, NUMBERS)
    return [claim for claim in CLAIMS if claim.name in names]


def chosen_saboteur(name: str | None) -> Saboteur | None:
    """The saboteur with this name."""
    if name is not None and name not in SABOTEURS:
        raise unknown_name("saboteur", name, SABOTEURS)
    return None if name is None else SABOTEURS[name]


WIDEST = 160  # columns of the table. A pipe has more


def print_row(claim: str | Text, verdict: str | Text, measured: str | Text) -> None:
    """Print a row of the table. Rows are printed one by one, as soon as a claim is judged."""
    row = Table.grid(padding=(0, 2))
    row.width = min(console.width, WIDEST)
    row.add_column(ratio=4)
    row.add_column(width=9)
    row.add_column(ratio=6)
    row.add_row(claim, verdict, measured)
    console.print(row)


def print_result(result: ClaimResult) -> None:
    """Print the verdict on a claim."""
    print_row(title_of(result), Text(result.verdict.value, STYLES[result.verdict]), result.headline)


@app.command()
def paper(
    full: Annotated[bool, typer.Option("--full", help="More seeds and longer games for tight intervals.")] = False,
    only: Annotated[
        str | None, typer.Option(help=f"Claims by name or number, separated by commas, from {', '.join(NUMBERS)}.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Another number gives entirely different games.")] = 0,
    saboteur: Annotated[
        str | None, typer.Option(help=f"Put a wrong learner in place, to see claims fail, from {', '.join(SABOTEURS)}.")
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Number of threads. Does not change results.")] = 2,
    out: Annotated[Path, typer.Option(help="The folder of the report.")] = Path("belated-paper"),
) -> None:
    """Try every claim of the paper and write a report with figures. Exit code 1 if a theorem fails."""
    claims, effort = chosen(only), Effort(full, seed, workers, chosen_saboteur(saboteur))
    pages.prepare(out)
    print_row(Text("claim", "dim"), Text("verdict", "dim"), Text("measured", "dim"))
    results = run(claims, effort, print_result, console if console.is_terminal else None)
    page = pages.write(page_of(results, effort), out)
    broken = [title_of(result) for result in results if result.is_broken]
    if broken:
        console.print(Text(f"theorems that fail: {'; '.join(broken)}", "bold red"))
    for words in dict.fromkeys(result.claim.assumption for result in results):
        numbers = ", ".join(str(NUMBERS[result.claim.name]) for result in results if result.claim.assumption == words)
        console.print(Text(f"assumed in {numbers}: {words}", "dim"))
    console.print(Text(f"report: {page}"), soft_wrap=True)
    if broken:
        raise typer.Exit(1)
