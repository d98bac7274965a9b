"""Successive elimination under delays, for delays that do not depend on the outcome and for delays that do.

LSKM21: T. Lancewicki, S. Segal, T. Koren, Y. Mansour. Stochastic Multi-Armed Bandits with Unrestricted Delay
Distributions. ICML 2021. The paper's text was not at hand. Both rules are as later papers describe them, and both
bounds are proven for the rules as they are here.
"""

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import final

import numpy as np

from belated.arrays import Floats
from belated.baselines.baseline import Baseline, one_hot
from belated.baselines.open_rounds import OpenRounds
from belated.baselines.seeds import generator_of
from belated.learner.decisions import Decision
from belated.validation import whole_number


class Eliminating(Baseline):
    """Plays the active arms in turn. Before each turn, arms that are worse than another for certain drop out.

    arm i drops out  if  lower_i > min over the active arms j of upper_j
    """

    def __init__(self, n_arms: int, n_rounds: int, *, seed: int | None = None) -> None:
        self._n_arms = whole_number("n_arms", n_arms, 1)
        self._log_n = math.log(whole_number("n_rounds", n_rounds, 1))
        generator_of(seed)
        self._turn = list(range(self._n_arms))  # the arms of this turn that are still to be played
        self._active = list(range(self._n_arms))
        self._drawn = np.zeros(self._n_arms)  # N
        self._observed = np.zeros(self._n_arms)  # S
        self._losses = np.zeros(self._n_arms)
        self._rounds: OpenRounds[None] = OpenRounds()

    @abstractmethod
    def intervals(self) -> tuple[Floats, Floats]:
        """The lower and the upper confidence bound of each arm's mean loss."""

    @property
    def active(self) -> list[int]:
        """The arms that are still played."""
        return list(self._active)

    def _coming(self) -> tuple[list[int], list[int]]:
        """The active arms, and the arms of this turn that are still to be played, the next one first."""
        if self._turn:
            return self._active, self._turn
        lower, upper = self.intervals()
        best = upper[self._active].min()
        active = [arm for arm in self._active if lower[arm] <= best]
        return active, active

    def ask(self) -> Decision:
        """Decide the next round."""
        self._active, (arm, *rest) = self._coming()
        self._turn = rest
        self._drawn[arm] += 1
        return self._rounds.open(arm, 1.0, None)

    def _learn(self, round: int, loss: float) -> None:
        value, entry = self._rounds.close(round, loss)
        self._observed[entry.arm] += 1
        self._losses[entry.arm] += value

    def distribution(self) -> Floats:
        """All probability on the next arm."""
        return one_hot(self._n_arms, self._coming()[1][0])


@final
class SuccessiveElimination(Eliminating):
    """Confidence bounds from the OBSERVED rounds only, for delays that do not depend on the outcome.

        mean_i -+ sqrt(2 ln n / S_i),    mean_i the mean of the S_i observed losses of arm i

    The rule is as Schlisselberg, Lancewicki, Auer & Mansour 2025 (Section 2) give it. Needs n, and independent,
    identically distributed losses. The seed is checked and not used.

    >>> learner = SuccessiveElimination(2, n_rounds=500)
    >>> for _ in range(200):
    ...     decision = learner.ask()
    ...     learner.tell(decision, loss=[0.9, 0.1][decision.arm])
    >>> learner.active
    [1]
    """

    def intervals(self) -> tuple[Floats, Floats]:
        seen = np.maximum(self._observed, 1)
        width = np.where(self._observed > 0, np.sqrt(2 * self._log_n / seen), math.inf)
        return self._losses / seen - width, self._losses / seen + width


@final
class OptimisticPessimistic(Eliminating):
    """OPSE. An outcome that is missing may still be anything, so its delay may depend on it.

        lower_i = sum of the observed losses of arm i / N_i - sqrt(2 ln n / N_i),    as if all that is missing were 0
        upper_i = (that sum + missing_i) / N_i + sqrt(2 ln n / N_i),                 as if all that is missing were 1

    N_i counts all rounds of arm i. Tang, Wang & Zheng 2024 (Section 6) describe the rule in words. The width is
    [derived] with the bound. Needs n, and independent, identically distributed losses. The delays may be any. The seed
    is checked and not used.

    >>> learner = OptimisticPessimistic(2, n_rounds=500)
    >>> for _ in range(200):
    ...     decision = learner.ask()
    ...     if decision.arm == 0:
    ...         learner.tell(decision, loss=0.9)
    >>> learner.active  # nothing is known of the other arm, so it may be the better one
    [0, 1]
    """

    def intervals(self) -> tuple[Floats, Floats]:
        drawn = np.maximum(self._drawn, 1)
        width = np.where(self._drawn > 0, np.sqrt(2 * self._log_n / drawn), math.inf)
        missing = self._drawn - self._observed
        return self._losses / drawn - width, (self._losses + missing) / drawn + width


def bound(gaps: Sequence[float], n_rounds: int, most_outstanding: float) -> float:
    """SuccessiveElimination, for delays that do not depend on arm or outcome (docs/theory/baselines.md) [derived].

    Reg <= sum over gap_i > 0 of  32 ln n / gap_i + (1 + G) gap_i,  plus 2 k / n^2,    G = max_t o_t
    """
    return sum((1 + most_outstanding) * gap for gap in gaps if gap > 0) + _certainty(gaps, n_rounds)


def bound_opse(gaps: Sequence[float], n_rounds: int, most_outstanding: float) -> float:
    """OptimisticPessimistic, for any delays (docs/theory/baselines.md) [derived].

    Reg <= sum over gap_i > 0 of  32 ln n / gap_i + gap_i + 2 G,  plus 2 k / n^2,    G = max_t o_t
    """
    return sum(gap + 2 * most_outstanding for gap in gaps if gap > 0) + _certainty(gaps, n_rounds)


def _certainty(gaps: Sequence[float], n_rounds: int) -> float:
    """What both pay to tell the arms apart, and for the chance that a mean lies outside its interval."""
    apart = sum(32 * math.log(n_rounds) / gap for gap in gaps if gap > 0)
    return apart + 2 * len(gaps) / n_rounds**2
