"""`belated plan`."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from belated import cli, lab, progress
from belated.cli.plan import seconds
from belated.errors import InvalidInput
from belated.lab.plans import page
from belated.lab.plans.results import RUNNING


def test_durations_have_units() -> None:
    found = [seconds("--delay", text) for text in ("2d", "6h", "30m", "1.5 s", "0")]
    assert found == [172_800, 21_600, 1800, 1.5, 0]
    for wrong in ("7", "-2d", "2 weeks", "d"):
        with pytest.raises(InvalidInput, match=f"--wait must be a duration such as 2d, 6h, 30m or 45s, got '{wrong}'"):
            seconds("--wait", wrong)


WORDS = ["plan", "--base-rate", "0.3", "--difference", "0.4", "--per-day", "100", "--most", "500", "--games", "4"]


def invoke(*options: str) -> str:
    result = CliRunner().invoke(
        cli.app, [*WORDS, "--workers", "1", *options], catch_exceptions=False, env={"COLUMNS": "80"}
    )
    assert result.exit_code == 0, result.output
    return result.stdout


def test_progress_is_told_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    invoke("--json")  # loads the kernels, which would be told of too
    monkeypatch.setattr(progress, "SHOW_AFTER", 0.0)
    monkeypatch.setattr(progress, "LINE_EVERY", 0.0)
    monkeypatch.setattr(progress.Progress, "in_lines", False)
    monkeypatch.setattr(progress.Progress, "tell", staticmethod(progress.to_stderr))
    result = CliRunner().invoke(cli.app, [*WORDS, "--workers", "1", "--json"], catch_exceptions=False)
    told = result.stderr.splitlines()
    lines = [line for line in told if not line.startswith("compiling the kernels")]  # if this test runs alone
    assert [line.split(" after ")[0] for line in lines] == [
        f"planned experiments: {done} of {len(lines)}" for done in range(1, len(lines) + 1)
    ]
    assert len(lines) >= 4
    json.loads(result.stdout)


def test_the_command_prints_the_answer_and_a_table_and_writes_a_report(tmp_path: Path) -> None:
    said = invoke("--delay", "1h", "--out", str(tmp_path / "out"))
    results = lab.plan(lab.PlanSettings(2, 0.3, 0.4, 100, delay=3600, most=500, games=4))
    assert said.startswith(results.sentences()[0])
    assert "2 options, 0.3 or 0.7, 100 decisions a day, 4 games" in said
    for label, *_ in page.table(results).rows:
        assert label in said
    assert "after every 2% more decisions" in " ".join(said.split())
    assert said.rstrip().endswith("report.html")
    written = json.loads((tmp_path / "out" / "results.json").read_text())
    assert written["results"]["rows"] == results.as_data()["rows"]
    assert (tmp_path / "out" / "figures" / "plan.png").stat().st_size > 10_000
    numbers = (tmp_path / "out" / "numbers" / "plan.csv").read_text().splitlines()
    assert numbers[0] == "who,decisions,days,experiments decided"


def test_the_command_prints_json() -> None:
    data = json.loads(invoke("--json", "--tuning", "uniform"))
    [row] = data["rows"]
    assert (row["player"], row["way"], row["right"]) == ("uniform", RUNNING, 1.0)
    assert row["days"]["50%"] == row["decisions"]["50%"] / 100
    assert data["settings"]["per_day"] == 100


def test_what_is_not_reached_is_said() -> None:
    said = invoke("--options", "5", "--most", "20")
    assert "> 20" in said
    assert "none of the experiments are decided within 20 decisions" in said
    data = json.loads(invoke("--options", "5", "--most", "20", "--json"))
    assert data["rows"][0]["decisions"]["50%"] is None


def test_the_command_refuses_a_wrong_value() -> None:
    with pytest.raises(InvalidInput, match="difference must be above 0"):
        invoke("--difference", "0")
    with pytest.raises(InvalidInput, match="--delay must be a duration"):
        invoke("--delay", "soon")
