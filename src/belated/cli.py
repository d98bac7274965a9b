"""The command line: `belated compare`, `belated list`."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from belated.errors import BelatedError, InvalidInput
from belated.lab import comparisons, figures
from belated.lab.algorithms import ALGORITHMS
from belated.lab.comparisons import Comparison
from belated.lab.named import DELAYS, LOSSES

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)
console = Console()


@app.callback()
def belated() -> None:
    """Choose between options when the feedback comes late, out of order, or never."""


@app.command("list")
def list_() -> None:
    """Show the algorithms, losses and delays that can be compared, a line each."""
    table = Table("algorithm", "what it is", "from", "needs in advance", "mark", box=None, pad_edge=False)
    for algorithm in ALGORITHMS:
        table.add_row(algorithm.name, algorithm.summary, algorithm.citation, algorithm.needs, algorithm.mark)
    console.print(table)
    for title, known in (("losses", LOSSES), ("delays", DELAYS)):
        table = Table(title, "what they are", box=None, pad_edge=False)
        for name, rule in known.items():
            table.add_row(name, (rule.__doc__ or "").splitlines()[0])
        console.print()
        console.print(table)
    console.print("\nAlso a file (.csv, .parquet, .npy) for either, and permuted:RULE for delays.")


@app.command()
def compare(
    config: Annotated[Path | None, typer.Argument(help="A TOML file with any of the settings below.")] = None,
    algorithms: Annotated[str | None, typer.Option(help="Names separated by commas; all if not given.")] = None,
    losses: Annotated[str | None, typer.Option(help="A rule, such as bernoulli:gap=0.2, or a file.")] = None,
    delays: Annotated[str | None, typer.Option(help="A rule, such as geometric:mean=50, or a file.")] = None,
    arms: Annotated[int | None, typer.Option(help="Number of arms.")] = None,
    rounds: Annotated[int | None, typer.Option(help="Number of rounds.")] = None,
    seeds: Annotated[int | None, typer.Option(help="Games for each algorithm.")] = None,
    workers: Annotated[int, typer.Option(help="Threads.")] = 2,
    out: Annotated[Path | None, typer.Option(help="A folder for results.csv, results.parquet and regret.png.")] = None,
) -> None:
    """Compare algorithms on one problem: a ranked table, tidy results and a figure."""
    settings = comparisons.read_toml(config) if config else {}
    flags = {"losses": losses, "delays": delays, "arms": arms, "rounds": rounds, "seeds": seeds}
    settings |= {name: value for name, value in flags.items() if value is not None}
    if algorithms is not None:
        settings["algorithms"] = tuple(filter(None, algorithms.split(",")))
    comparison = Comparison(**settings)
    if out is not None and out.exists() and not out.is_dir():
        raise InvalidInput(f"--out must be a folder, and {out} is a file")
    rows = comparisons.compare(comparison, workers=workers)
    title = (
        f"{comparison.losses} losses, {comparison.delays} delays, k = {comparison.arms}, n = {comparison.rounds:,}, "
        f"{comparison.seeds} seeds"
    )
    table = Table("algorithm", "regret", "+-", "bound", "/ lower", "rounds/s", "needs in advance", title=title)
    for line in comparisons.summary(rows):
        table.add_row(*line)
    console.print(table)
    if len(rows) < len(comparison.algorithms):
        console.print("interrupted: only the algorithms that had finished all seeds are shown")
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        results = comparisons.tidy(rows)
        results.write_csv(out / "results.csv")
        results.write_parquet(out / "results.parquet")
        figures.regret_figure(rows, title, out / "regret.png")
        console.print(f"results.csv, results.parquet and regret.png are in {out}")


def main() -> None:
    """Run the command line; an error is one line, without a traceback."""
    try:
        app()
    except BelatedError as error:
        Console(stderr=True).print(f"[red]error:[/red] {error}", highlight=False)
        sys.exit(2)
