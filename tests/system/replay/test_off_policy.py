"""Off-policy estimates of learning policies. tests/replay has the policies that do not learn."""

import pytest

from belated.tunings import Shadow, Simple, Tsallis, Tuning
from tests.support.off_policy import assert_unbiased_and_covered


@pytest.mark.parametrize("is_skewed", [False, True])
@pytest.mark.parametrize("policy", [Shadow(), Simple(), Tsallis()], ids=str)
def test_estimates_are_unbiased_and_their_intervals_cover(policy: Tuning, is_skewed: bool) -> None:
    assert_unbiased_and_covered(policy, is_skewed=is_skewed)
