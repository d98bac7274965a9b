"""What a learner returns, and what every learner in this package can do."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol

from belated.errors import InvalidInput
from belated.validation import as_probability, whole_number

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    Arm = TypeVar("Arm", int, str, default=int)  # `Decision` alone means a decision between numbered arms
else:
    from typing import TypeVar

    Arm = TypeVar("Arm")


class Decision(NamedTuple, Generic[Arm]):
    """A chosen arm. Pass it to `tell` with its outcome, and log the probability.

    >>> Decision(round=1, arm=2, probability=0.25).arm
    2
    """

    round: int
    arm: Arm
    probability: float


class Learner(Protocol):
    """Anything that decides with `ask` and learns with `tell`."""

    @property
    def n_arms(self) -> int: ...

    @property
    def outstanding(self) -> int:
        """Decisions without a report."""

    def ask(self) -> Decision:
        """Decide the next round."""

    def tell(self, decision: Decision | int, loss: float) -> None:
        """Report the loss in [0, 1] of an earlier decision or its round, in any order, once."""


MakeLearner = Callable[[int, int], Learner]  # from the number of arms and a seed


def as_round(decision: Any) -> int:
    """The round of a decision, or a round itself. It may or may not have been asked."""
    if type(decision) is int:
        return decision
    round = decision.round if isinstance(decision, Decision) else decision
    try:
        return whole_number("round", round, 1, math.inf)
    except InvalidInput:
        raise InvalidInput(
            f"pass a Decision, as ask returns it, or its round, which is a whole number >= 1, got {decision!r:.200}"
        ) from None


def as_decision(decision: Any) -> tuple[int, Any, float]:
    """The round of an earlier decision, what its arm is called, and its probability."""
    try:
        round, arm, probability = decision
    except (TypeError, ValueError):
        raise InvalidInput(f"a decision has a round, an arm and a probability, got {decision!r}") from None
    chance = as_probability(probability)
    return as_round(round), arm, chance
