"""Off-policy estimates of learning policies. tests/replay has the policies that do not learn."""

import pytest

from belated.tunings import AdaptiveExp3, Means, Shadow, Simple, Tsallis, Tuning
from tests.replay import test_off_policy as quick
from tests.support.off_policy import assert_unbiased_and_covered


@pytest.mark.parametrize("is_skewed", [False, True])
@pytest.mark.parametrize("policy", [Means(), Shadow(), Simple(), Tsallis()], ids=str)
def test_estimates_are_unbiased_and_their_intervals_cover(policy: Tuning, is_skewed: bool) -> None:
    assert_unbiased_and_covered(policy, is_skewed=is_skewed)


@pytest.mark.parametrize("tuning", [Simple(), Tsallis(), AdaptiveExp3()], ids=str)
def test_a_learner_knows_only_what_had_come_weighted_by_the_logged_probabilities(tuning: Tuning) -> None:
    quick.test_a_learner_knows_only_what_had_come_weighted_by_the_logged_probabilities(tuning)
