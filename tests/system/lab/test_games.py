"""Compiled and interpreted games, with the delays that the quick check leaves out."""

import pytest

from tests.lab import test_games as quick
from tests.support.catalogue import TUNINGS


@pytest.mark.parametrize("name", TUNINGS)
@pytest.mark.parametrize("delays", ["none", "pareto", "lost", "unbalanced"])
def test_compiled_and_interpreted_agree_bit_for_bit(name: str, delays: str) -> None:
    quick.test_compiled_and_interpreted_agree_bit_for_bit(name, delays)
