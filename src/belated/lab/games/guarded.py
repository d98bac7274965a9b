"""A learner in a game. What it gives is checked in every round."""

import math
from collections.abc import Iterable
from typing import Any, final

import numpy as np

from belated import kernels
from belated.arrays import Floats
from belated.errors import BelatedError, GameError, InvalidInput
from belated.lab.games.mismatch import log_evidence
from belated.learner.decisions import MakeLearner
from belated.learner.ftrl import check_plain
from belated.scalars import as_float
from belated.validation import whole_number

REAL = "fiubO"  # kinds of arrays. The objects may be numbers
TELLS = {"loss": "tell", "sum": "tell_sum", "vector": "tell_vector"}  # the method for each kind of feedback


@final
class Guarded:
    """A learner whose errors say which learner, seed and round it was. `name` stands for the learner there.

    Rounds are played a block at a time. `decide` and `tell` play each one. `weigh` looks at the whole block at its end.
    """

    def __init__(self, make: MakeLearner, n_arms: int, seed: int, name: str) -> None:
        self.name, self.seed, self.n_arms, self.t = name, seed, n_arms, 0  # t rounds are decided
        self.has_begun = False
        try:
            self.learner: Any = make(n_arms, seed)
        except BelatedError:  # says what is wrong
            raise
        except (Exception, SystemExit) as error:
            raise self.failure(error, "it could not be made") from error
        check_plain(self.learner, "a game")
        try:
            self.needs_delay = bool(getattr(self.learner, "needs_delay", False))
            self.feedback = getattr(self.learner, "feedback", "loss")
            self.has_distribution = hasattr(self.learner, "distribution")
            self.check_learner()
        except BelatedError:  # says what is wrong
            raise
        except Exception as error:
            raise self.failure(error, "its attributes cannot be read") from error
        self.difference = self.variance = 0.0  # of the expected and the suffered losses so far

    def check_learner(self) -> None:
        """Refuse what cannot play this game."""
        if not (isinstance(self.feedback, str) and self.feedback in TELLS):
            raise self.refusal(f"its feedback must be one of {', '.join(TELLS)}, got {self.feedback!r}")
        for method in ("ask", TELLS[self.feedback]):
            if not callable(getattr(self.learner, method, None)):
                raise self.refusal(f"it has no method {method} (docs/players.md)")
        n_arms = getattr(self.learner, "n_arms", self.n_arms)
        if not bool(n_arms == self.n_arms):
            raise self.refusal(f"the learner has {n_arms!r} arms, but the problem has {self.n_arms}")

    def refusal(self, what: str) -> InvalidInput:
        """The error for a learner that breaks the rules of the game."""
        where = f", round {self.t + 1}" if self.has_begun else ""
        return InvalidInput(f"{self.name}, seed {self.seed}{where}: {what}")

    def failure(self, error: BaseException, what: str) -> GameError:
        """The error for a learner that fails."""
        return GameError(f"{self.name}, seed {self.seed}: {what} ({type(error).__name__}: {error})")

    @property
    def log_evidence(self) -> float:
        """The evidence that the distribution does not fit the draws, -inf without a distribution."""
        return log_evidence(self.difference, self.variance) if self.has_distribution else -math.inf

    def begin(self, n_rounds: int) -> None:
        """Make room for the decisions of a block of rounds."""
        self.has_begun = True
        self.x = np.empty((n_rounds, self.n_arms)) if self.has_distribution else None
        self.arms, self.probabilities = np.empty(n_rounds, np.int64), np.full(n_rounds, np.nan)

    def decide(self, row: int, *known: int) -> int:
        """The arm of the next round, which has this row of the block. A delay that is known beforehand is passed on."""
        try:
            x: Any = self.learner.distribution(*known) if self.has_distribution else None
            decision = self.learner.ask(*known)
        except (Exception, SystemExit) as error:
            raise self.failure(error, f"it failed to decide round {self.t + 1}") from error
        if self.x is not None:
            try:
                given = np.asarray(x)
                is_whole = given.shape == (self.n_arms,) and given.dtype.kind in REAL
                self.x[row] = given if is_whole else np.nan
            except (TypeError, ValueError):  # not an array of numbers
                is_whole = False
            if not is_whole:
                raise self.refusal(
                    f"its distribution must be {self.n_arms} probabilities, one for each arm, got {x!r:.200}"
                )
        arm, probability = self.checked(decision)
        self.arms[row] = arm
        if probability is not None:
            self.probabilities[row] = self.chance(probability)
        self.t += 1
        return arm

    def chance(self, probability: Any) -> float:
        """The probability in a decision. It means nothing without a distribution."""
        number = as_float(probability)
        if math.isnan(number) and self.has_distribution:
            raise self.refusal(f"the probability in its decision must be a number, got {probability!r:.80}")
        return number

    def checked(self, decision: Any) -> tuple[int, Any]:
        """The arm of a decision, which must be the next one, and its probability if it has one."""
        try:
            round, arm = decision.round, decision.arm
        except AttributeError:
            what = f"ask must return a belated.Decision(round, arm, probability), got {decision!r:.80}"
            raise self.refusal(what) from None
        try:
            is_next = bool(round == self.t + 1)
        except (TypeError, ValueError):  # such as an array of several numbers
            is_next = False
        if not is_next:
            raise self.refusal(
                f"its decision has the round {round!r}. Decisions are numbered from 1. A learner plays one game only, "
                "so make a new one for each seed"
            )
        if not (type(arm) is int and 0 <= arm < self.n_arms):
            try:
                arm = whole_number("the arm of a decision", arm, 0, self.n_arms - 1)
            except InvalidInput as error:
                raise self.refusal(str(error)) from None
        return arm, getattr(decision, "probability", None)

    def tell(self, reports: Iterable[tuple[int, Any]]) -> None:
        """Report what arrives at the end of a round."""
        try:
            if self.feedback == "sum":
                self.learner.tell_sum(sum(loss for _, loss in reports))
                return
            tell = self.learner.tell_vector if self.feedback == "vector" else self.learner.tell
            for round, report in reports:
                tell(round, report)
        except (Exception, SystemExit) as error:
            raise self.failure(error, f"it failed to take a report at the end of round {self.t}") from error

    def weigh(self, losses: Floats) -> tuple[Floats, Floats]:
        """<x_t, l_t> and the loss of the drawn arm in every round of the block. Refuses what is no distribution."""
        n = len(losses)
        suffered: Floats = losses[np.arange(n), self.arms]
        if self.x is None:
            self.check_probabilities()
            return suffered.copy(), suffered
        expected, variances = np.empty(n), np.empty(n)
        wrong = kernels.weigh(self.x, losses, self.arms, self.probabilities, expected, variances)
        if wrong >= 0:
            raise self.wrong_distribution(wrong, self.x[wrong])
        self.difference += float((expected - suffered).sum())
        self.variance += float(variances.sum())
        return expected, suffered

    def check_probabilities(self) -> None:
        """Refuse what is no probability of a drawn arm. There is no distribution to hold it against."""
        wrong = np.flatnonzero((self.probabilities <= 0) | (self.probabilities > 1 + kernels.TOLERANCE))
        if wrong.size:
            self.t -= len(self.arms) - int(wrong[0])
            given = self.probabilities[wrong[0]]
            raise self.refusal(f"the probability in its decision must exceed 0 and be at most 1, got {given:.6g}")

    def wrong_distribution(self, row: int, x: Floats) -> InvalidInput:
        """The error for a row of the block."""
        arm, probability = self.arms[row], self.probabilities[row]
        self.t -= len(self.arms) - row
        if not (x.min() >= 0 and abs(x.sum() - 1) <= kernels.TOLERANCE):
            return self.refusal(f"its distribution must be probabilities >= 0 whose sum is 1, got {x!r:.200}")
        return self.refusal(
            f"it drew arm {arm}, which has probability {x[arm]:.6g} in its distribution and {probability:.6g} in its "
            "decision"
        )
