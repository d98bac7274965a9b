"""A learner may keep its attributes in slots. What two games must not share is found there too."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from belated import Decision, lab
from belated.errors import InvalidInput

PROBLEM = lab.Problem(lab.Bernoulli(gap=0.2), lab.Fixed(3), n_arms=3, n_rounds=60)
GENERATORS, ARRAYS = [np.random.default_rng(1)], [np.zeros(3)]


@dataclass(slots=True)
class Learner:
    """Plays at random, and keeps the losses of the arms."""

    generator: np.random.Generator
    losses: Any
    arms: dict[int, int] = field(default_factory=dict)
    __unset: int = field(init=False)  # a slot may be empty

    def ask(self) -> Decision:
        self.arms[len(self.arms) + 1] = arm = int(self.generator.integers(3))
        return Decision(len(self.arms), arm, 1 / 3)

    def tell(self, round: int, loss: float) -> None:
        self.losses[self.arms[round]] += loss


class Inherited(Learner):
    """The slots of a base, and a dictionary as well."""

    def __init__(self, generator: np.random.Generator, losses: Any) -> None:
        super().__init__(generator, losses)
        self.more = 1


@pytest.mark.parametrize("kind", [Learner, Inherited])
def test_what_games_share_in_slots_is_refused(kind: type[Learner]) -> None:
    def same_generator(_n_arms: int, _seed: int) -> Any:
        return kind(GENERATORS[0], np.zeros(3))

    def same_array(_n_arms: int, seed: int) -> Any:
        return kind(np.random.default_rng(seed), ARRAYS[0])

    def same_seed(_n_arms: int, _seed: int) -> Any:
        return kind(np.random.default_rng(7), np.zeros(3))

    def honest(_n_arms: int, seed: int) -> Any:
        return kind(np.random.default_rng(seed), np.zeros(3))

    for player, message in (
        (same_generator, "two learners with one random generator"),
        (same_array, "learners that share an array"),
        (same_seed, "the same random numbers to the seeds 0 and 1"),
    ):
        with pytest.raises(InvalidInput, match=message):
            lab.play(player, PROBLEM, 2)
    assert lab.play(honest, PROBLEM, 2).is_repeatable
