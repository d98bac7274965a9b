"""A log to replay, and the command that does it."""

import csv
import random
from pathlib import Path

from typer.testing import CliRunner

from belated import cli

runner = CliRunner()
RATES, CHOSEN = {"a": 0.2, "<b>": 0.6}, {"a": 0.75, "<b>": 0.25}


def write_log(path: Path, rows: int = 3000, *, has_probability: bool = True) -> Path:
    draw = random.Random(3)  # noqa: S311
    names = ["time", "arm", "outcome", "outcome_time", *(["probability"] if has_probability else [])]
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        for second in range(rows):
            arm = draw.choices(list(CHOSEN), list(CHOSEN.values()))[0]
            known = [int(draw.random() < RATES[arm]), second + draw.expovariate(0.1)]
            row = [second, arm, *(known if draw.random() > 0.1 else ["", ""]), CHOSEN[arm]]
            writer.writerow(row[: len(names)])
    return path


def run(*arguments: str) -> str:
    result = runner.invoke(cli.app, ["replay", *arguments], catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout
