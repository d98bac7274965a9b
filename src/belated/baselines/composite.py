"""A wrapper for composite anonymous feedback. It uses only the sum of the losses that arrive in a round.

CGM18: N. Cesa-Bianchi, C. Gentile, Y. Mansour. Nonstochastic Bandits with Composite Anonymous Feedback. COLT 2018.
"""

import copy
import math
from collections import deque
from typing import ClassVar, final

from belated.arrays import Floats
from belated.baselines.base_learners import MakeBase, as_maker
from belated.baselines.baseline import Baseline, one_hot
from belated.baselines.open_rounds import OpenRounds
from belated.baselines.seeds import Seeds, generator_of
from belated.errors import InvalidInput
from belated.learner.decisions import Decision
from belated.learner.ftrl import FTRL
from belated.scalars import as_float
from belated.tunings import AdaptiveExp3
from belated.validation import whole_number


@final
class Composite(Baseline):
    """CGM18's wrapper. Repeats an arm until all arriving losses belong to it, then learns from their sum [read].

        B_t ~ Bernoulli(q),  q = 1 / (2 (2d - 1))
        round t updates if  B_t = 1  and  t >= (the last update, at first 0) + 2d - 1
        after an update the next arm is drawn, otherwise the arm is repeated
        the base is told  (1 / 2d) sum_{s = t-d+1}^t Z_s,  where Z_s is the sum of the losses that came in round s

    Needs d >= 2 such that every loss comes within d rounds including its own, so every delay is below d. Later feedback
    is credited to the wrong arm. A sum above 2d counts as 2d. The base is a learner for feedback without delay. The
    default is Exp3 with the anytime rate sqrt(ln k / (k j)) at its j-th draw. With Exp3,
    Reg <= 8 sqrt(d (4k + 1) n ln k) + O(d).
    """

    feedback: ClassVar[str] = "sum"

    def __init__(self, n_arms: int, d: int, base: MakeBase | None = None, *, seed: int | None = None) -> None:
        self._n_arms, self._d = whole_number("n_arms", n_arms, 1), whole_number("d", d, 2)
        seeds = Seeds(seed)
        self._base = as_maker(base, lambda k, seed: FTRL(k, AdaptiveExp3(), seed=seed))(self._n_arms, seeds[0])
        self._generator = generator_of(seeds[1])
        self._drawn: Decision | None = None  # the base's last decision, whose arm is repeated
        self._totals: deque[float] = deque(maxlen=self._d)  # Z of the last d rounds
        self._since = 0  # rounds since the last update
        self._coin = False  # B of the last round
        self._rounds: OpenRounds[None] = OpenRounds()

    @property
    def updates(self) -> int:
        """How often the base has been updated."""
        return self._base.round - self._base.outstanding

    @property
    def _update_due(self) -> bool:
        return self._coin and self._since >= 2 * self._d - 1

    def _sum(self) -> float:
        return min(1.0, sum(self._totals) / (2 * self._d))

    def ask(self) -> Decision:
        """Finish the previous round, with an update if one is due, and decide the next round."""
        if self._drawn and self._update_due:
            self._base.tell(self._drawn.round, self._sum())
            self._drawn, self._since = None, 0
        self._coin = bool(self._generator.random() < 1 / (2 * (2 * self._d - 1)))
        self._since += 1
        self._totals.append(0.0)
        if self._drawn:
            return self._rounds.open(self._drawn.arm, 1.0, None)
        self._drawn = self._base.ask()
        return self._rounds.open(self._drawn.arm, self._drawn.probability, None)

    def _learn(self, round: int, loss: float) -> None:
        """Add the loss in [0, 1] of an earlier round to the sum of this round. The round number is not used."""
        value, _ = self._rounds.close(round, loss)
        self._totals[-1] += value

    def tell_sum(self, total: float) -> None:
        """Add a sum of losses of any rounds to the sum of this round. Those rounds stay open here."""
        if not (as_float(total) >= 0 and self._totals):
            raise InvalidInput(f"a sum of losses must be a number >= 0 after a decision, got {total!r}")
        self._totals[-1] += as_float(total)

    def distribution(self) -> Floats:
        """The probability of each arm in the next round. Changes nothing."""
        if self._drawn is None:
            return self._base.distribution()
        if not self._update_due:
            return one_hot(self._n_arms, self._drawn.arm)
        ahead = copy.deepcopy(self._base)
        ahead.tell(self._drawn.round, self._sum())
        return ahead.distribution()


def leading_term(n_arms: int, n_rounds: int, d: int) -> float:
    """The first term of Reg <= 8 sqrt(d (4k + 1) n ln k) + O(d), with Exp3 as the base [read].

    Alone it is no bound. The paper does not say how large the second term is.
    """
    return 8 * math.sqrt(d * (4 * n_arms + 1) * n_rounds * math.log(n_arms))
