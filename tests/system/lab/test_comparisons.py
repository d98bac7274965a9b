"""Every algorithm of the lab stays below its published bound, and Python writes what the command writes."""

from pathlib import Path
from typing import Any

import pytest

from belated import lab
from belated.lab.algorithms import ALGORITHMS
from tests.lab.test_comparisons import QUICK, assert_regret_below_the_bound, invoke


@pytest.mark.parametrize("algorithm", [a for a in ALGORITHMS if a.name not in QUICK], ids=lambda a: a.name)
@pytest.mark.parametrize(("losses", "delays"), [("bernoulli:gap=0.5", "none"), ("wave", "fixed:d=3")])
def test_measured_regret_stays_below_the_published_bound(algorithm: Any, losses: str, delays: str) -> None:
    assert_regret_below_the_bound(algorithm, losses, delays)


def test_python_gives_with_one_call_what_the_command_writes(tmp_path: Path) -> None:
    config = tmp_path / "small.toml"
    config.write_text('algorithms = ["zs20-simple", "uniform"]\nlosses = "wave"\nrounds = 200\nseeds = 2\n')
    invoke("compare", str(config), "--out", str(tmp_path / "command"))
    results = lab.compare(config)
    results.write(tmp_path / "python")
    results.figure(tmp_path / "regret.svg")
    for name in ("results.csv", "results.parquet", "regret.png", "table.tex"):
        assert (tmp_path / "command" / name).read_bytes() == (tmp_path / "python" / name).read_bytes(), name
    assert "<svg" in (tmp_path / "regret.svg").read_text()
    assert results.is_whole
