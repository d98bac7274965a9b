"""QPM-D, Queued Partial Monitoring with Delays. Its base learner never sees a delay.

P. Joulani, A. Gyorgy, C. Szepesvari. Online Learning under Delayed Feedback. ICML 2013, Algorithm 2.
"""

import math
from collections import deque
from collections.abc import Sequence
from typing import final

from belated.arrays import Floats
from belated.baselines.base_learners import MakeBase, as_maker
from belated.baselines.baseline import Baseline, one_hot
from belated.baselines.delayed_ucb import DelayedUCB1
from belated.baselines.open_rounds import OpenRounds
from belated.baselines.seeds import Seeds
from belated.learner.decisions import Decision
from belated.validation import whole_number


@final
class Queued(Baseline):
    """Keeps a queue of observations for each arm, which wait until the base picks that arm [read].

        base picks i:  queue i not empty -> tell the base its oldest observation at once, and let it pick again
                       queue i empty     -> play i, round after round, until an observation of i has come

    The base sees no delays, because its j-th pick of an arm gets the j-th observation. The default base is UCB1. The
    next arm is settled as soon as the last report has come, so `distribution` puts all probability on one arm even if
    the base is random. Needs nothing in advance, but needs independent, identically distributed losses. An adversary's
    observations would be out of date when they leave the queue.
    """

    def __init__(self, n_arms: int, base: MakeBase | None = None, *, seed: int | None = None) -> None:
        self._n_arms = whole_number("n_arms", n_arms, 1)
        self._base = as_maker(base, lambda k, seed: DelayedUCB1(k, seed=seed))(self._n_arms, Seeds(seed)[0])
        self._queues: list[deque[float]] = [deque() for _ in range(self._n_arms)]
        self._pick = self._base.ask()
        self._rounds: OpenRounds[None] = OpenRounds()

    @property
    def queued(self) -> list[int]:
        """The number of observations of each arm that the base has not seen."""
        return [len(queue) for queue in self._queues]

    def ask(self) -> Decision:
        """Decide the next round."""
        return self._rounds.open(self._pick.arm, 1.0, None)

    def _learn(self, round: int, loss: float) -> None:
        value, entry = self._rounds.close(round, loss)
        self._queues[entry.arm].append(value)
        while self._queues[self._pick.arm]:
            self._base.tell(self._pick.round, self._queues[self._pick.arm].popleft())
            self._pick = self._base.ask()

    def distribution(self) -> Floats:
        """All probability on the next arm."""
        return one_hot(self._n_arms, self._pick.arm)


def bound(gaps: Sequence[float], n_rounds: int, most_outstanding: float) -> float:
    """UCB1's own bound (Auer et al. 2002, Theorem 1), plus gap_i G_i for the waiting [read].

    Reg <= sum over gap_i > 0 of  8 ln n / gap_i + (1 + pi^2 / 3) gap_i + gap_i G_i,    G_i <= G = max_t o_t
    """
    once = 1 + math.pi**2 / 3
    return sum(8 * math.log(n_rounds) / gap + (once + most_outstanding) * gap for gap in gaps if gap > 0)
