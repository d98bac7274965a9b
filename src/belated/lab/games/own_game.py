"""A game of your own, checked in every block."""

from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from belated.arrays import Floats
from belated.errors import BelatedError, GameError, InvalidInput
from belated.lab.algorithms import Game
from belated.lab.games.mismatch import log_evidence
from belated.validation import as_numbers

SLACK = 1e-9  # for sums that were rounded


@final
class OwnGame:
    """Plays another game. What it says of its losses must fit the arms that it drew.

    It does not say its distribution. But if <x, l> is m, and all losses of the round lie in [a, b], the variance of the
    drawn loss is at most (b - m)(m - a). That is enough for the test in mismatch.py.
    """

    def __init__(self, game: Game, n_arms: int, n_rounds: int, seed: int, name: str) -> None:
        self.game, self.name, self.seed, self.t = game, name, seed, 0
        self.difference = self.variance = 0.0
        self.n_arms = n_arms
        self.arms: NDArray[np.int32] = np.empty(n_rounds, np.int32)

    @property
    def log_evidence(self) -> float:
        """The evidence that the expected losses do not fit the arms."""
        return log_evidence(self.difference, self.variance)

    def play(self, losses: Floats) -> tuple[Floats, Floats]:
        """Play a round for each row. Returns <x_t, l_t> and the loss of the drawn arm."""
        rounds = np.arange(len(losses))
        try:
            given: Any = self.game.play(losses.copy())
            drawn = np.asarray(self.game.arms)[self.t : self.t + len(losses)]
        except BelatedError:  # says what is wrong
            raise
        except Exception as error:
            what = f"{self._where()}: its game failed ({type(error).__name__}: {error})"
            raise GameError(what) from error
        arms = self._checked_arms(drawn, len(losses))
        expected, suffered = self._checked_losses(given, len(losses))
        low, high = losses.min(axis=1), losses.max(axis=1)
        if (suffered != losses[rounds, arms]).any():
            raise self._refusal("the losses that it suffered are not those of its arms")
        if not ((expected >= low - SLACK) & (expected <= high + SLACK)).all():
            raise self._refusal("no distribution of the arms gives the expected losses that it says")
        self.difference += float((expected - suffered).sum())
        self.variance += float((np.maximum(high - expected, 0) * np.maximum(expected - low, 0)).sum())
        self.arms[self.t : self.t + len(losses)] = arms
        self.t += len(losses)
        return expected, suffered

    def _checked_arms(self, arms: Any, n: int) -> NDArray[np.int32]:
        if arms.dtype.kind not in "iu" or arms.shape != (n,) or not (arms.min() >= 0 and arms.max() < self.n_arms):
            wanted = f"{n} whole numbers from 0 to {self.n_arms - 1} for these rounds"
            raise self._refusal(f"its arms must be {wanted}, got {arms!r:.80}")
        return np.asarray(arms, np.int32)

    def _checked_losses(self, given: Any, n: int) -> tuple[Floats, Floats]:
        try:
            expected, suffered = map(as_numbers, given)
        except (InvalidInput, TypeError, ValueError):
            expected = suffered = np.empty(0)
        if not (expected.shape == suffered.shape == (n,)):
            what = f"play must return two arrays of {n} numbers, the expected and the suffered losses"
            raise self._refusal(f"{what}, got {given!r:.80}")
        return expected, suffered

    def _where(self) -> str:
        return f"{self.name}, seed {self.seed}, from round {self.t + 1}"

    def _refusal(self, what: str) -> InvalidInput:
        return InvalidInput(f"{self._where()}: {what}")
