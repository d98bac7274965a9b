"""What `belated compare` and `belated sweep` do after Ctrl-C."""

from pathlib import Path
from typing import Any

import polars
import pytest
from typer.testing import CliRunner

from belated import cli, lab
from belated.lab.comparisons import sweep


@pytest.mark.parametrize("command", ["compare", "sweep"])
def test_an_interrupted_command_shows_and_writes_what_is_finished_and_fails(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The status is that of a program that Ctrl-C ends, and no warning adds to the message."""
    play, seeds = sweep.play_whole, list[int]()

    def interrupted(algorithm: lab.Algorithm, problem: lab.Problem, seed: int, *watch: Any) -> Any:
        if algorithm.name == "uniform":
            raise KeyboardInterrupt
        seeds.append(seed)
        return play(algorithm, problem, seed, *watch)

    monkeypatch.setattr(sweep, "play_whole", interrupted)
    (tmp_path / "small.toml").write_text('algorithms = ["tsallis-inf", "uniform"]\narms = 3\nrounds = 50\nseeds = 2\n')
    arguments = [command, str(tmp_path / "small.toml"), "--workers", "1", "--out", str(tmp_path / "out")]
    result = CliRunner().invoke(cli.app, arguments, catch_exceptions=False, env={"COLUMNS": "200"})
    assert result.exit_code == 130
    assert "Interrupted. Only" in result.output
    assert seeds == [0, 1]
    [table] = (tmp_path / "out").glob("*.csv")
    assert set(polars.read_csv(table)["algorithm"]) == {"tsallis-inf"}
