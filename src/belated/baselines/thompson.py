"""Thompson sampling on the rounds observed so far.

W. R. Thompson. On the Likelihood that One Unknown Probability Exceeds Another in View of the Evidence of Two Samples.
Biometrika 1933.
O. Chapelle, L. Li. An Empirical Evaluation of Thompson Sampling. NIPS 2011, Algorithm 2.
S. Agrawal, N. Goyal. Analysis of Thompson Sampling for the Multi-armed Bandit Problem. COLT 2012, Algorithm 2.
"""

from typing import final

import numpy as np

from belated.arrays import Floats
from belated.baselines.baseline import Baseline, one_hot
from belated.baselines.open_rounds import OpenRounds
from belated.baselines.seeds import generator_of
from belated.learner.decisions import Decision
from belated.validation import whole_number


@final
class ThompsonSampling(Baseline):
    """Draws a mean loss for each arm from its posterior, and plays the arm with the least [read].

        theta_i ~ Beta(1 + F_i, 1 + S_i),    A_t = argmin_i theta_i

    F_i and S_i count the OBSERVED rounds of arm i with loss 1 and with loss 0. Without any, theta_i is uniform. A loss
    between 0 and 1 is replaced by a coin flip with that mean when its report comes. The papers write this for rewards,
    which are 1 - loss here.

    Needs nothing in advance, but needs independent, identically distributed losses. Against an adversary it has no
    guarantee. This file has no bound. The published one is for feedback without delay, and is stated without constants.

    The probability that an arm has the least theta has no closed form. The generator settles the coming draw, so all
    probability is on that arm. A report changes the posterior, and so it may change the coming arm.
    """

    def __init__(self, n_arms: int, *, seed: int | None = None) -> None:
        self._n_arms = whole_number("n_arms", n_arms, 1)
        self._generator = generator_of(seed)
        self._ones = np.zeros(self._n_arms)  # F
        self._zeros = np.zeros(self._n_arms)  # S
        self._rounds: OpenRounds[None] = OpenRounds()

    def posterior(self) -> tuple[Floats, Floats]:
        """The parameters a and b of each arm's posterior Beta(a, b)."""
        return 1 + self._ones, 1 + self._zeros

    def _choice(self) -> int:
        return int(self._generator.beta(*self.posterior()).argmin())  # A_t = argmin_i theta_i

    def ask(self) -> Decision:
        """Decide the next round."""
        return self._rounds.open(self._choice(), 1.0, None)

    def _learn(self, round: int, loss: float) -> None:
        value, entry = self._rounds.close(round, loss)
        coin = value if value in (0, 1) else float(self._generator.random() < value)  # its mean is the loss
        self._ones[entry.arm] += coin
        self._zeros[entry.arm] += 1 - coin

    def distribution(self) -> Floats:
        """All probability on the next arm. The generator draws it and goes back to where it was."""
        state = self._generator.bit_generator.state
        arm = self._choice()
        self._generator.bit_generator.state = state
        return one_hot(self._n_arms, arm)
