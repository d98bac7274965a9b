"""Without delay FTRL is Tsallis-INF, also with many arms."""

import pytest

from belated.tunings import Advanced, Simple, Tsallis
from tests.learner.test_ftrl import assert_it_is_tsallis_inf

TUNINGS = [Advanced(), Simple(), Tsallis()]
CASES = [(k, tuning) for k in (2, 5, 100) for tuning in TUNINGS if (k, tuning) != (2, Advanced())]


@pytest.mark.parametrize(("k", "tuning"), CASES)
def test_without_delay_it_is_tsallis_inf(k: int, tuning: Simple) -> None:
    assert_it_is_tsallis_inf(k, tuning)
