"""The measured certificate stays above the regret on every problem of the lab."""

from itertools import product

import pytest

from tests.lab.test_problems import DELAYS, LOSSES
from tests.learner.test_shadow import QUICK, assert_measured_above_regret


@pytest.mark.parametrize(("delays", "losses"), [case for case in product(DELAYS, LOSSES) if case not in QUICK])
def test_the_mean_of_the_measured_certificate_is_at_least_the_mean_regret(losses: str, delays: str) -> None:
    assert_measured_above_regret(losses, delays)
