"""Every algorithm of the lab stays below its published bound."""

from typing import Any

import pytest

from belated.lab.algorithms import ALGORITHMS
from tests.lab.test_comparisons import QUICK, assert_regret_below_the_bound


@pytest.mark.parametrize("algorithm", [a for a in ALGORITHMS if a.name not in QUICK], ids=lambda a: a.name)
@pytest.mark.parametrize(("losses", "delays"), [("bernoulli:gap=0.5", "none"), ("wave", "fixed:d=3")])
def test_measured_regret_stays_below_the_published_bound(algorithm: Any, losses: str, delays: str) -> None:
    assert_regret_below_the_bound(algorithm, losses, delays)
