"""A game of your own is checked, and so is what an algorithm says of itself."""

from typing import Any

import numpy as np
import pytest

from belated import lab
from belated.errors import GameError, InvalidInput, MismatchWarning
from belated.lab.games.play import game_of
from belated.tunings import Shadow

PROBLEM = lab.Problem(lab.Bernoulli(means=[0.1, 0.5, 0.9]), lab.Fixed(5), n_arms=3, n_rounds=400)


class Game:
    """Plays uniformly."""

    def __init__(self, setting: lab.Setting) -> None:
        self.t, self.generator = 0, np.random.default_rng(setting.seed)
        self.arms: Any = self.generator.integers(0, setting.n_arms, setting.n_rounds)

    def play(self, losses: Any) -> Any:
        drawn = self.arms[self.t : self.t + len(losses)]
        self.t += len(losses)
        return losses.mean(axis=1), losses[np.arange(len(losses)), drawn]


def algorithm(kind: Any) -> lab.Algorithm:
    return lab.Algorithm("mine", "-", "-", "nothing", "-", player=kind)


def test_an_honest_game_plays_as_it_is() -> None:
    """A warning would be an error here."""
    curves = lab.play(algorithm(Game), PROBLEM, 8)
    assert not curves.is_suspicious
    assert curves.expected[:, -1].mean() == pytest.approx(0.4 * 400, rel=0.15)
    assert (curves.arms[:, -1].sum(axis=1) == 400).all()


class Flatters(Game):
    """Says that it expects the least loss, and draws any arm."""

    def play(self, losses: Any) -> Any:
        return losses.min(axis=1), super().play(losses)[1]


def test_a_game_that_flatters_itself_is_suspicious() -> None:
    with pytest.warns(MismatchWarning, match="^mine: "):
        curves = lab.play(algorithm(Flatters), PROBLEM, 2)
    assert curves.is_suspicious
    assert curves.expected[:, -1].max() < 0  # which no honest learner has here


class Below(Game):
    def play(self, losses: Any) -> Any:
        return losses.min(axis=1) - 0.1, super().play(losses)[1]


class OtherArms(Game):
    def play(self, losses: Any) -> Any:
        return losses.mean(axis=1), losses[:, 0]


class NoArm(Game):
    def __init__(self, setting: lab.Setting) -> None:
        super().__init__(setting)
        self.arms = np.full(setting.n_rounds, 3)

    def play(self, losses: Any) -> Any:
        return losses.mean(axis=1), losses[:, 0]


class FewArms(NoArm):
    def __init__(self, setting: lab.Setting) -> None:
        super().__init__(setting)
        self.arms = np.zeros(3, int)


class Short(Game):
    def play(self, losses: Any) -> Any:
        return losses[:2, 0], losses[:2, 0]


class Nothing(Game):
    def play(self, losses: Any) -> Any:
        return None


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (Below, "no distribution of the arms gives the expected losses"),
        (OtherArms, "the losses that it suffered are not those of its arms"),
        (NoArm, "its arms must be 400 whole numbers from 0 to 2"),
        (FewArms, "its arms must be 400 whole numbers from 0 to 2"),
        (Short, "play must return two arrays of 400 numbers"),
        (Nothing, "play must return two arrays of 400 numbers"),
    ],
)
def test_a_wrong_game_is_refused(kind: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=rf"^mine, seed 3, from round 1: {message}"):
        lab.play(algorithm(kind), PROBLEM, [3])


class Crashes(Game):
    def play(self, losses: Any) -> Any:
        raise KeyError("x")


def test_a_game_that_crashes_says_where() -> None:
    with pytest.raises(GameError, match=r"^mine, seed 3, from round 1: its game failed \(KeyError: 'x'\)") as caught:
        lab.play(algorithm(Crashes), PROBLEM, [3])
    assert isinstance(caught.value.__cause__, KeyError)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("name", "", "the name of an algorithm must be a text in one line, got ''"),
        ("name", None, "the name of an algorithm must be a text in one line, got None"),
        ("name", "a\nb", "the name of an algorithm must be a text in one line"),
        ("summary", None, "mine: summary must be a text, got None"),
        ("citation", 3, "mine: citation must be a text, got 3"),
        ("needs", None, "mine: needs must be a text, got None"),
        ("player", Shadow(), "mine: player must be a function of a lab.Setting, got Shadow"),
        ("bound", 3.0, "mine: bound must be a function of a lab.Setting, got 3.0"),
    ],
)
def test_a_wrong_algorithm_is_refused_when_it_is_made(field: str, value: Any, message: str) -> None:
    given = {"name": "mine", "summary": "-", "citation": "-", "needs": "nothing", "mark": "-", "player": Game}
    with pytest.raises(InvalidInput, match=message):
        lab.Algorithm(**{**given, field: value})


def test_the_games_of_the_lab_are_played_as_they_are() -> None:
    """The checks take time, which a tuning does not need."""
    setting = lab.Setting(PROBLEM, 0, PROBLEM.draw_delays(0))
    assert type(game_of(lab.find("shadow"), Shadow(), setting)).__name__ == "CompiledShadow"
