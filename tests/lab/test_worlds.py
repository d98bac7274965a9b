"""`lab.play` in worlds whose delays or losses are not fixed beforehand. Compiled games equal ask and tell."""

import math
from typing import Any

import numpy as np
import pytest

from belated import FTRL, lab
from belated.errors import ImproperRule, InvalidInput
from belated.tunings import AdaptiveExp3, Advanced, Exp3, Means, Shadow, Simple, Tsallis, Tuning
from tests.lab.test_steps import WORLDS, coins, reacting, wearing_out
from tests.support.catalogue import ftrl

TUNINGS: dict[str, Tuning] = {
    "means": Means(),
    "shadow": Shadow(),
    "advanced": Advanced(),
    "discard": Advanced(scale=0.5, discard=True),
    "tsallis": Tsallis(),
    "exp3": Exp3(0.05),
}


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("name", TUNINGS)
def test_compiled_and_interpreted_worlds_agree_bit_for_bit(name: str, world: str) -> None:
    problem = coins(WORLDS[world], 700)
    compiled = lab.play(TUNINGS[name], problem, range(2))
    interpreted = lab.play(ftrl(TUNINGS[name]), problem, range(2))
    np.testing.assert_array_equal(compiled.expected, interpreted.expected)
    np.testing.assert_array_equal(compiled.suffered, interpreted.suffered)


@pytest.mark.parametrize("name", TUNINGS)
def test_feedback_that_is_the_same_for_all_arms_is_the_ordinary_game(name: str) -> None:
    ordinary = lab.Problem(lab.Wave(half_period=40), lab.Geometric(20), 3, 700)
    world = lab.Problem(lab.Wave(half_period=40), lab.LostByArm(lab.Fixed(20), [0, 0, 0]), 3, 700)
    fixed = lab.Problem(lab.Wave(half_period=40), lab.Fixed(20), 3, 700)
    one, other = (lab.play(TUNINGS[name], problem, range(3)) for problem in (world, fixed))
    np.testing.assert_array_equal(one.expected, other.expected)
    np.testing.assert_array_equal(one.suffered, other.suffered)
    assert (lab.play(TUNINGS[name], ordinary, range(3)).expected != one.expected).any()


@pytest.mark.parametrize("tuning", [Simple(), AdaptiveExp3()])
def test_tunings_without_a_compiled_world_play_through_ask_and_tell(tuning: Tuning) -> None:
    problem = coins(WORLDS["by both"], 300)
    np.testing.assert_array_equal(
        lab.play(tuning, problem, [1]).expected, lab.play(ftrl(tuning), problem, [1]).expected
    )


class Doubled(Tsallis):  # type: ignore[misc]
    """Other rates, which the kernel for Tsallis does not know."""

    def rates(self, n_arms: int, round: int, outstanding: int, backlog: int, sqrt: Any = math.sqrt) -> Any:
        return 2 * sqrt(round), sqrt(1 + backlog)


class Halved(Exp3):  # type: ignore[misc]
    """The same for Exp3."""

    def rates(self, n_arms: int, round: int, outstanding: int, backlog: int, sqrt: Any = math.sqrt) -> Any:
        return sqrt(round) / 2, sqrt(1 + backlog)


@pytest.mark.parametrize("tuning", [Doubled(), Halved(0.1)], ids=["Tsallis", "Exp3"])
def test_a_subclass_of_a_compiled_tuning_has_its_own_rates(tuning: Tuning) -> None:
    problem = coins(WORLDS["by both"], 300)
    np.testing.assert_array_equal(
        lab.play(tuning, problem, [1]).expected, lab.play(ftrl(tuning), problem, [1]).expected
    )


def test_regret_in_a_reacting_world_is_against_the_rows_as_they_came() -> None:
    problem = reacting(wearing_out, 1200)
    curves = lab.play(Advanced(), problem, [3, 4], checkpoints=[7, 1100])
    for row, seed in enumerate((3, 4)):
        game, learner, regrets, expected = problem.start(seed), FTRL(3, Advanced(), seed=seed), [], 0.0
        while not game.is_over:
            x = learner.distribution()
            for report in game.step(learner.ask().arm).reports:
                learner.tell(report.round, report.loss)
            expected += float(x @ game.losses)
            if game.round in (7, 1100, 1200):
                regrets.append((game.regret, expected - game.totals.min()))
        np.testing.assert_allclose(np.array(regrets).T, [curves.suffered[row], curves.expected[row]], atol=1e-9)
    two = lab.play(Advanced(), problem, [3, 4], checkpoints=[7, 1100], workers=2)
    np.testing.assert_array_equal(two.expected, curves.expected)


def test_a_comparison_of_worlds() -> None:
    for losses, delays in (("bernoulli", WORLDS["by arm"]), (lab.Reacting(wearing_out), "fixed:d=2")):
        comparison = lab.Comparison(("means", "thompson", "zs20-simple"), losses, delays, arms=3, rounds=200, seeds=2)
        rows = lab.compare(comparison, workers=2).rows
        assert {row.algorithm.name for row in rows} == {"means", "thompson", "zs20-simple"}
        assert {row.bound for row in rows} == {None}


class Foresight:
    """Needs what no world can give."""

    n_arms = 3
    needs_delay = True

    def ask(self) -> Any: ...

    def tell(self, decision: Any, loss: float) -> None: ...


def test_what_needs_to_know_the_future_is_refused() -> None:
    with pytest.raises(InvalidInput, match="depends on what is played"):
        lab.play("dew", coins(WORLDS["by arm"]), [1])
    with pytest.raises(InvalidInput, match="react to what is played"):
        lab.play("best-arm", reacting(wearing_out), [1])
    with pytest.raises(InvalidInput, match="needs the delay of a round or the losses of all arms"):
        lab.play(Foresight(), coins(WORLDS["by arm"]), [1])  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="needs the delay of a round or the losses of all arms"):
        lab.play("solid", reacting(wearing_out), [1])


def test_improper_rates_are_refused() -> None:
    with pytest.raises(ImproperRule, match="in round 2 after"):
        lab.play(Shadow(scale=1e200), coins(WORLDS["by arm"]), [1])


def test_losses_that_remember_another_game_are_refused() -> None:
    wear, generator = np.zeros(3), np.random.default_rng(1)

    def remembering(_n_arms: int, _n_rounds: int, _generator: np.random.Generator) -> Any:
        while True:
            arm = yield wear
            wear[arm] = min(1.0, wear[arm] + 0.01)

    def drawing(n_arms: int, _n_rounds: int, _generator: np.random.Generator) -> Any:
        while True:
            yield generator.random(n_arms)

    for rule in (remembering, drawing):
        for workers in (1, 2):
            with pytest.raises(InvalidInput, match=r"gave other losses .* with the seed \d and the same arms\. A rule"):
                lab.play("uniform", reacting(rule), 2, workers=workers)
