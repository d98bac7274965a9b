"""Uniform random play, which learns nothing. Other systems are compared with it."""

from typing import final

import numpy as np

from belated.arrays import Floats
from belated.baselines.baseline import Baseline
from belated.baselines.open_rounds import OpenRounds
from belated.baselines.seeds import generator_of
from belated.learner.decisions import Decision
from belated.validation import whole_number


@final
class UniformRandom(Baseline):
    """Every arm with probability 1/k in every round. Needs nothing, guarantees nothing. Reg can be n (1 - 1/k)."""

    def __init__(self, n_arms: int, *, seed: int | None = None) -> None:
        self._n_arms = whole_number("n_arms", n_arms, 1)
        self._generator = generator_of(seed)
        self._rounds: OpenRounds[None] = OpenRounds()

    def ask(self) -> Decision:
        """Decide the next round."""
        return self._rounds.open(int(self._generator.integers(self._n_arms)), 1 / self._n_arms, None)

    def _learn(self, round: int, loss: float) -> None:
        """Accept the loss in [0, 1] of an earlier round, once, and ignore it."""
        self._rounds.close(round, loss)

    def distribution(self) -> Floats:
        """The probability of each arm in the next round."""
        return np.full(self._n_arms, 1 / self._n_arms)
