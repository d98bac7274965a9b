"""Exp3 that can restart, for the doubling baselines."""

from typing import Any, final

from belated.arrays import Floats
from belated.baselines.open_rounds import OpenRounds
from belated.baselines.seeds import Seeds
from belated.learner.decisions import Decision
from belated.learner.ftrl import FTRL
from belated.tunings import Exp3


@final
class RestartingExp3:
    """Exp3 with a constant rate in each epoch. A new epoch starts from nothing and drops the feedback of older ones."""

    def __init__(self, n_arms: int, eta: float, seed: int | None) -> None:
        self.n_arms = n_arms
        self.epochs = 0
        self.rounds: OpenRounds[tuple[int, int]] = OpenRounds()  # the note is the epoch and the base's own round
        self._seeds = Seeds(seed)
        self._base = FTRL(n_arms, Exp3(eta), seed=self._seeds[0])

    def restart(self, eta: float) -> None:
        """Start a new epoch."""
        self.epochs += 1
        self._base = FTRL(self.n_arms, Exp3(eta), seed=self._seeds[self.epochs])

    def ask(self) -> Decision:
        """Decide the next round."""
        own = self._base.ask()
        return self.rounds.open(own.arm, own.probability, (self.epochs, own.round))

    def take(self, round: Any, loss: Any) -> tuple[float, int]:
        """Close a round. Returns its loss and the base's own round, or 0 for a round of an older epoch."""
        value, entry = self.rounds.close(round, loss)
        epoch, own_round = entry.note
        return value, own_round if epoch == self.epochs else 0

    def feed(self, own_round: int, loss: float) -> None:
        """Tell the base a loss."""
        self._base.tell(own_round, loss)

    def distribution(self) -> Floats:
        """The probability of each arm in the next round if no new epoch starts."""
        return self._base.distribution()
