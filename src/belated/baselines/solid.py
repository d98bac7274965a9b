"""SOLID with Hedge, for full information that comes late.

JGS16: P. Joulani, A. Gyorgy, C. Szepesvari. Delay-Tolerant Online Convex Optimization: Unified Analysis and Adaptive-
Gradient Algorithms. AAAI 2016. Read in a later paper.
"""

import math
from typing import Any, ClassVar, NoReturn, final

import numpy as np
from numpy.typing import ArrayLike

from belated.arrays import Floats
from belated.baselines.argmin_policy import ArgminPolicy
from belated.baselines.baseline import Baseline
from belated.baselines.open_rounds import OpenRounds
from belated.baselines.seeds import generator_of
from belated.errors import InvalidInput
from belated.learner.decisions import Decision
from belated.validation import whole_number


@final
class SOLID(Baseline):
    """Tells the base, Hedge, the loss VECTORS in the order of their arrival, as if nothing were late.

        x_t[i] proportional to exp(-eta_t Lobs_t[i]),  Lobs_t the sum of the vectors that have come
        eta_t = sqrt(ln k / sum_{s<=t} (1 + 2 o_s))

    The reduction is [read] in a later paper. The rate is that of the delay-adaptive Exp3 with 1 in place of k, because
    nothing is estimated [derived]. Needs nothing in advance, but needs the losses of ALL arms through `tell_vector`.
    Reg <= 2 sqrt((n + 2D) ln k).
    """

    feedback: ClassVar[str] = "vector"

    def __init__(self, n_arms: int, *, seed: int | None = None) -> None:
        self._n_arms = whole_number("n_arms", n_arms, 1)
        self._policy = ArgminPolicy(self._n_arms, generator_of(seed))
        self._work = 0  # sum of 1 + 2 o_s
        self._rounds: OpenRounds[None] = OpenRounds()

    def _coming(self) -> int:
        return self._work + 1 + 2 * self.outstanding

    def _beta(self, work: int) -> float:
        """1 / eta_t."""
        return math.sqrt(work / math.log(self._n_arms)) if self._n_arms > 1 else 1.0

    def ask(self) -> Decision:
        """Decide the next round."""
        self._work = self._coming()
        arm, x = self._policy.draw(0.0, self._beta(self._work))
        return self._rounds.open(arm, float(x[arm]), None)

    def _learn(self, round: int, loss: float) -> NoReturn:
        """Raises InvalidInput, because the loss of one arm is not enough."""
        raise InvalidInput(f"SOLID needs the losses of all arms of round {round!r}. Call tell_vector(round, losses)")

    def tell_vector(self, round: int, losses: ArrayLike) -> None:
        """Report the losses in [0, 1] of all arms in an earlier round, once. Any order and any time will do."""
        vector = _as_losses(losses, self._n_arms)
        self._rounds.take(round)
        self._policy.losses += vector

    def distribution(self) -> Floats:
        """x of the next round, the probability of each arm. Changes nothing."""
        return self._policy.distribution(0.0, self._beta(self._coming()))


def _as_losses(losses: Any, n_arms: int) -> Floats:
    """The losses as an array, checked to hold a number from 0 to 1 for each arm."""
    try:
        vector = np.asarray(losses)
    except ValueError:  # ragged
        vector = np.empty(0)
    if vector.shape != (n_arms,) or vector.dtype.kind not in "buif" or not ((vector >= 0) & (vector <= 1)).all():
        raise InvalidInput(f"losses must be {n_arms} numbers from 0 to 1, one for each arm, got {losses!r:.80}")
    return vector.astype(np.float64)


def bound(n_arms: int, n_rounds: int, total_delay: float) -> float:
    """Reg <= 2 sqrt((n + 2D) ln k) [derived]."""
    return 2 * math.sqrt((n_rounds + 2 * total_delay) * math.log(n_arms))
