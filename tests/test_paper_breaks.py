"""The verdicts can turn red: each theorem's code is broken on purpose, in a copy, and the claim must notice."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "belated"


class Break(NamedTuple):
    """Lines of a file replaced by wrong ones, and the claims that must fail."""

    file: str
    lines: dict[str, str]
    claims: tuple[str, ...]


BREAKS = {
    "the latest probability in the weight": Break(
        "kernels/game.py",
        {
            "estimates[t] = losses[i, arm] / policy[X, arm]": "estimates[t] = losses[i, arm]",
            "policy[LOSSES, arms[s]] += estimates[s]": "policy[LOSSES, arms[s]] += estimates[s] / policy[X, arms[s]]",
        },
        ("theorem-1", "theorem-2", "theorem-3", "proof-terms"),
    ),
    "a skipped count too many": Break(
        "kernels/clock.py",
        {"                counted -= 1\n": "                counted = max(0, counted - 2)\n"},
        ("theorem-2",),
    ),
    "skipping at half the waiting time": Break(
        "kernels/clock.py",
        {"if t - oldest > patience * math.sqrt(so_far):": "if 2 * (t - oldest) > patience * math.sqrt(so_far):"},
        ("theorem-2",),
    ),
    "an arrival counted as outstanding": Break(
        "tunings.py",
        {"np.minimum(np.arange(n) + delays, n) + 1, -1)": "np.minimum(np.arange(n) + delays + 1, n) + 1, -1)"},
        ("the-game",),
    ),
    "a rate that knows the horizon": Break(
        "tunings.py",
        {"    alpha, beta = _all_rates(": "    backlog = backlog + backlog[-1]\n    alpha, beta = _all_rates("},
        ("the-game",),
    ),
    "a learner that weights with what it draws with now": Break(
        "kernels/clock.py",
        {"+= loss / row.probability": "+= loss / policies[i, X, row.arm]", "import LOSSES": "import LOSSES, X"},
        ("the-game",),
    ),
    "a bound that is too small": Break(
        "bounds.py",
        {"return float(4 * math.sqrt(n_arms * waits.size) + rates[-1]": "return float(0.1 * rates[-1]"},
        ("theorem-3",),
    ),
    "entropy where nothing is late": Break(
        "tunings.py",
        {"self.scale * sqrt(backlog / math.log(n_arms))": "self.scale * sqrt((backlog + 0.01) / math.log(n_arms))"},
        ("zero-delays",),
    ),
}


@pytest.mark.parametrize("name", BREAKS)
def test_a_broken_theorem_is_noticed(name: str, tmp_path: Path) -> None:
    broken = BREAKS[name]
    copy = shutil.copytree(SOURCE, tmp_path / "belated", ignore=shutil.ignore_patterns("__pycache__"))
    text = (copy / broken.file).read_text()
    for right, wrong in broken.lines.items():
        assert right in text, right
        text = text.replace(right, wrong)
    (copy / broken.file).write_text(text)
    code = "import belated.cli, sys; sys.exit(belated.cli.main())"
    only = ",".join(broken.claims)
    command = [sys.executable, "-c", code, "paper", "--only", only, "--out", str(tmp_path / "out")]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    finished = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)  # noqa: S603
    results = json.loads((tmp_path / "out" / "results.json").read_text())["results"]
    assert {result["claim"]: result["verdict"] for result in results} == dict.fromkeys(broken.claims, "fails")
    assert finished.returncode == 1
    assert "theorems that fail" in finished.stdout
