"""Loss estimates are unbiased in thousands of games with every tuning, and draws match their probabilities."""

import pytest

from tests.learner import test_statistics as quick
from tests.learner.test_statistics import assert_unbiased
from tests.support.catalogue import TUNINGS

# With discarding and a refresh, the solves decide what is skipped. test_certificate follows that case.
CASES = [(name, refresh) for name in TUNINGS for refresh in (1, 4) if refresh == 1 or not TUNINGS[name].discard]


@pytest.mark.parametrize(("name", "refresh"), CASES)
def test_loss_estimates_are_unbiased_under_random_delays(name: str, refresh: int) -> None:
    assert_unbiased(name, refresh, runs=3000)


@pytest.mark.parametrize("k", [1000])
def test_drawn_arms_match_their_stated_probabilities(k: int) -> None:
    quick.test_drawn_arms_match_their_stated_probabilities(k)
