"""PatientBandits, for rewards that show only when they come, after delays that depend on the arm.

GVCV20: A. Gael Manegueu, C. Vernade, A. Carpentier, M. Valko. Stochastic Bandits with Arm-Dependent Delays. ICML 2020,
Algorithm 1.
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
from belated.validation import positive_number, whole_number


@final
class PatientBandits(Baseline):
    """UCB that counts a missing reward as 0, and allows for the bias [read].

        A_t = argmax_i  mean_i + sqrt(2 ln(2 k n^3) / T_i) + 2 T_i^(-min{alpha, 1/2})
        mean_i = the sum of the rewards 1 - loss of arm i that have come / T_i,    T_i counts ALL rounds of arm i

    First every arm is played once. A report of loss 1 teaches nothing, because a reward of 0 and a missing one look
    alike. So it does not matter whether failures are ever reported. Among equal indices it plays the lowest arm.

    Needs n and alpha, such that a delay exceeds m rounds with probability at most m^(-alpha) for every m >= 1 and arm.
    Needs independent, identically distributed rewards and delays. The seed is checked and not used.

    >>> learner = PatientBandits(2, n_rounds=1000)
    >>> first, second = learner.ask(), learner.ask()
    >>> learner.tell(second, loss=0.0)  # a reward of 1
    >>> learner.ask().arm
    1
    """

    def __init__(self, n_arms: int, n_rounds: int, alpha: float = 0.5, *, seed: int | None = None) -> None:
        self._n_arms = whole_number("n_arms", n_arms, 1)
        self._spread = 2 * math.log(2 * self._n_arms * whole_number("n_rounds", n_rounds, 1) ** 3)
        self._power = min(positive_number("alpha", alpha), 0.5)
        generator_of(seed)
        self._rewards = np.zeros(self._n_arms)
        self._drawn = np.zeros(self._n_arms)  # T
        self._rounds: OpenRounds[None] = OpenRounds()

    def indices(self) -> Floats:
        """The upper confidence bound of each arm in the next round, infinite for an arm that was never played."""
        drawn = np.maximum(self._drawn, 1)
        bounds = self._rewards / drawn + np.sqrt(self._spread / drawn) + 2 * drawn**-self._power
        return np.where(self._drawn > 0, bounds, math.inf)

    def ask(self) -> Decision:
        """Decide the next round."""
        arm = int(self.indices().argmax())
        self._drawn[arm] += 1
        return self._rounds.open(arm, 1.0, None)

    def _learn(self, round: int, loss: float) -> None:
        value, entry = self._rounds.close(round, loss)
        self._rewards[entry.arm] += 1 - value

    def distribution(self) -> Floats:
        """All probability on the next arm."""
        return one_hot(self._n_arms, int(self.indices().argmax()))


def bound(gaps: Sequence[float], n_rounds: int, alpha: float) -> float:
    """The bound for delays whose tails keep to alpha (docs/theory/baselines.md) [derived].

        Reg <= 1 + sum over gap_i > 0 of  gap_i (1 + max{ 32 ln(2 k n^3) / gap_i^2, (8 / gap_i)^p }),
        p = 1 / min{alpha, 1/2}

    This is the paper's proof of its Theorem 2 with two slips put right. `gaps` has a gap of 0 for the best arm.
    """
    spread, power = math.log(2 * len(gaps) * n_rounds**3), 1 / min(alpha, 0.5)
    draws = [(gap, 1 + max(32 * spread / gap**2, math.pow(8 / gap, power))) for gap in gaps if gap > 0]
    return 1 + sum(gap * most for gap, most in draws)
