"""The epochs of TCS19's doubling, for both ways of skipping rounds.

TCS19: T. S. Thune, N. Cesa-Bianchi, Y. Seldin. Nonstochastic Multiarmed Bandits with Unrestricted Delays. NeurIPS 2019.
The paper's text was not at hand, so its constants are as commonly quoted. The charge is proven for them.
"""

import math
from typing import NamedTuple, final

import numpy as np

from belated.arrays import Floats
from belated.baselines import constant_rate
from belated.baselines.restarting_exp3 import RestartingExp3
from belated.learner.decisions import Decision


class Epoch(NamedTuple):
    """Epoch w so far. It lasts while max{ |S|^2, (e k len / 2 + D_beta) ln k } <= 2^w."""

    n_arms: int
    w: int = 0
    length: int = 0  # len
    skipped: int = 0  # |S|
    backlog: int = 0  # D_beta

    @property
    def beta(self) -> float:
        """sqrt(2^w) / (4 e ln k). Delays this long or longer are skipped."""
        return 2 ** (self.w / 2) / (4 * math.e * math.log(self.n_arms)) if self.n_arms > 1 else math.inf

    @property
    def eta(self) -> float:
        """The learning rate, ln k / sqrt(2^w)."""
        return math.log(self.n_arms) / 2 ** (self.w / 2) if self.n_arms > 1 else 1.0

    @property
    def work(self) -> float:
        """e k len / 2 + D_beta, which decides how long the epoch lasts."""
        return math.e * self.n_arms * self.length / 2 + self.backlog

    @property
    def fits(self) -> bool:
        """Whether the epoch still satisfies its condition."""
        return max(self.skipped**2, self.work * math.log(self.n_arms)) <= math.ldexp(1.0, self.w)

    @property
    def charge(self) -> float:
        """The most the epoch adds to the regret, |S| + ln k / eta + eta (k len / 2 + D_beta / 4) <= 3 sqrt(2^w)."""
        if not self.length:
            return 0.0
        return self.skipped + constant_rate.bound(self.n_arms, self.length, self.backlog, self.eta)

    def extended(self, skipped: int, backlog: int) -> "Epoch":
        """The epoch with one more round."""
        return Epoch(self.n_arms, self.w, self.length + 1, self.skipped + skipped, self.backlog + backlog)

    def next(self) -> "Epoch":
        """The next epoch, empty."""
        return Epoch(self.n_arms, self.w + 1)


@final
class Epochs:
    """Exp3 played in epochs, and what the epochs so far have cost."""

    def __init__(self, n_arms: int, seed: int | None) -> None:
        self.epoch = Epoch(n_arms)
        self.play = RestartingExp3(n_arms, self.epoch.eta, seed)
        self._charged = 0.0

    @property
    def charged(self) -> float:
        """The bound on the regret so far."""
        return self._charged + self.epoch.charge

    def ask(self, coming: Epoch) -> Decision:
        """Decide the next round. `coming` is the epoch including that round."""
        if coming.w > self.epoch.w:
            self._charged = self.charged
            self.play.restart(coming.eta)
        self.epoch = coming
        return self.play.ask()

    def distribution(self, coming: Epoch) -> Floats:
        """The probability of each arm in the next round."""
        if coming.w > self.epoch.w:
            return np.full(coming.n_arms, 1 / coming.n_arms)
        return self.play.distribution()
