"""All draws of tiny games: the evidence is at most 1 on average, whenever one stops, for delays of the worst kind."""

import copy
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest

from belated.verdicts import Evidence
from belated.verdicts.mixture import RATES, log_evidence
from belated.verdicts.verdict import against_all, tabulate
from tests.support.evidence import Everything, log_mixture

Delays = tuple[tuple[int, int], tuple[int, int]]  # by arm and outcome
DELAYS: dict[str, Delays] = {
    "none": ((0, 0), (0, 0)),
    "failures late": ((0, 2), (0, 2)),
    "one arm late": ((0, 0), (2, 2)),
    "good ones of arm 0 and bad ones of arm 1 late": ((3, 0), (0, 3)),
    "good ones never": ((99, 0), (99, 0)),
}
Means = list[tuple[float, float]]  # by time and arm
STILL: Means = [(0.5, 0.5)] * 4
WORLDS: dict[str, Means] = {"still": STILL, "rare": [(0.1, 0.1)] * 4, "moving": [(0.9, 0.9), (0.2, 0.2)] * 2}


class Due(NamedTuple):
    """A report that comes after this many decisions."""

    when: int
    position: int
    outcome: int


class World(NamedTuple):
    """What happens, and what is looked at: a function of the game and of the true means."""

    means: Means
    delays: Delays
    look: Callable[[Everything, Means], float]


def value(world: World, game: Everything, waiting: tuple[Due, ...] = (), scores: tuple[float, ...] = (0, 0)) -> float:
    """The expected look at the best moment to stop. The learner follows the reports that it has, and it is bold."""
    at, now = len(game.decisions), world.look(game, world.means) if game.decisions else 1.0
    if at == len(world.means):
        return now
    weights = [math.exp(-1.5 * score) for score in scores]
    x = {arm: weight / sum(weights) for arm, weight in enumerate(weights)}
    later = 0.0
    for arm, outcome in ((0, 0), (0, 1), (1, 0), (1, 1)):
        after, told = copy.deepcopy(game), list(scores)
        after.decide(at, arm, x, x[arm])
        due = (*waiting, Due(at + world.delays[arm][outcome], at, outcome))
        for one in due:
            if one.when <= at:
                after.report(one.position, one.outcome)
                told[after.decisions[one.position].arm] += one.outcome - 0.5
        mean = world.means[at][arm]
        chance = x[arm] * (mean if outcome else 1 - mean)
        later += chance * value(world, after, tuple(one for one in due if one.when > at), tuple(told))
    return max(now, later)


def start() -> Everything:
    return Everything(Evidence.new(2), [0, 1])


def zero_is_better(game: Everything, _: Means) -> float:
    return float(np.exp(log_evidence(against_all(tabulate(game.evidence, np.array([0, 1])), 0).lead)[1]))


def one_is_better(game: Everything, _: Means) -> float:
    return float(np.exp(log_evidence(against_all(tabulate(game.evidence, np.array([0, 1])), 0).lag)[1]))


def one_is_better_without_open(game: Everything, means: Means) -> float:
    game = copy.deepcopy(game)
    for block in game.evidence.blocks:
        block.open_weights = block.open_squares = block.open_cubes = [0.0, 0.0]
    return one_is_better(game, means)


def zero_is_above_its_mean(game: Everything, means: Means, *, is_flipped: bool = False) -> float:
    own = [one for one in game.decisions if one.arm == 0]
    if not own:
        return 1.0
    expected = sum(means[one.position][0] - one.mean for one in own) * (-1 if is_flipped else 1)
    exponents = game.mean(0, is_flipped=is_flipped).exponents
    return math.exp(log_mixture([e - rate * expected for e, rate in zip(exponents, RATES, strict=True)]))


def zero_is_below_its_mean(game: Everything, means: Means) -> float:
    return zero_is_above_its_mean(game, means, is_flipped=True)


@pytest.mark.parametrize("delays", DELAYS)
@pytest.mark.parametrize("means", WORLDS)
@pytest.mark.parametrize("look", [zero_is_better, one_is_better, zero_is_above_its_mean, zero_is_below_its_mean])
def test_evidence_for_what_is_not_so_is_at_most_one(delays: str, means: str, look: Callable[..., float]) -> None:
    assert value(World(WORLDS[means], DELAYS[delays], look), start()) <= 1 + 1e-12


def test_evidence_for_what_is_so_is_more_than_one() -> None:
    assert value(World([(0.1, 0.9)] * 4, DELAYS["none"], zero_is_better), start()) > 1.1


def test_the_count_finds_that_open_decisions_must_not_be_left_out() -> None:
    delays = DELAYS["good ones of arm 0 and bad ones of arm 1 late"]
    assert value(World(STILL, delays, one_is_better_without_open), start()) > 1.05
