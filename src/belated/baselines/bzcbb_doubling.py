"""Exp3 with doubling on the number of missing observations.

BZCBB19: I. Bistritz, Z. Zhou, X. Chen, N. Bambos, J. Blanchet. Online EXP3 Learning in Adversarial Bandits with Delayed
Feedback. NeurIPS 2019. The paper's text was not at hand, so the rule is [recalled].
"""

import math
from typing import final

import numpy as np

from belated.arrays import Floats
from belated.baselines.baseline import Baseline
from belated.baselines.restarting_exp3 import RestartingExp3
from belated.learner.decisions import Decision
from belated.validation import whole_number


@final
class BZCBBDoubling(Baseline):
    """Exp3 in epochs that double with the number of missing observations so far.

        epoch e:  while  sum_{s<=t} (o_s + 1) < 2^e,    eta_e = sqrt(ln k / 2^e)
        a new epoch drops all older samples

    The sum counts missing observations of all rounds, including older epochs. It also counts the round's own
    observation. That is [derived] from the claim Reg = O(sqrt((k^2 n + D) ln k)), which has no other source for n.
    There is no `bound` because later papers report an error in the analysis. Needs nothing in advance.
    """

    def __init__(self, n_arms: int, *, seed: int | None = None) -> None:
        self._n_arms = whole_number("n_arms", n_arms, 1)
        self._missing = 0
        self._play = RestartingExp3(self._n_arms, self._eta(0), seed)
        self._rounds = self._play.rounds

    @property
    def epoch(self) -> int:
        """e, the epoch of the last round."""
        return self._missing.bit_length()  # 2^(e-1) <= missing < 2^e

    def _eta(self, epoch: int) -> float:
        return math.sqrt(math.log(self._n_arms) / 2**epoch) if self._n_arms > 1 else 1.0

    def _coming(self) -> int:
        return self._missing + self.outstanding + 1

    def ask(self) -> Decision:
        """Decide the next round."""
        before, self._missing = self.epoch, self._coming()
        if self.epoch > before:
            self._play.restart(self._eta(self.epoch))
        return self._play.ask()

    def _learn(self, round: int, loss: float) -> None:
        value, own_round = self._play.take(round, loss)
        if own_round:
            self._play.feed(own_round, value)

    def distribution(self) -> Floats:
        """The probability of each arm in the next round. Changes nothing."""
        if self._coming().bit_length() > self.epoch:
            return np.full(self._n_arms, 1 / self._n_arms)
        return self._play.distribution()
