"""Commands that play a sweep, are killed, and continue."""

import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from belated.lab.comparisons.results import Results
from belated.lab.games.curves import MEASURES

RESULTS = ("results.csv", "results.parquet", "regret.png", "table.tex")


def same(results: Results, others: Results) -> bool:
    """Whether two comparisons agree to the last bit, except for their running times."""
    for row, other in zip(results.rows, others.rows, strict=True):
        assert row.algorithm.name == other.algorithm.name
        np.testing.assert_array_equal(row.curves.seeds, other.curves.seeds)
        np.testing.assert_array_equal(row.curves.checkpoints, other.curves.checkpoints)
        for kind in (*MEASURES, "arms"):
            np.testing.assert_array_equal(getattr(row.curves, kind), getattr(other.curves, kind))
        np.testing.assert_equal(row[2:-1], other[2:-1])
    return True


def files(folder: Path) -> list[Path]:
    return sorted((folder / "games").iterdir())


def command(*arguments: str) -> subprocess.Popen[str]:
    code = "from belated.cli import main; main()"
    return subprocess.Popen([sys.executable, "-c", code, "compare", *arguments], stdout=subprocess.PIPE, text=True)  # noqa: S603


def finish(*arguments: str) -> str:
    process = command(*arguments)
    output = process.communicate(timeout=120)[0]
    assert process.returncode == 0
    return output


def kill_in_the_middle(arguments: list[str], out: Path, n_games: int) -> int:
    """Kill the command once some games are saved. Returns their number."""
    process = command(*arguments, "--out", str(out))
    while not (out / "games").exists() or len(files(out)) < 3:
        assert process.poll() is None
        time.sleep(0.01)
    process.kill()
    process.communicate()
    assert 3 <= len(files(out)) < n_games
    return len(files(out))


def continues(arguments: list[str], tmp_path: Path, n_games: int) -> None:
    """Check that a killed command, when run again, plays the missing games and writes the same files."""
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    finish(*arguments[:-2], "--out", str(whole))  # on threads
    before = kill_in_the_middle(arguments, broken, n_games)
    times = {path: path.stat().st_mtime_ns for path in files(broken) if path.suffix != ".partial"}
    output = finish(*arguments, "--out", str(broken))
    assert f"{len(times)} of {n_games} games were in {broken} already" in output
    assert len(times) >= before - 1  # one may be incomplete
    assert all(path.stat().st_mtime_ns == time for path, time in times.items())
    assert len([path for path in files(broken) if path.suffix != ".partial"]) == n_games
    for name in RESULTS:
        assert (whole / name).read_bytes() == (broken / name).read_bytes(), name
