"""What the lab says is proven has a source. A rule that is only recalled has no bound."""

import math

import numpy as np
import pytest

from belated import lab
from belated.lab.algorithms import ALGORITHMS, setting_of
from belated.lab.problems.parsing import parse_delays, parse_losses


@pytest.mark.parametrize("losses", ["bernoulli:gap=0.3", "sine"])
@pytest.mark.parametrize("delays", ["none", "fixed:d=9", "pareto", "unbalanced"])
@pytest.mark.parametrize(("n_arms", "n_rounds"), [(2, 1), (2, 10), (3, 500)])
def test_every_bound_is_a_number_and_none_is_recalled(losses: str, delays: str, n_arms: int, n_rounds: int) -> None:
    setting = setting_of(lab.Problem(parse_losses(losses), parse_delays(delays), n_arms, n_rounds), 1)
    for algorithm in ALGORITHMS:
        bound = algorithm.bound(setting)
        assert bound is None or 0 <= bound < math.inf, algorithm.name
        assert bound is None or algorithm.mark != "recalled", algorithm.name
        assert algorithm.mark != "derived" or losses != "bernoulli:gap=0.3" or delays != "none" or bound is not None


def test_a_part_of_a_bound_is_not_shown_as_one() -> None:
    """That of composite has a second term, whose size the paper does not say."""
    setting = setting_of(lab.Problem(lab.Bernoulli(gap=0.3), lab.Fixed(2), n_arms=2, n_rounds=100_000), 1)
    assert lab.find("composite").bound(setting) is None


def test_bounds_do_not_depend_on_how_losses_and_delays_are_given() -> None:
    one = lab.Problem(lab.Bernoulli(gap=0.3, mean=0.4), lab.Fixed(9), n_arms=3, n_rounds=500)
    means = [0.4, 0.1, 0.4]
    for losses, delays in (
        (lab.Bernoulli(means=means), lab.GivenDelays(np.full(500, 9))),
        (lab.Shuffled(lab.Bernoulli(means=means)), lab.Permuted(lab.Fixed(9))),
    ):
        other = lab.Problem(losses, delays, n_arms=3, n_rounds=500)
        for algorithm in ALGORITHMS:
            expected = algorithm.bound(setting_of(one, 1))
            assert algorithm.bound(setting_of(other, 1)) == pytest.approx(expected), algorithm.name


@pytest.mark.parametrize(
    "name", ["explore-then-commit", "successive-elimination", "opse", "patient-bandits", "delayed-ucb1", "qpm-d"]
)
def test_the_expected_loss_is_that_of_the_arm_it_plays(name: str) -> None:
    curves = lab.play(name, lab.Problem(lab.Sine(), lab.Geometric(5), n_arms=3, n_rounds=200), range(2))
    assert (curves.expected == curves.suffered).all()
