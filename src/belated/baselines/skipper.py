"""Skipper, which leaves out rounds with excessive delays, and DEW's learning rate for its base.

TCS19: T. S. Thune, N. Cesa-Bianchi, Y. Seldin. Nonstochastic Multiarmed Bandits with Unrestricted Delays. NeurIPS 2019.
The paper's text was not at hand, so its learning rate is as commonly quoted. The bound is proven for this rate.
"""

import math
from typing import ClassVar, final

from numpy.typing import ArrayLike

from belated.arrays import Floats
from belated.baselines import constant_rate
from belated.baselines.base_learners import MakeBase, as_maker
from belated.baselines.baseline import Baseline
from belated.baselines.open_rounds import OpenRounds
from belated.baselines.seeds import Seeds, generator_of
from belated.bounds import clip
from belated.learner.decisions import Decision
from belated.learner.ftrl import FTRL
from belated.tunings import AdaptiveExp3
from belated.validation import positive_number, whole_number


@final
class Skipper(Baseline):
    """The base plays the rounds with delay d_t < beta. The others are drawn from its distribution and dropped.

        S_beta = { t : d_t >= beta },    Reg <= |S_beta| + R_base of the other rounds      [derived]

    Needs each delay at action time, `ask(delay)`, and beta. The paper's base is DEW, `Exp3(dew_rate(...))`, which also
    needs n and D_beta. The default base is the delay-adaptive Exp3, which needs nothing.
    """

    needs_delay: ClassVar[bool] = True

    def __init__(self, n_arms: int, beta: float, base: MakeBase | None = None, *, seed: int | None = None) -> None:
        self._n_arms, self._beta = whole_number("n_arms", n_arms, 1), positive_number("beta", beta)
        seeds = Seeds(seed)
        self._base = as_maker(base, lambda k, seed: FTRL(k, AdaptiveExp3(), seed=seed))(self._n_arms, seeds[0])
        self._generator = generator_of(seeds[1])
        self._rounds: OpenRounds[int] = OpenRounds()  # the note is the base's own round, 0 if skipped

    @property
    def skipped(self) -> int:
        """|S_beta|, the number of rounds skipped so far."""
        return self.round - self._base.round

    def ask(self, delay: int = 0) -> Decision:
        """Decide the next round, whose feedback comes at the end of the round `delay` later."""
        if whole_number("delay", delay, 0, math.inf) < self._beta:
            own = self._base.ask()
            return self._rounds.open(own.arm, own.probability, own.round)
        x = self._base.distribution()
        arm = int(self._generator.choice(self._n_arms, p=x))
        return self._rounds.open(arm, float(x[arm]), 0)

    def _learn(self, round: int, loss: float) -> None:
        value, entry = self._rounds.close(round, loss)
        if entry.note:
            self._base.tell(entry.note, value)

    def distribution(self, delay: int = 0) -> Floats:
        """The probability of each arm in the next round. It is the same for every delay. Changes nothing."""
        return self._base.distribution()


def dew_rate(n_arms: int, delays: ArrayLike, beta: float = math.inf) -> float:
    """DEW's constant learning rate for the rounds with d_t < beta (TCS19, as commonly quoted).

    eta = min{ sqrt(ln k / (e k n / 2 + D_beta)), 1 / (4 e d_max) },    d_max < beta the longest delay kept
    """
    waits = clip(delays)
    kept = waits[waits < beta]
    eta = math.sqrt(math.log(n_arms) / (math.e * n_arms * waits.size / 2 + float(kept.sum())))
    return min(eta, 1 / (4 * math.e * max(float(kept.max(initial=0)), 1.0)))


def bound(n_arms: int, delays: ArrayLike, beta: float = math.inf) -> float:
    """The bound over DEW with `dew_rate` (docs/theory/baselines.md) [derived].

        Reg <= |S_beta| + ln k / eta + eta (k (n - |S_beta|) / 2 + D_beta / 4)

    An infinite beta skips nothing and gives the bound of DEW itself.
    """
    waits = clip(delays)
    kept = waits[waits < beta]
    of_base = constant_rate.bound(n_arms, kept.size, float(kept.sum()), dew_rate(n_arms, delays, beta))
    return waits.size - kept.size + of_base
