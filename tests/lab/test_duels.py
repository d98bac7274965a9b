"""Games of two learners."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from belated import FTRL, Decision, baselines, lab
from belated.errors import InvalidInput
from belated.tunings import Advanced, Tsallis

FIRST = np.array([[0.1, 0.9, 0.3], [0.6, 0.2, 0.5]])  # two arms against three
SECOND = np.array([[0.8, 0.0, 0.4], [0.7, 1.0, 0.2]])


def test_each_loses_by_both_arms_and_hears_after_its_own_delay() -> None:
    duel = lab.Duel(FIRST, SECOND, delays=lab.Fixed(1), second_delays=lab.Fixed(2), n_rounds=4)
    game = duel.start(seed=1)
    plays = [(0, 1), (1, 2), (1, 0), (0, 0)]
    steps = [game.step(*arms) for arms in plays]
    assert [(mine.suffered, theirs.suffered) for mine, theirs in steps] == [
        (FIRST[arms], SECOND[arms]) for arms in plays
    ]
    assert [mine.reports for mine, _ in steps] == [[], [(1, 0, 0.9)], [(2, 1, 0.5)], [(3, 1, 0.6)]]
    assert [theirs.reports for _, theirs in steps] == [[], [], [(1, 1, 0.0)], [(2, 2, 0.2)]]
    seen = [1, 2, 0, 0]  # the arms of the second
    assert game.first.totals == pytest.approx(FIRST[:, seen].sum(axis=1))
    assert game.second.totals == pytest.approx(SECOND[[0, 1, 1, 0]].sum(axis=0))
    assert (game.round, game.is_over) == (4, True)


def test_without_losses_of_the_second_it_is_zero_sum() -> None:
    game = lab.Duel(FIRST, n_rounds=10).start(seed=1)
    for arms in ((0, 0), (1, 2)):
        mine, theirs = game.step(*arms)
        assert mine.suffered + theirs.suffered == 1


def test_coins_flip_with_the_means() -> None:
    game = lab.Duel(FIRST, SECOND, n_rounds=4000, coins=True).start(seed=1)
    flips = np.array([[one.suffered for one in game.step(1, 0)] for _ in range(4000)])
    assert set(flips.ravel()) == {0, 1}
    np.testing.assert_allclose(flips.mean(axis=0), [0.6, 0.7], atol=4.5 * 0.5 / 63)
    assert abs(np.corrcoef(flips.T)[0, 1]) < 4.5 / 63


def by_hand(duel: lab.Duel, first: FTRL[int], second: FTRL[int], seed: int) -> tuple[Any, list[tuple[int, int]]]:
    game, arms = duel.start(seed), []
    while not game.is_over:
        arms.append((first.ask().arm, second.ask().arm))
        for learner, step in zip((first, second), game.step(*arms[-1]), strict=True):
            for report in step.reports:
                learner.tell(report.round, report.loss)
    return game, arms


def test_against_an_opponent_it_is_a_problem_like_any_other() -> None:
    """The problem has the opponent inside. By hand, with the seeds that it uses, it is the same game."""
    duel = lab.Duel(FIRST, SECOND, delays=lab.Fixed(3), second_delays=lab.Geometric(5), n_rounds=500)
    seeds: list[int] = []

    def opponent(n_arms: int, seed: int) -> FTRL[int]:
        seeds.append(seed)
        return FTRL(n_arms, Tsallis(), seed=seed)

    curves = lab.play(Advanced(), duel.against(opponent), [7], checkpoints=[500])
    game, _ = by_hand(duel, FTRL(2, Advanced(), seed=7), FTRL(3, Tsallis(), seed=seeds[0]), seeds[0])
    assert game.first.regret == pytest.approx(curves.suffered[0, -1], abs=1e-9)
    one, two = (lab.play(Advanced(), duel.against(Tsallis()), range(3), workers=n).expected for n in (1, 2))
    np.testing.assert_array_equal(one, two)


class Opponent:
    """A class of learners."""

    def __init__(self, n_arms: int, *, seed: int) -> None:
        self.inner = FTRL(n_arms, Tsallis(), seed=seed)

    def ask(self) -> Decision:
        return self.inner.ask()

    def tell(self, round: int, loss: float) -> None:
        self.inner.tell(round, loss)


def test_an_opponent_may_be_a_class() -> None:
    duel = lab.Duel(FIRST, SECOND, n_rounds=200)
    by_class, by_tuning = (lab.play(Advanced(), duel.against(one), 2) for one in (Opponent, Tsallis()))
    np.testing.assert_array_equal(by_class.expected, by_tuning.expected)
    assert str(duel.against(Opponent).losses) == "Reacting(against Opponent)"
    with pytest.raises(InvalidInput, match=r"an opponent must be a tuning such as Tsallis\(\), a class of learners"):
        duel.against(Tsallis)


def test_turned_around_the_second_is_the_first() -> None:
    duel = lab.Duel(FIRST, SECOND, delays=lab.Fixed(3), second_delays=lab.Fixed(9), n_rounds=50)
    turned = duel.turned
    assert (turned.delays, turned.second_delays) == (lab.Fixed(9), lab.Fixed(3))
    mine, theirs = duel.start(1).step(1, 2)
    other, own = turned.start(1).step(2, 1)
    assert (mine.suffered, theirs.suffered) == (own.suffered, other.suffered)
    assert turned.against(Tsallis()).n_arms == 3


def test_learners_come_near_the_value_of_the_game() -> None:
    """Matching pennies has the value 1/2, and both arms are played half of the time."""
    pennies = lab.Duel([[0, 1], [1, 0]], delays=lab.Fixed(5), second_delays=lab.Fixed(20), n_rounds=4000)
    game, arms = by_hand(pennies, FTRL(2, Advanced(), seed=1), FTRL(2, Advanced(), seed=2), 3)
    assert game.first.suffered / 4000 == pytest.approx(0.5, abs=0.05)
    np.testing.assert_allclose(np.mean(arms, axis=0), [0.5, 0.5], atol=0.1)


class Outside:
    """An opponent that plays an arm that is none."""

    def __init__(self, arm: int) -> None:
        self.arm = arm

    def ask(self) -> Any:
        return Decision(1, self.arm, 1.0)


@pytest.mark.parametrize("arm", [-1, 3])
def test_an_opponent_with_a_wrong_arm_is_refused(arm: int) -> None:
    problem = lab.Duel(FIRST, n_rounds=10).against(lambda _k, _seed: Outside(arm))  # type: ignore[arg-type,return-value]
    with pytest.raises(InvalidInput, match=f"the arm of the opponent must be a whole number from 0 to 2, got {arm}"):
        lab.play("uniform", problem, [1])


@pytest.mark.parametrize(
    "opponent", [baselines.Doubling, baselines.SOLID, lambda k, seed: baselines.Skipper(k, 5, seed=seed)]
)
def test_an_opponent_that_needs_to_know_more_is_refused(opponent: Any) -> None:
    problem = lab.Duel(FIRST, n_rounds=10).against(opponent)
    with pytest.raises(InvalidInput, match="needs the delay of a round or the losses of all arms"):
        lab.play("uniform", problem, [1])


def test_wrong_duels_are_refused() -> None:
    wrong: list[tuple[Callable[[], Any], str]] = [
        (lambda: lab.Duel([0, 1]), "must be a matrix with numbers from 0 to 1"),
        (lambda: lab.Duel([[0, 2]]), "must be a matrix with numbers from 0 to 1"),
        (lambda: lab.Duel([["a"]]), "must be a matrix with numbers from 0 to 1"),
        (lambda: lab.Duel(FIRST, SECOND.T), r"the same shape, got \(2, 3\) and \(3, 2\)"),
        (lambda: lab.Duel(FIRST, n_rounds=0), "n_rounds must be"),
        (lambda: lab.Duel(FIRST).start(-1), "seed must be"),
        (
            lambda: lab.Duel(FIRST).start(1).step(2, 0),
            "the arm of the first learner must be a whole number from 0 to 1",
        ),
        (lambda: lab.Duel(FIRST).start(1).step(0, 3), "the arm of the second learner must be"),
        (lambda: lab.Duel(FIRST).against("means"), "an opponent must be a tuning"),  # type: ignore[arg-type]
    ]
    for build, message in wrong:
        with pytest.raises(InvalidInput, match=message):
            build()
