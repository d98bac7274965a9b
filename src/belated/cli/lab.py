"""`belated list` and `belated compare`."""

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from belated import lab
from belated.cli.application import app, console
from belated.folders import make_folder
from belated.lab.algorithms import ALGORITHMS
from belated.lab.comparisons import dask_games
from belated.lab.comparisons.comparison import Comparison, read_toml
from belated.lab.comparisons.results import Results
from belated.lab.problems.parsing import AROUND, DELAYS, LOSSES, settings_of


@app.command("list")
def list_() -> None:
    """Show the algorithms, losses and delays that can be compared, a line each."""
    lines = ["[bold]algorithms[/bold] (source, what it needs in advance, mark)"]
    for algorithm in ALGORITHMS:
        about = f"{algorithm.citation}, needs {algorithm.needs}, {algorithm.mark}"
        lines.append(f"  [cyan]{algorithm.name:17}[/cyan] {algorithm.summary} ({about})")
    for title, known in (("losses", LOSSES), ("delays", {**DELAYS, **AROUND})):
        lines.append(f"\n[bold]{title}[/bold]")
        lines.extend(_line(name, rule) for name, rule in known.items())
    lines.append("\nA file (.csv, .parquet, .npy) works for both. RULE stands for any delays.")
    console.print("\n".join(lines), soft_wrap=True, highlight=False)


def _line(name: str, rule: type) -> str:
    """A rule's name with its settings, and its first sentence."""
    fields = settings_of(rule).values()
    settings = ",".join(f"{field.name}={field.default}" for field in fields if field.default is not None)
    summary = (rule.__doc__ or "").splitlines()[0]
    optional = ", ".join(field.name for field in fields if field.default is None)
    summary += f" May be set: {optional}." if optional else ""
    called = ":".join(filter(None, (name, settings, "RULE" if name in AROUND else "")))
    return f"  [cyan]{called:34}[/cyan] {summary}"


def tell(message: str) -> None:
    """Print a line about the games."""
    console.print(message, soft_wrap=True, highlight=False, markup=False)


def play(comparison: Comparison, workers: int, dask: str | None, out: Path | None) -> Results:
    """Play a comparison here or on Dask."""
    with nullcontext() if dask is None else dask_games.connect(dask, workers) as client:
        if out is not None:
            make_folder(out)
        try:
            return lab.compare(comparison, workers=workers, client=client, folder=out, tell=tell)
        except KeyboardInterrupt:
            if out is not None:
                tell(f"Interrupted. Finished games are in {out}. Run the same command again to play the rest.")
            raise


def show(results: Results) -> None:
    """Print the ranked table."""
    table = Table(title=results.title)
    table.add_column("algorithm", no_wrap=True)
    for heading in ("regret", "+-", "bound", "/ lower", "rounds/s"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("needs in advance")
    for line in results.summary():
        table.add_row(*line)
    console.print(table)


@app.command()
def compare(
    config: Annotated[
        Path | None,
        typer.Argument(
            help="A TOML file with algorithms, losses, delays, arms, rounds or seeds. Flags take precedence."
        ),
    ] = None,
    algorithms: Annotated[str | None, typer.Option(help="Names separated by commas. The default is all.")] = None,
    losses: Annotated[
        str | None, typer.Option(help=f"A rule, such as bernoulli:gap=0.2, or a file. [{Comparison.losses}]")
    ] = None,
    delays: Annotated[
        str | None, typer.Option(help=f"A rule, such as geometric:mean=50, or a file. [{Comparison.delays}]")
    ] = None,
    arms: Annotated[int | None, typer.Option(help=f"Number of arms. [{Comparison.arms}]")] = None,
    rounds: Annotated[int | None, typer.Option(help=f"Number of rounds. [{Comparison.rounds}]")] = None,
    seeds: Annotated[int | None, typer.Option(help=f"Games for each algorithm. [{Comparison.seeds}]")] = None,
    workers: Annotated[int, typer.Option(help="Threads, or processes with --dask local.")] = 2,
    dask: Annotated[
        str | None,
        typer.Option(help="Play on Dask. Give the address of its scheduler, such as tcp://10.0.0.1:8786, or local."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="A folder for results.csv, results.parquet and regret.png. Every game is kept there as it ends, "
            "and the same command again plays only the missing ones."
        ),
    ] = None,
) -> None:
    """Compare algorithms on one problem. Prints a ranked table and can write results and a figure."""
    settings = read_toml(config) if config else {}
    flags = {"losses": losses, "delays": delays, "arms": arms, "rounds": rounds, "seeds": seeds}
    settings |= {name: value for name, value in flags.items() if value is not None}
    if algorithms is not None:
        settings["algorithms"] = tuple(name.strip() for name in algorithms.split(",") if name.strip())
    comparison = Comparison(**settings)
    results = play(comparison, workers, dask, out)
    show(results)
    if not results.is_whole:
        hint = "" if out is None else " Run the same command again to play the rest."
        tell(f"Interrupted. Only the algorithms that finished all seeds are shown.{hint}")
    if out is not None:
        results.write(out)
        tell(f"results.csv, results.parquet and regret.png are in {out}")
