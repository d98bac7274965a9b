"""Exp3 with skipping and doubling, which needs neither the horizon nor the total delay.

TCS19: T. S. Thune, N. Cesa-Bianchi, Y. Seldin. Nonstochastic Multiarmed Bandits with Unrestricted Delays. NeurIPS 2019.
ZS20: J. Zimmert, Y. Seldin. An Optimal Algorithm for Adversarial Bandits with Arbitrary Delays. AISTATS 2020.
TCS19's text was not at hand, so beta_w and eta_w are as commonly quoted. The bound is proven for them.
"""

import math
from typing import ClassVar, final

from numpy.typing import ArrayLike

from belated.arrays import Floats
from belated.baselines.baseline import Baseline
from belated.baselines.doubling_epochs import Epoch, Epochs
from belated.learner.decisions import Decision
from belated.validation import as_delays, whole_number


class InEpochs(Baseline):
    """The epochs that both learners share, and what the epochs have cost."""

    def __init__(self, n_arms: int, seed: int | None) -> None:
        self._n_arms = whole_number("n_arms", n_arms, 1)
        self._epochs = Epochs(self._n_arms, seed)
        self._rounds = self._epochs.play.rounds

    @property
    def epoch(self) -> Epoch:
        """The epoch of the last round, with that round in it."""
        return self._epochs.epoch

    @property
    def charged(self) -> float:
        """The bound on the regret so far."""
        return self._epochs.charged


@final
class Doubling(InEpochs):
    """TCS19's doubling. Epochs of Exp3 skip the rounds with delay >= beta_w, known at action time.

        epoch w:  beta_w = sqrt(2^w) / (4 e ln k),  eta_w = ln k / sqrt(2^w),  S = { t in the epoch : d_t >= beta_w }
        while     max{ |S|^2, (e k len / 2 + D_beta) ln k } <= 2^w  including the next round
        then      w + 1, and Exp3 starts again from nothing

    Needs each delay at action time, `ask(delay)`. The paper says that Reg is of order min over beta of |S_beta| +
    beta ln k + (kn + D_beta) / beta. `bound` adds up what the epochs cost [derived].
    """

    needs_delay: ClassVar[bool] = True

    def __init__(self, n_arms: int, *, seed: int | None = None) -> None:
        super().__init__(n_arms, seed)
        self._skipped: set[int] = set()  # the open rounds of S

    def _coming(self, delay: int) -> Epoch:
        """The epoch including the next round, which is this epoch or the first later one that has room for it."""
        delay, epoch = whole_number("delay", delay, 0, math.inf), self.epoch
        while True:
            longer = epoch.extended(1, 0) if delay >= epoch.beta else epoch.extended(0, delay)
            if longer.fits:
                return longer
            epoch = epoch.next()

    def ask(self, delay: int = 0) -> Decision:
        """Decide the next round, whose feedback comes at the end of the round `delay` later."""
        decision = self._epochs.ask(self._coming(delay))
        if delay >= self.epoch.beta:
            self._skipped.add(decision.round)
        return decision

    def _learn(self, round: int, loss: float) -> None:
        value, own_round = self._epochs.play.take(round, loss)
        if round in self._skipped:
            self._skipped.remove(round)
        elif own_round:
            self._epochs.play.feed(own_round, value)

    def distribution(self, delay: int = 0) -> Floats:
        """The probability of each arm in the next round if it has this delay. Changes nothing."""
        return self._epochs.distribution(self._coming(delay))


@final
class WaitingDoubling(InEpochs):
    """TCS19's doubling with ZS20's skipping. The time waited so far takes the place of the delay [derived].

    The epochs, beta_w and eta_w are those of `Doubling`. At the start of round t, an outstanding round s of the epoch
    is skipped permanently once t - s >= beta_w, and its feedback is dropped. D_beta is the number of rounds still
    waited for, summed over the rounds t.

    Needs nothing in advance. ZS20 names it in a footnote, without a theorem. S and the epochs depend on the delays
    alone. So an epoch costs at most |S| + ln k / eta_w + eta_w (k len / 2 + D_beta / 4) (docs/theory/baselines.md).
    `bound` adds that up.
    """

    needs_delay: ClassVar[bool] = False

    def __init__(self, n_arms: int, *, seed: int | None = None) -> None:
        super().__init__(n_arms, seed)
        self._waiting: dict[int, None] = {}  # rounds of the epoch still waited for, oldest first

    def _coming(self) -> tuple[Epoch, list[int]]:
        """The epoch including the next round, as in `Doubling`, and the rounds it waits for."""
        waiting = [s for s in self._waiting if self.round + 1 - s < self.epoch.beta]
        epoch = self.epoch.extended(len(self._waiting) - len(waiting), len(waiting))
        while not epoch.fits:
            epoch, waiting = epoch.next().extended(0, 0), []
        return epoch, waiting

    def ask(self) -> Decision:
        """Decide the next round."""
        coming, waiting = self._coming()
        decision = self._epochs.ask(coming)
        self._waiting = dict.fromkeys([*waiting, decision.round])
        return decision

    def _learn(self, round: int, loss: float) -> None:
        value, own_round = self._epochs.play.take(round, loss)
        if round in self._waiting:
            del self._waiting[round]
            self._epochs.play.feed(own_round, value)

    def distribution(self) -> Floats:
        """The probability of each arm in the next round. Changes nothing."""
        return self._epochs.distribution(self._coming()[0])


def bound(n_arms: int, delays: ArrayLike, *, known: bool = True) -> float:
    """The bound of Doubling, or of WaitingDoubling if the delays are not `known` at action time [derived].

        Reg <= sum over the epochs of |S| + ln k / eta_w + eta_w (k len / 2 + D_beta / 4)

    The epochs depend on the delays alone, so a game with all losses 0 gives them.
    """
    learner = Doubling(n_arms, seed=0) if known else WaitingDoubling(n_arms, seed=0)
    due: dict[int, list[int]] = {}
    for t, delay in enumerate(as_delays(delays).tolist(), 1):
        _ = learner.ask(delay) if isinstance(learner, Doubling) else learner.ask()
        due.setdefault(t + delay, []).append(t)
        for s in due.pop(t, []):
            learner.tell(s, 0.0)
    return learner.charged
