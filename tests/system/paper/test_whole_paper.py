"""`belated paper` from the command line, with real claims."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from belated import cli, paper
from belated.paper import ClaimKind

pytestmark = pytest.mark.long

runner = CliRunner()


def test_the_page_is_utf_8_in_any_locale(tmp_path: Path) -> None:
    code = "from belated.cli import main; main()"
    command = [sys.executable, "-c", code, "paper", "--only", "zero-delays", "--out", str(tmp_path)]
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    subprocess.run(command, check=True, capture_output=True, env=environment)  # noqa: S603
    assert "β" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_some_claims_only_in_the_order_of_the_paper_and_with_another_seed(tmp_path: Path) -> None:
    options = ["--only", "Zero-Delays, 1", "--seed", "5", "--out", str(tmp_path)]
    result = runner.invoke(cli.app, ["paper", *options], catch_exceptions=False)
    assert result.exit_code == 0
    assert re.findall(r"^(\d+)\. ", result.stdout, re.MULTILINE) == ["1", "8"]
    assert json.loads((tmp_path / "results.json").read_text())["seed"] == 5


def test_the_whole_paper_holds_within_two_minutes(tmp_path: Path) -> None:
    started = time.process_time()  # CPU time, because other tests run too. `make bench` measures the elapsed time.
    result = runner.invoke(cli.app, ["paper", "--out", str(tmp_path)], catch_exceptions=False)
    seconds = time.process_time() - started
    assert result.exit_code == 0
    verdicts = {row["claim"]: row["verdict"] for row in json.loads((tmp_path / "results.json").read_text())["results"]}
    experiments = {claim.name for claim in paper.CLAIMS if claim.kind is ClaimKind.EXPERIMENT}
    assert verdicts == {claim.name: "shown" if claim.name in experiments else "holds" for claim in paper.CLAIMS}
    assert result.stdout.rstrip().endswith(f"report: {tmp_path / 'report.html'}".replace("\n", ""))
    html = (tmp_path / "report.html").read_text()
    for claim_ in paper.CLAIMS:
        assert f'<section id="{claim_.name}">' in html
    pictures = {path.stem for path in (tmp_path / "figures").iterdir()}
    assert pictures == {path.stem for path in (tmp_path / "numbers").iterdir()}
    assert seconds < 120
