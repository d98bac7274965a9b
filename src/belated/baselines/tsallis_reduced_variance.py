"""Tsallis-INF with the reduced-variance estimator, for feedback without delay.

ZS21: J. Zimmert, Y. Seldin. Tsallis-INF: An Optimal Algorithm for Stochastic and Adversarial Bandits. JMLR 2021.
"""

import math
from typing import final

import numpy as np

from belated.arrays import Floats
from belated.baselines.argmin_policy import ArgminPolicy
from belated.baselines.baseline import Baseline
from belated.baselines.open_rounds import OpenRounds
from belated.baselines.seeds import generator_of
from belated.learner.decisions import Decision
from belated.validation import truth, whole_number


@final
class TsallisReducedVariance(Baseline):
    """Tsallis-INF whose estimates are centred at 1/2 for the arms that are drawn often enough.

        x_t = argmin <x, Lobs_t> - 2 alpha_t sum_i sqrt(x_i),    alpha_t = 1 / eta_t,  eta_t = 1 / sqrt(t)
        lhat_i = 1[A = i] (loss - B_i) / x_i + B_i,    B_i = 1/2 1[x_i >= eta_t^2],  x and eta of the round of the draw

    The paper's rates for this estimator are -4 sqrt(x_i) / eta_t with eta_t = 4 / sqrt(t), and B_i = 1/2
    1[x_i >= eta_t^2] (ZS21, Theorem 1 and Section 3.1) [read]. In the notation above that is alpha_t = sqrt(t) / 2 and
    the threshold 16 / t. `paper_rates=True` plays that version, and `bound` is its bound. The default version has no
    published bound.

    Needs nothing in advance, but needs feedback without delay. It runs under delays too, without any guarantee.
    """

    def __init__(self, n_arms: int, *, paper_rates: bool = False, seed: int | None = None) -> None:
        self._n_arms = whole_number("n_arms", n_arms, 1)
        self._scale, self._threshold = (0.5, 16.0) if truth("paper_rates", paper_rates) else (1.0, 1.0)
        self._policy = ArgminPolicy(self._n_arms, generator_of(seed))
        self._rounds: OpenRounds[Floats] = OpenRounds()  # the note is B

    def ask(self) -> Decision:
        """Decide the next round."""
        t = self.round + 1
        arm, x = self._policy.draw(self._scale * math.sqrt(t), 0.0)
        return self._rounds.open(arm, float(x[arm]), np.where(x >= self._threshold / t, 0.5, 0.0))

    def _learn(self, round: int, loss: float) -> None:
        value, (arm, probability, centre) = self._rounds.close(round, loss)
        self._policy.losses += centre
        self._policy.losses[arm] += (value - centre[arm]) / probability

    def distribution(self) -> Floats:
        """x of the next round, the probability of each arm. Changes nothing."""
        return self._policy.distribution(self._scale * math.sqrt(self.round + 1), 0.0)


def bound(n_arms: int, n_rounds: int) -> float:
    """Reg <= 2 sqrt(kn) + 14 k ln(n / 15) + 16 without delays and with the paper's rates (ZS21, Theorem 1) [read].

    The theorem prints 10 k ln n for the middle term. Its proof gives 14 k / t for each round t >= 16, as here.
    """
    if n_rounds <= 15:
        return float(n_rounds)
    return 2 * math.sqrt(n_arms * n_rounds) + 14 * n_arms * math.log(n_rounds / 15) + 16
