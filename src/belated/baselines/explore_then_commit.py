"""Explore, then commit to one arm for the rest of the game.

LS20: T. Lattimore, C. Szepesvari. Bandit Algorithms. Cambridge University Press 2020, Algorithm 1 and Theorem 6.1.
"""

import math
from collections.abc import Sequence
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from belated.arrays import Floats
from belated.baselines.baseline import Baseline, one_hot
from belated.baselines.open_rounds import OpenRounds
from belated.baselines.seeds import generator_of
from belated.learner.decisions import Decision
from belated.validation import as_delays, whole_number


@final
class ExploreThenCommit(Baseline):
    """Plays the arms in turn until each has m reports, and then the arm with the least mean for ever.

        A_t = (t - 1) mod k             until every arm has m OBSERVED rounds
        A_t = argmin_i mean_i           afterwards, with the means of that moment

    Without delays it is the book's rule [read], which explores for m k rounds. Reports after the commitment change
    nothing. Needs independent, identically distributed losses, and a good m needs n. The seed is checked and not used.

    >>> learner = ExploreThenCommit(3, m=1)
    >>> for loss in (0.7, 0.2, 0.5):
    ...     learner.tell(learner.ask(), loss)
    >>> learner.committed
    1
    """

    def __init__(self, n_arms: int, m: int, *, seed: int | None = None) -> None:
        self._n_arms, self._m = whole_number("n_arms", n_arms, 1), whole_number("m", m, 1)
        generator_of(seed)
        self._losses = np.zeros(self._n_arms)
        self._observed = np.zeros(self._n_arms)
        self._committed: int | None = None
        self._rounds: OpenRounds[None] = OpenRounds()

    @property
    def committed(self) -> int | None:
        """The arm that it has committed to, or None while it explores."""
        return self._coming()[1]

    def _coming(self) -> tuple[int, int | None]:
        """The next arm, and the committed one."""
        committed = self._committed
        if committed is None and self._observed.min() >= self._m:
            committed = int((self._losses / self._observed).argmin())
        return (self.round % self._n_arms if committed is None else committed), committed

    def ask(self) -> Decision:
        """Decide the next round."""
        arm, self._committed = self._coming()
        return self._rounds.open(arm, 1.0, None)

    def _learn(self, round: int, loss: float) -> None:
        value, entry = self._rounds.close(round, loss)
        self._losses[entry.arm] += value
        self._observed[entry.arm] += 1

    def distribution(self) -> Floats:
        """All probability on the next arm."""
        return one_hot(self._n_arms, self._coming()[0])


def exploration(n_arms: int, n_rounds: int) -> int:
    """m = (n / k)^(2/3) (ln n)^(1/3), rounded up, at most n / k. It suits all gaps alike."""
    m = math.ceil(math.cbrt((n_rounds / n_arms) ** 2 * math.log(n_rounds)))
    return max(1, min(m, n_rounds // n_arms))


def bound(gaps: Sequence[float], m: int, delays: ArrayLike) -> float:
    """The bound for independent, identically distributed losses (docs/theory/baselines.md) [derived].

        Reg <= sum_i gap_i ( N_i + (n - sum_j N_j) exp(-m gap_i^2) )

    N_i is how often arm i is played before the commitment. The delays alone decide it. `gaps` has a gap of 0 for the
    best arm. Every order of the arms is tried, because the best arm can be any.
    """
    n = as_delays(delays).size
    drawn = draws_until_commitment(len(gaps), m, delays)
    rest = sum(gap * (n - drawn.sum()) * math.exp(-m * gap * gap) for gap in gaps)
    return float(np.sort(drawn) @ np.sort(gaps) + rest)


def draws_until_commitment(n_arms: int, m: int, delays: ArrayLike) -> Floats:
    """N_i for each arm. The learner is played, with all losses 0."""
    learner, counts, due = ExploreThenCommit(n_arms, m), np.zeros(n_arms), dict[int, list[int]]()
    for t, delay in enumerate(as_delays(delays).tolist(), 1):
        decision = learner.ask()
        if learner.committed is not None:
            break
        counts[decision.arm] += 1
        due.setdefault(t + delay, []).append(t)
        for s in due.pop(t, []):
            learner.tell(s, 0.0)
    return counts
