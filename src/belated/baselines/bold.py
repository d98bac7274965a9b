"""BOLD, Black-box Online Learning under Delayed feedback. It keeps a pool of learners that wait for their feedback.

P. Joulani, A. Gyorgy, C. Szepesvari. Online Learning under Delayed Feedback. ICML 2013, Algorithm 1.
"""

import math
from heapq import heappop, heappush
from typing import final

from belated.arrays import Floats
from belated.baselines.base_learners import Base, MakeBase, as_maker
from belated.baselines.baseline import Baseline
from belated.baselines.open_rounds import OpenRounds
from belated.baselines.seeds import Seeds
from belated.learner.decisions import Decision
from belated.learner.ftrl import FTRL
from belated.tunings import Tsallis
from belated.validation import whole_number


@final
class BOLD(Baseline):
    """Plays each round with a base learner that waits for no feedback, and makes a new one if all are waiting.

        instance of round t = the first free one,    busy until the feedback of round t has come      [read]

    The base can be any learner for feedback without delay. The default is Tsallis-INF. Needs nothing in advance. The
    pool holds G + 1 instances, where G = max_t o_t. If the base has regret at most f(n) with f concave, then
    Reg <= (G + 1) f(n / (G + 1)).
    """

    def __init__(self, n_arms: int, base: MakeBase | None = None, *, seed: int | None = None) -> None:
        self._n_arms = whole_number("n_arms", n_arms, 1)
        self._maker = as_maker(base, lambda k, seed: FTRL(k, Tsallis(), seed=seed))
        self._seeds = Seeds(seed)
        self._pool: list[Base] = []
        self._free: list[int] = []  # a heap
        self._rounds: OpenRounds[tuple[int, int]] = OpenRounds()  # the note is the instance and its own round

    @property
    def instances(self) -> int:
        """The number of learners in the pool."""
        return len(self._pool)

    def _new(self) -> Base:
        return self._maker(self._n_arms, self._seeds[len(self._pool)])

    def ask(self) -> Decision:
        """Decide the next round."""
        if not self._free:
            self._pool.append(self._new())
            heappush(self._free, len(self._pool) - 1)
        instance = heappop(self._free)
        own = self._pool[instance].ask()
        return self._rounds.open(own.arm, own.probability, (instance, own.round))

    def _learn(self, round: int, loss: float) -> None:
        value, entry = self._rounds.close(round, loss)
        instance, own_round = entry.note
        self._pool[instance].tell(own_round, value)
        heappush(self._free, instance)

    def distribution(self) -> Floats:
        """The probability of each arm in the next round. Changes nothing."""
        return (self._pool[self._free[0]] if self._free else self._new()).distribution()


def bound(n_arms: int, n_rounds: int, most_outstanding: int) -> float:
    """Reg <= (G + 1) f(n / (G + 1)) over Tsallis-INF, with f(n) = 4 sqrt(kn) + 1 and G = max_t o_t [read]."""
    pool = most_outstanding + 1
    return pool * (4 * math.sqrt(n_arms * n_rounds / pool) + 1)
