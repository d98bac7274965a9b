"""The interface of every baseline."""

from abc import ABC, abstractmethod
from typing import Any, final

import numpy as np

from belated.arrays import Floats
from belated.baselines.open_rounds import OpenRounds
from belated.learner.decisions import Decision, as_round


class Baseline(ABC):
    """A published system. A subclass sets `_n_arms` and `_rounds`, and implements `ask`, `tell` and `distribution`."""

    _n_arms: int
    _rounds: OpenRounds[Any]

    @property
    def n_arms(self) -> int:
        return self._n_arms

    @property
    def round(self) -> int:
        """t, the number of decisions made so far."""
        return self._rounds.round

    @property
    def outstanding(self) -> int:
        """The number of decisions whose feedback has not come."""
        return len(self._rounds)

    @abstractmethod
    def ask(self) -> Decision:
        """Decide the next round."""

    @final
    def tell(self, decision: Decision | int, loss: float) -> None:
        """Report the loss in [0, 1] of an earlier decision or its round, in any order, at any time, once."""
        self._learn(as_round(decision), loss)

    @abstractmethod
    def _learn(self, round: int, loss: float) -> None:
        """Take in the loss of a round."""

    @abstractmethod
    def distribution(self) -> Floats:
        """The probability of each arm in the next round. Changes nothing."""


def one_hot(n_arms: int, arm: int) -> Floats:
    """The distribution of a draw that is already settled."""
    x = np.zeros(n_arms)
    x[arm] = 1.0
    return x
