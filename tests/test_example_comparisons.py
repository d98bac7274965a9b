"""The comparisons that the documents name, at a fraction of their length."""

from dataclasses import replace
from pathlib import Path

import pytest

from belated import lab
from belated.lab.comparisons import read_toml

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.toml"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_comparisons_run(path: Path) -> None:
    comparison = replace(lab.Comparison(**read_toml(path)), rounds=500, seeds=2)
    rows = lab.compare(comparison)
    assert {row.algorithm.name for row in rows} == set(comparison.algorithms)
