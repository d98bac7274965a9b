"""The verdicts can fail. Each test breaks a theorem's code in a copy, and the claim must notice."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

pytestmark = pytest.mark.long

SOURCE = Path(__file__).parents[3] / "src" / "belated"


class Break(NamedTuple):
    """Lines of a file replaced by wrong ones, and the claims that must fail, or the error of the lab."""

    file: str
    lines: dict[str, str]
    claims: tuple[str, ...]
    refusal: str = ""


BREAKS = {
    "the latest probability in the weight": Break(
        "kernels/game.py",
        {
            "estimates[t] = losses[i, arm] / policy[X, arm]": "estimates[t] = losses[i, arm]",
            "policy[LOSSES, arms[s]] += estimates[s]": "policy[LOSSES, arms[s]] += estimates[s] / policy[X, arms[s]]",
        },
        ("theorem-1", "theorem-2", "theorem-3", "proof-terms"),
    ),
    "a rate that hardly heeds delays, simple": Break(
        "tunings.py",
        {"self.scale * sqrt(2 * backlog / math.log(n_arms))": "0.03 * sqrt(2 * backlog / math.log(n_arms))"},
        ("theorem-1",),
    ),
    "a rate that hardly heeds delays, advanced": Break(
        "tunings.py",
        {"sqrt(round), self.scale * sqrt(backlog / math.log": "sqrt(round), 0.03 * sqrt(backlog / math.log"},
        ("theorem-2",),
    ),
    "a distribution for another rate": Break(
        "kernels/game.py",
        {"argmin(policy, alpha[t], beta[t], t)": "argmin(policy, 0.1 * alpha[t], 0.1 * beta[t], t)"},
        ("proof-terms",),
    ),
    "a skipped count too many": Break(
        "kernels/clock.py",
        {"                counted -= 1\n": "                counted = max(0, counted - 2)\n"},
        ("theorem-2",),
        "that never decrease",  # the rates fall, so the lab does not play them
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


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One copy for all breaks, so that unchanged kernels are compiled once."""
    folder = tmp_path_factory.mktemp("broken")
    return Path(shutil.copytree(SOURCE, folder / "belated", ignore=shutil.ignore_patterns("__pycache__")))


@contextmanager
def broken_source(path: Path, lines: dict[str, str]) -> Iterator[None]:
    """Replace lines of a file meanwhile. Restores its modification time too, because Numba's cache checks it."""
    before, times = path.read_text(), (path.stat().st_atime_ns, path.stat().st_mtime_ns)
    text = before
    for right, wrong in lines.items():
        assert right in text, right
        text = text.replace(right, wrong)
    path.write_text(text)
    try:
        yield
    finally:
        path.write_text(before)
        os.utime(path, ns=times)


@pytest.mark.parametrize("name", BREAKS)
def test_a_broken_theorem_is_noticed(name: str, copy: Path, tmp_path: Path) -> None:
    broken = BREAKS[name]
    code = "from belated.cli import main; main()"
    options = ["--only", ",".join(broken.claims), "--out", str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(copy.parent), "NUMBA_CACHE_DIR": str(copy.parent / "cache")}
    with broken_source(copy / broken.file, broken.lines):
        finished = subprocess.run(  # noqa: S603
            [sys.executable, "-B", "-c", code, "paper", *options],
            capture_output=True,
            text=True,
            check=False,
            env=environment,
        )
    if broken.refusal:
        assert finished.returncode == 2
        assert broken.refusal in finished.stderr
        return
    results = json.loads((tmp_path / "results.json").read_text())["results"]
    assert {result["claim"]: result["verdict"] for result in results} == dict.fromkeys(broken.claims, "fails")
    assert finished.returncode == 1
    assert "theorems that fail" in finished.stdout
