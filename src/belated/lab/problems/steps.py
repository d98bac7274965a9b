"""A game that is played a round at a time. `problem.start(seed)` begins one.

game, learner = problem.start(seed=1), FTRL(problem.n_arms, seed=1)
while not game.is_over:
    for report in game.step(learner.ask().arm).reports:
        learner.tell(report.round, report.loss)
print(game.regret)
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, final

import numpy as np

from belated.arrays import Floats
from belated.errors import InvalidInput
from belated.validation import whole_number

AT_ONCE = 1000  # rounds whose losses are lists at the same time


class Report(NamedTuple):
    """The feedback of one round. This is all that a learner may use."""

    round: int  # from 1
    arm: int
    loss: float


class Step(NamedTuple):
    """What happened in a round."""

    round: int  # from 1
    reports: list[Report]  # that arrive at its end, in the order of their rounds
    suffered: float  # the loss of the arm that was played. A learner must not use it before its report


@final
class StepGame:
    """A game under way. Every call of `step` plays a round."""

    def __init__(self, n_arms: int, n_rounds: int, rows: Callable[[Callable[[], int]], Iterator[Any]]) -> None:
        self.n_arms, self.n_rounds = n_arms, n_rounds
        self.round = 0  # rounds played
        self.is_over = False  # whether all rounds are played
        self.suffered = 0.0  # the losses of the arms that were played
        self._arm = 0  # played last
        self._due: dict[int, list[Report]] = defaultdict(list)
        self._pieces = _pieces(rows(lambda: self._arm))
        self._before, self._totals = 0, np.zeros(n_arms)  # rounds before this block, and the arms' losses there
        self._block = np.zeros((0, n_arms))
        self._coming: Iterator[tuple[int, list[float], Any]] = iter(())  # rounds with their losses and arrivals
        self._reported: list[list[float]] | None = None  # only if delays are by arm

    @property
    def waiting(self) -> int:
        """The rounds whose reports come later in this game. The others have come, or never come."""
        return sum(map(len, self._due.values()))

    @property
    def totals(self) -> Floats:
        """What each single arm would have lost so far, on the losses of this very game."""
        return np.asarray(self._totals + self._block[: self.round - self._before].sum(axis=0))

    @property
    def regret(self) -> float:
        """The losses suffered so far, less those of the best single arm."""
        return float(self.suffered - self.totals.min())

    @property
    def losses(self) -> Floats:
        """What each arm would have lost in the last round. A learner must not see it."""
        if self.round == 0:
            raise InvalidInput("no round has been played yet")
        return np.array(self._block[self.round - self._before - 1])

    def step(self, arm: int) -> Step:
        """Play an arm in the next round. Returns what arrives at its end."""
        if type(arm) is not int or not 0 <= arm < self.n_arms:
            arm = whole_number("arm", arm, 0, self.n_arms - 1)
        t, losses, arrives = next(self._coming, None) or self._fetch()
        self.round, self._arm, due = t, arm, self._due
        loss = reported = losses[arm]
        self.suffered += loss
        if self._reported is not None:
            arrives, reported = arrives[arm], self._reported[t - self._before - 1][arm]
        if arrives <= self.n_rounds:
            due[arrives].append(_new(Report, (t, arm, reported)))
        if t == self.n_rounds:
            self.is_over = True
        step: Step = _new(Step, (t, due.pop(t, None) or [], loss))
        return step

    def _fetch(self) -> tuple[int, list[float], Any]:
        """The rows of the next rounds. Returns the first."""
        if self.is_over:
            raise InvalidInput(f"the game of {self.n_rounds:,} rounds is over. Begin another with problem.start(seed)")
        piece = next(self._pieces)
        self._totals, self._before = self.totals, self.round
        self._block = piece.losses
        rounds, is_by_arm = np.arange(self.round + 1, self.round + 1 + len(piece.losses)), piece.delays.ndim == 2
        arrivals = (rounds[:, None] if is_by_arm else rounds) + piece.delays
        self._reported = piece.reported.tolist() if is_by_arm else None
        self._coming = zip(rounds.tolist(), piece.losses.tolist(), arrivals.tolist(), strict=True)
        return next(self._coming)


_new: Any = tuple.__new__  # Report(...) without its detour through Python


def _pieces(rows: Iterator[Any]) -> Iterator[Any]:
    """The same rows, a smaller block at a time."""
    for block in rows:
        for start in range(0, len(block.losses), AT_ONCE):
            yield type(block)(*(part[start : start + AT_ONCE] for part in block))
