"""Exp3 with uniform exploration, as it was first published. It is blind to delays.

P. Auer, N. Cesa-Bianchi, Y. Freund, R. E. Schapire. The Nonstochastic Multiarmed Bandit Problem. SIAM Journal on
Computing 2002. The paper's text was not at hand, so the rule is as commonly quoted. The bound is proven for it.
"""

import math
from typing import final

import numpy as np

from belated.arrays import Floats
from belated.baselines.baseline import Baseline
from belated.baselines.open_rounds import OpenRounds
from belated.baselines.seeds import generator_of
from belated.errors import InvalidInput
from belated.learner.decisions import Decision
from belated.validation import positive_number, whole_number


@final
class MixedExp3(Baseline):
    """Exponential weights on estimated rewards, mixed with uniform play.

        x_t[i] = (1 - gamma) w_i / sum_j w_j + gamma / k,    w_i = exp(gamma G_i / k)
        G_i = sum of (1 - loss) / x_s[i] over the observed rounds s of arm i,  x_s that of the round of the draw

    Needs feedback without delay for its bound. Under delays it runs without any guarantee. gamma lies in (0, 1], and
    a good one needs n (`best_gamma`).

    >>> learner = MixedExp3(2, gamma=0.2, seed=1)
    >>> learner.tell(learner.ask(), loss=1.0)
    >>> learner.distribution().tolist()
    [0.5, 0.5]
    """

    def __init__(self, n_arms: int, gamma: float, *, seed: int | None = None) -> None:
        self._n_arms, self._gamma = whole_number("n_arms", n_arms, 1), positive_number("gamma", gamma)
        if self._gamma > 1:
            raise InvalidInput(f"gamma must be a number from 0 to 1, above 0, got {gamma!r}")
        self._generator = generator_of(seed)
        self._gains = np.zeros(self._n_arms)  # G
        self._rounds: OpenRounds[None] = OpenRounds()

    def ask(self) -> Decision:
        """Decide the next round."""
        x = self.distribution()
        arm = int(self._generator.choice(self._n_arms, p=x))
        return self._rounds.open(arm, float(x[arm]), None)

    def _learn(self, round: int, loss: float) -> None:
        value, entry = self._rounds.close(round, loss)
        self._gains[entry.arm] += (1 - value) / entry.probability

    def distribution(self) -> Floats:
        """x of the next round, the probability of each arm. Changes nothing."""
        weights = np.exp(self._gamma / self._n_arms * (self._gains - self._gains.max()))
        return np.asarray((1 - self._gamma) * weights / weights.sum() + self._gamma / self._n_arms)


def best_gamma(n_arms: int, n_rounds: int) -> float:
    """The gamma with the least bound, min{ 1, sqrt(k ln k / ((e - 1) n)) }."""
    return min(1.0, math.sqrt(n_arms * math.log(n_arms) / ((math.e - 1) * n_rounds))) if n_arms > 1 else 1.0


def bound(n_arms: int, n_rounds: int, gamma: float) -> float:
    """Reg <= (e - 1) gamma n + k ln k / gamma without delays (docs/theory/baselines.md) [derived]."""
    return (math.e - 1) * gamma * n_rounds + n_arms * math.log(n_arms) / gamma
