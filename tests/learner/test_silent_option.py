"""One of three options fails silently. The best of those that report ends in front (benchmarks/silent_option.py)."""

import pytest

from benchmarks.silent_option import DELAYS, FAILS, RATES, WAYS, Game


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("fails", FAILS)
def test_the_best_option_that_reports_ends_in_front(fails: str, way: str) -> None:
    for seed, delays in enumerate(DELAYS):
        for rates in RATES[1:3]:
            game = Game(rates, fails, way, delays, seed)
            assert game.in_front() == game.best(), game


def test_rounds_may_be_given_up() -> None:
    game = Game(RATES[1], "the best", "silent from the start", "fixed", 0)
    assert game.in_front_given_up() == game.best()
