"""A learner that was given plays as it was made, and games with one arm stay inside their arrays."""

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from belated import FTRL, kernels, lab
from belated.errors import GameError, InvalidInput
from belated.lab.algorithms import players, setting_of
from belated.lab.comparisons.fingerprint import fingerprint_of
from belated.lab.games.compiled import Compiled
from belated.lab.games.play import game_of
from belated.tunings import Means, Shadow, Simple

WAVE = lab.Problem(lab.Wave(), lab.Fixed(20), n_arms=4, n_rounds=300)
SETTINGS: dict[str, Any] = {"tuning": Means(boldness=2.0), "refresh": 3, "provisional": 0.5, "floor": 0.1}


@pytest.mark.parametrize("name", SETTINGS)
def test_a_learner_that_is_given_keeps_its_settings(name: str) -> None:
    changed = {name: SETTINGS[name]}
    played = lab.play(FTRL(4, **changed), WAVE, 2).expected
    np.testing.assert_array_equal(
        played, lab.play(lambda n_arms, seed: FTRL(n_arms, seed=seed, **changed), WAVE, 2).expected
    )
    assert (played != lab.play(FTRL(4), WAVE, 2).expected).any()
    marks = [fingerprint_of(players.as_algorithm(FTRL(4, **one))) for one in (changed, changed, {})]
    assert marks[0] == marks[1] != marks[2]


def test_no_setting_of_a_learner_is_forgotten() -> None:
    ours = {"self", "arms", "seed", "outcomes"}  # the game gives two of them, and outcomes are refused
    assert set(inspect.signature(FTRL.__init__).parameters) - ours == set(SETTINGS)
    assert players.settings_of_ftrl(FTRL(4, **SETTINGS)) == SETTINGS


class Louder(FTRL):  # type: ignore[misc]
    """A subclass of FTRL, which may do anything."""

    def ask(self, size: Any = None) -> Any:
        raise RuntimeError("asked")


def test_a_subclass_of_the_learner_is_not_taken_for_it(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"cannot be given a new seed.*Give the class"):
        lab.play(Louder(4), WAVE, 2)
    for player in (Louder, Louder(4)):
        with pytest.raises(GameError, match=r"^Louder, seed 0: it failed to decide round 1 \(RuntimeError: asked"):
            lab.play(player, WAVE, 1)
    with pytest.raises(InvalidInput, match="an object of your own"):
        lab.compare(lab.Comparison([Louder(4)], arms=4, rounds=20, seeds=1), folder=tmp_path)


@pytest.mark.parametrize("tuning", [Shadow(), Means(), Simple()])
@pytest.mark.parametrize("delays", [lab.Fixed(1), lab.ArmDelays([lab.Fixed(1)])])
def test_one_arm_has_no_regret(tuning: Any, delays: Any) -> None:
    problem = lab.Problem(lab.Bernoulli(gap=0.3), delays, n_arms=1, n_rounds=50)
    assert not lab.play(tuning, problem, 2).expected.any()


@pytest.mark.parametrize("tuning", [Shadow(), Means()])
def test_one_arm_is_not_played_by_a_loop_for_several_policies(tuning: Any) -> None:
    """With one arm there is one policy. The loop would read and write beyond it."""
    one_arm = lab.Problem(lab.Bernoulli(), lab.Fixed(1), n_arms=1, n_rounds=5)
    game = game_of(lab.find("means"), tuning, setting_of(one_arm, 0))
    assert isinstance(game, Compiled)
    assert game.policy.shape == (kernels.ROWS, 1)
