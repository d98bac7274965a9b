"""UCB1 on the rounds observed so far.

P. Joulani, A. Gyorgy, C. Szepesvari. Online Learning under Delayed Feedback. ICML 2013.
"""

import math
from collections.abc import Sequence
from typing import final

import numpy as np

from belated.arrays import Floats
from belated.baselines.baseline import Baseline, one_hot
from belated.baselines.open_rounds import OpenRounds
from belated.baselines.seeds import generator_of
from belated.learner.decisions import Decision
from belated.validation import whole_number


@final
class DelayedUCB1(Baseline):
    """Plays the arm with the largest upper confidence bound, computed from the OBSERVED rounds only [read].

        A_t = argmax_i  mean_i + sqrt(2 ln t / S_i),    mean_i the mean of the S_i observed rewards 1 - loss of arm i

    Arms without observations come first. Among those it plays the arm drawn least, then the lowest. The paper leaves
    ties open. Without delays it is UCB1 (Auer et al. 2002). Needs nothing in advance, but needs independent,
    identically distributed losses. Against an adversary it has no guarantee. The seed is checked and not used.
    """

    def __init__(self, n_arms: int, *, seed: int | None = None) -> None:
        self._n_arms = whole_number("n_arms", n_arms, 1)
        generator_of(seed)
        self._rewards = np.zeros(self._n_arms)
        self._observed = np.zeros(self._n_arms)
        self._drawn = np.zeros(self._n_arms)
        self._rounds: OpenRounds[None] = OpenRounds()

    def indices(self) -> Floats:
        """The upper confidence bound of each arm in the next round, infinite for an arm without observations."""
        seen = np.maximum(self._observed, 1)
        bounds = self._rewards / seen + np.sqrt(2 * math.log(self.round + 1) / seen)
        return np.where(self._observed > 0, bounds, math.inf)

    def _choice(self) -> int:
        unseen = np.flatnonzero(self._observed == 0)
        return int(unseen[self._drawn[unseen].argmin()] if unseen.size else self.indices().argmax())

    def ask(self) -> Decision:
        """Decide the next round."""
        arm = self._choice()
        self._drawn[arm] += 1
        return self._rounds.open(arm, 1.0, None)

    def _learn(self, round: int, loss: float) -> None:
        value, entry = self._rounds.close(round, loss)
        self._rewards[entry.arm] += 1 - value
        self._observed[entry.arm] += 1

    def distribution(self) -> Floats:
        """All probability on the next arm."""
        return one_hot(self._n_arms, self._choice())


def bound(gaps: Sequence[float], n_rounds: int, most_outstanding: float) -> float:
    """The bound for independent, identically distributed losses with means `gaps` above the best arm's mean [read].

        Reg <= sum over gap_i > 0 of  8 ln n / gap_i + 3.5 gap_i + gap_i G_i,    G_i <= G = max_t o_t

    `most_outstanding` is G.
    """
    return sum(8 * math.log(n_rounds) / gap + (3.5 + most_outstanding) * gap for gap in gaps if gap > 0)
