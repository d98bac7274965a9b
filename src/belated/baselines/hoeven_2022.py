"""ZS20's hybrid regularizer for delays that depend on the arm.

HC22: D. van der Hoeven, N. Cesa-Bianchi. Nonstochastic Bandits and Experts with Arm-Dependent Delays. AISTATS 2022,
Section 4.2 and Theorem 3.
"""

import math
from typing import NamedTuple, final

import numpy as np

from belated.arrays import Floats
from belated.baselines.argmin_policy import ArgminPolicy
from belated.baselines.baseline import Baseline
from belated.baselines.open_rounds import OpenRounds
from belated.baselines.seeds import generator_of
from belated.learner.decisions import Decision
from belated.validation import whole_number


class Draw(NamedTuple):
    """What a round keeps of its draw."""

    epsilon: float
    weight: float  # 1 / x_s[A_s]


@final
class Hoeven2022(Baseline):
    """Its learning rate grows only with what is missing of the arms that it plays (HC22, concealed setting) [read].

        x_t = argmin <x, Lobs_t> - 2 sqrt(t) sum_i sqrt(x_i) + beta_t sum_i x_i ln x_i
        beta_t = 1 / gamma_t = sqrt((rho sqrt(t) + sum_{s<t} M_s) / ln k)
        M_s = sum of 1 / x_u[A_u] over the rounds u of arm A_s that were missing when round s was decided
        lhat_s = loss / (x_s[A_s] + epsilon_s),  epsilon_s = 1 / sqrt(s)

    Needs rho, a number of missing rounds that no arm ever exceeds. It counts the rounds in which the arm's loss would
    be missing if the arm had been played. The delays may depend on the arm, if they are fixed in advance.

    >>> learner = Hoeven2022(2, most_missing=3, seed=1)
    >>> late = [learner.ask() for _ in range(3)]
    >>> for decision in late:
    ...     learner.tell(decision, loss=1.0 if decision.arm == 0 else 0.0)
    >>> bool(learner.distribution()[1] > 0.5)
    True
    """

    def __init__(self, n_arms: int, most_missing: int, *, seed: int | None = None) -> None:
        self._n_arms = whole_number("n_arms", n_arms, 1)
        self._most_missing = whole_number("most_missing", most_missing, 0)  # rho
        self._policy = ArgminPolicy(self._n_arms, generator_of(seed))
        self._missing = np.zeros(self._n_arms)  # the sum of 1 / x over the open rounds of each arm
        self._work = 0.0  # sum of M_s
        self._rounds: OpenRounds[Draw] = OpenRounds()

    def _rates(self) -> tuple[float, float]:
        """alpha and beta of the next round."""
        alpha = math.sqrt(self.round + 1)
        work = self._most_missing * alpha + self._work
        return alpha, math.sqrt(work / math.log(self._n_arms)) if self._n_arms > 1 else 0.0

    def ask(self) -> Decision:
        """Decide the next round."""
        alpha, beta = self._rates()
        arm, x = self._policy.draw(alpha, beta)
        probability = float(x[arm])
        self._work += self._missing[arm]
        self._missing[arm] += 1 / probability
        return self._rounds.open(arm, probability, Draw(1 / alpha, 1 / probability))

    def _learn(self, round: int, loss: float) -> None:
        value, (arm, probability, draw) = self._rounds.close(round, loss)
        self._policy.losses[arm] += value / (probability + draw.epsilon)
        self._missing[arm] = max(0.0, self._missing[arm] - draw.weight)  # rounding must not make it negative

    def distribution(self) -> Floats:
        """x of the next round, the probability of each arm. Changes nothing."""
        return self._policy.distribution(*self._rates())


def bound(n_arms: int, n_rounds: int, total_delay: float, most_missing: int) -> float:
    """Reg <= 9 sqrt(kn) + rho / 2 + 3 sqrt(D ln k), for delays that are the same for all arms (HC22, Theorem 3) [read].

    With delays that depend on the arm, the expected sum of x_t[i] rho_t[i] over rounds and arms takes the place of D.
    """
    of_delay = 3 * math.sqrt(total_delay * math.log(n_arms))
    return 9 * math.sqrt(n_arms * n_rounds) + most_missing / 2 + of_delay
