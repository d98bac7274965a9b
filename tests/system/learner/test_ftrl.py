"""Without delay FTRL is Tsallis-INF, also with many arms."""

import pytest

from belated.tunings import Advanced, Simple, Tsallis
from tests.learner.test_ftrl import assert_it_is_tsallis_inf


@pytest.mark.parametrize("tuning", [Advanced(), Simple(), Tsallis()])
@pytest.mark.parametrize("k", [5, 100])
def test_without_delay_it_is_tsallis_inf(k: int, tuning: Simple) -> None:
    assert_it_is_tsallis_inf(k, tuning)
