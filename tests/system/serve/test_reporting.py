"""How often the page warns wrongly, and how soon rightly, over many experiments that are watched all the time."""

import numpy as np
import pytest

from tests.support.reporters import LAWS, World, turned, watched

pytestmark = pytest.mark.long

RUNS, DECISIONS = 100, 3000
EQUAL = {
    **{law: World(law) for law in LAWS},
    "all report": World("exponential", (1.0, 1.0, 1.0)),
    "nearly all report": World("exponential", (0.99, 0.99, 0.99)),
    "few report": World("exponential", (0.05, 0.05, 0.05)),
    "a favourite": World("exponential", share=0.95),
    "chances go up and down": World("exponential", drift=0.8),
    "one is 10 times slower": World("exponential", slower=(1.0, 10.0, 1.0)),
    "one is 10 times slower, long tail": World("lognormal", slower=(1.0, 10.0, 1.0)),
    "one is 3 times slower, fixed": World("fixed", slower=(1.0, 3.0, 1.0)),
    "one is slower, with a wait": World("exponential", slower=(1.0, 4.0, 1.0), wait=120.0),
}


@pytest.mark.parametrize("world", EQUAL.values(), ids=EQUAL.keys())
def test_equal_options_are_hardly_ever_accused(world: World) -> None:
    """The limit promises 1 in 100. More than 3 of 100 would happen once in 50 tests with a chance of 1%."""
    accused = sum(bool(watched(world, np.random.default_rng(seed), DECISIONS).first) for seed in range(RUNS))
    assert accused <= 3


# how they report, and the decisions within which it is noticed. Without a delay all of them are old enough at once.
LOST = {
    "30% lost of all": (World("none", (1.0, 0.7, 1.0), share=1 / 3), 300),
    "30% lost of 80%": (World("none", (0.8, 0.56, 0.8), share=1 / 3), 800),
    "30% lost of 50%": (World("none", (0.5, 0.35, 0.5), share=1 / 3), 2200),
    "30% lost of 80%, and another is the favourite": (World("none", (0.8, 0.8, 0.56)), 1100),
    "30% lost of 80%, with delays": (World("exponential", (0.8, 0.56, 0.8), share=1 / 3), 1700),
    "never": (World("none", (0.8, 0.0, 0.8), share=1 / 3), 130),
    "hardly ever": (World("none", (0.8, 0.02, 0.8), share=1 / 3), 150),
}


@pytest.mark.parametrize(("world", "within"), LOST.values(), ids=LOST.keys())
def test_lost_reports_are_noticed(world: World, within: int) -> None:
    """At least 95 of 100 experiments are warned of the right option in time."""
    guilty = int(np.argmin(world.chances))
    seen = [watched(world, np.random.default_rng(seed), within, after=False) for seed in range(RUNS)]
    assert sum(guilty in one.first for one in seen) >= 95
    assert sum(bool(one.first.keys() - {guilty}) for one in seen) <= 3


def test_an_option_that_was_only_late_is_cleared() -> None:
    """Its first reports come ten times as late as those of the others. Before they come, it seems silent."""
    world = World("fixed", slower=(1.0, 10.0, 1.0))
    seen = [watched(world, np.random.default_rng(seed), 1000) for seed in range(20)]
    assert any(one.first for one in seen)
    assert not any(one.at_end for one in seen)


@pytest.mark.parametrize("is_told_later", [False, True], ids=["at once", "after all decisions"])
@pytest.mark.parametrize(("decisions", "at"), [(200_000, 2000), (300_000, 2000), (200_000, 150_000)])
@pytest.mark.parametrize("favourite", [0.98, 0.995])
def test_nobody_is_accused_if_choices_and_reports_change_together(
    favourite: float,
    decisions: int,
    at: int,
    is_told_later: bool,
) -> None:
    """Merged blocks must not mix the time before with the time after."""
    for seed in range(5):
        generator = np.random.default_rng(seed)
        reporting = turned(generator, decisions, at=at, favourite=favourite, is_told_later=is_told_later)
        assert not any(one.is_warned for one in reporting.compare(10**9, 0.0))


def test_lost_reports_are_noticed_in_merged_blocks() -> None:
    world = World("none", (0.8, 0.72, 0.8), share=1 / 3)
    for seed in range(5):
        seen = watched(world, np.random.default_rng(seed), 60_000, every=2000)
        assert seen.at_end == {1}
