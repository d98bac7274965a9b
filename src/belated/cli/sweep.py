"""`belated sweep`."""

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from belated import lab
from belated.cli.application import app, console
from belated.cli.lab import INTERRUPTED, tell, without_warnings
from belated.cli.tables import print_cells
from belated.folders import make_folder
from belated.lab.comparisons import dask_games
from belated.lab.comparisons.grid import as_grid
from belated.lab.comparisons.sweep_results import FILES, HEADINGS
from belated.lab.comparisons.tables import meaning_of_star
from belated.progress import while_busy
from belated.reports import Table as Cells

TEXTS = ("losses", "delays", "algorithm")


def show(lines: Sequence[tuple[str, ...]]) -> None:
    """Print the table. Its lines have numbers, because a table below repeats only these."""
    header = ("#", *HEADINGS)
    rows = [(str(number), *line) for number, line in enumerate(lines, 1)]
    print_cells(Cells("", header, rows), console, texts=[header.index(name) for name in TEXTS])


@app.command()
def sweep(
    grid: Annotated[
        Path,
        typer.Argument(
            help="A TOML file with the settings of a comparison. Every list is tried, also that of a parameter."
        ),
    ],
    workers: Annotated[int, typer.Option(help="Threads, or processes with --dask local.")] = 2,
    dask: Annotated[
        str | None,
        typer.Option(help="Play on Dask. Give the address of its scheduler, such as tcp://10.0.0.1:8786, or local."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="A folder for sweep.csv and sweep.parquet. Every game is kept there as it ends, and the same command "
            "again plays only the missing ones."
        ),
    ] = None,
) -> None:
    """Compare algorithms on a grid of problems. Prints a table and can write one with every number."""
    points = as_grid(grid).points()  # refuses a wrong grid before any work
    games = sum(len(point.comparison.players) for point in points)
    tell(f"{len(points)} problem{'s' if len(points) > 1 else ''}, {games:,} lines of the table")
    with nullcontext() if dask is None else dask_games.connect(dask, workers) as client, without_warnings():
        if out is not None:
            make_folder(out)
        swept = lab.sweep(grid, workers=workers, client=client, folder=out, tell=tell)
    show(swept.summary())
    for warning in dict.fromkeys(warning for results in swept.results for warning in results.warnings):
        tell(f"! {warning}")
    if star := meaning_of_star([row for results in swept.results for row in results.rows]):
        tell(star)
    if not swept.is_whole:
        hint = "" if out is None else " Run the same command again to play the rest."
        tell(f"Interrupted. Only what finished all seeds is shown.{hint}")
    if out is not None:
        with while_busy("writing the results"):
            swept.write(out)
        tell(f"{' and '.join(FILES)} are in {out}")
    if not swept.is_whole:
        raise typer.Exit(INTERRUPTED)
