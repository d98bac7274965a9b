"""Epsilon-greedy with a falling epsilon, on the rounds observed so far.

P. Auer, N. Cesa-Bianchi, P. Fischer. Finite-time Analysis of the Multiarmed Bandit Problem. Machine Learning 2002.
The paper's text was not at hand, so the rule is [recalled]. Two other libraries document the same epsilon.
"""

from typing import final

import numpy as np

from belated.arrays import Floats
from belated.baselines.baseline import Baseline
from belated.baselines.open_rounds import OpenRounds
from belated.baselines.seeds import generator_of
from belated.learner.decisions import Decision
from belated.validation import positive_number, whole_number


@final
class EpsilonGreedy(Baseline):
    """Plays any arm with probability epsilon_t, and otherwise the arm with the least mean of its OBSERVED losses.

        epsilon_t = min{ 1, c k / (gap^2 t) },    gap at most the smallest gap between the best mean and another

    Until something is observed, every arm is as likely as the others. Among equal means it plays the lowest arm.
    Needs the gap and independent, identically distributed losses. The published bound is for feedback without delay
    and was not at hand, so there is no `bound`.

    >>> learner = EpsilonGreedy(2, gap=0.5, seed=1)
    >>> for _ in range(400):
    ...     decision = learner.ask()
    ...     learner.tell(decision, loss=[0.9, 0.1][decision.arm])
    >>> learner.distribution().round(2).tolist()
    [0.05, 0.95]
    """

    def __init__(self, n_arms: int, *, c: float = 5.0, gap: float = 0.1, seed: int | None = None) -> None:
        self._n_arms = whole_number("n_arms", n_arms, 1)
        self._work = positive_number("c", c) * self._n_arms / positive_number("gap", gap) ** 2
        self._generator = generator_of(seed)
        self._losses = np.zeros(self._n_arms)
        self._observed = np.zeros(self._n_arms)
        self._rounds: OpenRounds[None] = OpenRounds()

    @property
    def epsilon(self) -> float:
        """epsilon_t of the next round."""
        return min(1.0, self._work / (self.round + 1))

    def ask(self) -> Decision:
        """Decide the next round."""
        x = self.distribution()
        arm = int(self._generator.choice(self._n_arms, p=x))
        return self._rounds.open(arm, float(x[arm]), None)

    def _learn(self, round: int, loss: float) -> None:
        value, entry = self._rounds.close(round, loss)
        self._losses[entry.arm] += value
        self._observed[entry.arm] += 1

    def distribution(self) -> Floats:
        """The probability of each arm in the next round. Changes nothing."""
        epsilon = self.epsilon if self._observed.any() else 1.0
        x = np.full(self._n_arms, epsilon / self._n_arms)
        means = np.where(self._observed > 0, self._losses / np.maximum(self._observed, 1), np.inf)
        x[means.argmin()] += 1 - epsilon
        return x
