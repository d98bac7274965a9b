"""Epsilon-greedy with a falling epsilon, on the rounds observed so far.

P. Auer, N. Cesa-Bianchi, P. Fischer. Finite-time Analysis of the Multiarmed Bandit Problem. Machine Learning 2002.
The paper's text was not at hand, so the rule is as two other libraries document it. Its bound here is [derived].
"""

from collections.abc import Sequence
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from belated.arrays import Floats
from belated.baselines.baseline import Baseline
from belated.baselines.open_rounds import OpenRounds
from belated.baselines.seeds import generator_of
from belated.learner.decisions import Decision
from belated.validation import as_delays, positive_number, whole_number


@final
class EpsilonGreedy(Baseline):
    """Plays any arm with probability epsilon_t, and otherwise the arm with the least mean of its OBSERVED losses.

        epsilon_t = min{ 1, c k / (gap^2 t) },    gap at most the smallest gap between the best mean and another

    Until something is observed, every arm is as likely as the others. Among equal means it plays the lowest arm.
    Needs the gap and independent, identically distributed losses.

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


def bound(gaps: Sequence[float], delays: ArrayLike, gap: float, c: float = 5.0) -> float:
    """The bound for independent, identically distributed losses (docs/theory/baselines.md) [derived].

        Reg <= sum_t ( epsilon_t mean_i gap_i + (1 - epsilon_t) min{ max_i gap_i, sum_i gap_i min{ 1, q_ti } } )
        q_ti = 2 ( exp(-m_t / 8) + exp(-(floor(m_t / 2) + 1) gap_i^2 / 2) / (1 - exp(-gap_i^2 / 2)) )
        m_t  = sum of epsilon_s / k over the rounds s whose reports are known in round t

    `gaps` has a gap of 0 for the best arm. `gap` and `c` are those of the learner.
    """
    k, late, given = len(gaps), as_delays(delays), np.asarray(gaps, np.float64)
    n = late.size
    epsilons = np.minimum(1.0, c * k / gap**2 / np.arange(1, n + 1))
    known_from = np.arange(n) + late + 1  # the round, from 0, that is the first to know of this one
    known = np.bincount(known_from[known_from < n], epsilons[known_from < n] / k, n).cumsum()
    worse, greedy = given[given > 0], np.zeros(n)
    few = np.exp(-known / 8)  # the chance that an arm was explored in less than half of what is due
    for one, arms in zip(*np.unique(worse, return_counts=True), strict=True):
        half = one * one / 2
        wrong = 2 * (few + np.exp(-half * (np.floor(known / 2) + 1)) / -np.expm1(-half))
        greedy += arms * one * np.minimum(1.0, wrong)
    return float((epsilons * given.mean() + (1 - epsilons) * np.minimum(given.max(), greedy)).sum())
