"""Exp3 with doubling on the number of missing observations.

BZCBB19: I. Bistritz, Z. Zhou, X. Chen, N. Bambos, J. Blanchet. Online EXP3 Learning in Adversarial Bandits with Delayed
Feedback. NeurIPS 2019. The paper's text was not at hand, so the rule is as commonly quoted. The bound is proven for it.
"""

import math
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from belated.arrays import Floats
from belated.baselines import constant_rate
from belated.baselines.baseline import Baseline
from belated.baselines.restarting_exp3 import RestartingExp3
from belated.bounds import clip
from belated.learner.decisions import Decision
from belated.tunings import outstanding_counts
from belated.validation import whole_number


@final
class BZCBBDoubling(Baseline):
    """Exp3 in epochs that double with the number of missing observations so far.

        epoch e:  while  sum_{s<=t} (o_s + 1) < 2^e,    eta_e = sqrt(ln k / 2^e)
        a new epoch drops all older samples

    The sum counts missing observations of all rounds, including older epochs. It also counts the round's own
    observation. That follows from the claim Reg = O(sqrt((k^2 n + D) ln k)), which has no other source for n.
    Later papers report an error in the analysis of that claim. `bound` does not use it. Needs nothing in advance.
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
        return rate(self._n_arms, epoch) if self._n_arms > 1 else 1.0

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


def rate(n_arms: int, epoch: int) -> float:
    """eta_e = sqrt(ln k / 2^e)."""
    return math.sqrt(math.log(n_arms) / 2**epoch)


def bound(n_arms: int, delays: ArrayLike) -> float:
    """Reg <= sum over the epochs of ln k / eta_e + eta_e (k len / 2 + D_e / 4) (docs/theory/baselines.md) [derived].

    D_e adds up the delays of the epoch's rounds, each cut at the end of the epoch. The epochs depend on the delays
    alone.
    """
    waits = clip(delays)
    if waits.size == 0:
        return 0.0
    epochs = np.floor(np.log2(np.cumsum(outstanding_counts(waits) + 1))).astype(int) + 1
    starts = np.flatnonzero(np.diff(epochs, prepend=0))
    total = 0.0
    for start, stop in zip(starts, [*starts[1:], waits.size], strict=True):
        missing = np.minimum(waits[start:stop], np.arange(stop - start - 1, -1, -1)).sum()
        total += constant_rate.bound(n_arms, stop - start, float(missing), rate(n_arms, int(epochs[start])))
    return total
