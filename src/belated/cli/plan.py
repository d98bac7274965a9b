"""`belated plan` says how many decisions an experiment needs."""

import json
import math
import re
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.text import Text

from belated import lab
from belated.cli.application import app, console
from belated.cli.lab import tell
from belated.cli.tables import print_cells
from belated.errors import InvalidInput
from belated.lab.plans import page
from belated.lab.plans.settings import TUNINGS
from belated.progress import Progress
from belated.reports import pages

UNITS: Final = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}


def seconds(name: str, text: str) -> float:
    """A duration such as 2d, 6h, 30m or 45s in seconds. 0 needs no unit."""
    found = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+)\s*([smhd]?)", text.strip().lower())
    amount = float(found[1]) if found else math.nan
    if not found or (amount and not found[2]):
        raise InvalidInput(f"{name} must be a duration such as 2d, 6h, 30m or 45s, got {text!r}")
    return amount * UNITS[found[2] or "s"]


@app.command()
def plan(
    base_rate: Annotated[float, typer.Option(help="How often the ordinary options succeed, such as 0.10.")],
    difference: Annotated[
        float, typer.Option(help="How much more often the best one succeeds, such as 0.02. The least worth finding.")
    ],
    per_day: Annotated[float, typer.Option(help="Decisions a day.")],
    options: Annotated[int, typer.Option(help="How many options there are.")] = 2,
    delay: Annotated[str, typer.Option(help="When a success is known, such as 2d, 6h or 30m.")] = "0",
    wait: Annotated[
        str | None,
        typer.Option(help="When a failure is known, such as 7d. Default is the delay.", show_default=False),
    ] = None,
    confidence: Annotated[float, typer.Option(help="How sure the verdict must be.")] = lab.PlanSettings.confidence,
    most: Annotated[int, typer.Option(help="Give up after so many decisions.")] = lab.PlanSettings.most,
    games: Annotated[int, typer.Option(help="Simulated experiments for each tuning.")] = lab.PlanSettings.games,
    seed: Annotated[int, typer.Option(help="Another number gives different games.")] = lab.PlanSettings.seed,
    tuning: Annotated[
        str, typer.Option(help=f"Who decides, from {', '.join(TUNINGS)}. uniform always plays along.")
    ] = lab.PlanSettings.tuning,
    workers: Annotated[int, typer.Option(help="Number of processes. Does not change results.")] = 2,
    out: Annotated[Path | None, typer.Option(help="A folder for a report with the figure.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON in place of the table.")] = False,
) -> None:
    """Say how many decisions an experiment needs until it is decided, and what it costs, by simulation."""
    settings = lab.PlanSettings(
        options=options,
        base_rate=base_rate,
        difference=difference,
        per_day=per_day,
        delay=seconds("--delay", delay),
        wait=None if wait is None else seconds("--wait", wait),
        confidence=confidence,
        most=most,
        games=games,
        seed=seed,
        tuning=tuning,
    )
    if out is not None:
        pages.prepare(out)
    Progress.in_lines = True  # it may take minutes
    results = lab.plan(settings, workers=workers)
    if as_json:
        typer.echo(json.dumps(results.as_data(), indent=1, allow_nan=False))
    else:
        for sentence in results.sentences():
            tell(sentence)
        print_cells(page.table(results), console)
        tell(page.FOUND_LATE)
    if out is not None:
        written = pages.write(page.page(results), out)
        if not as_json:
            console.print(Text(f"report: {written}"), soft_wrap=True)
