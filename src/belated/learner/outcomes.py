"""Outcomes of decisions. A loss or a reward within a range."""

from dataclasses import dataclass
from typing import Any, Final, Literal, final

from belated.errors import InvalidInput
from belated.scalars import as_float
from belated.validation import as_unit

WIDEST: Final = 1e100


@final
@dataclass(frozen=True)
class OutcomeRange:
    """The range of outcomes in your own units, and which end is better.

    Outcomes are rewards if higher is better, and losses if lower is better.

    >>> revenue = OutcomeRange(0, 50, better="higher")
    >>> revenue.loss(40)
    0.19999999999999996
    >>> revenue.value(0.2)
    40.0
    """

    lowest: float = 0.0
    highest: float = 1.0
    better: Literal["higher", "lower"] = "higher"

    def __post_init__(self) -> None:
        lowest, highest = as_float(self.lowest), as_float(self.highest)
        if not 0 < highest - lowest <= WIDEST:
            raise InvalidInput(
                f"lowest must be less than highest, by {WIDEST:g} at most, got {self.lowest!r}, {self.highest!r}"
            )
        if self.better not in ("higher", "lower"):
            raise InvalidInput(f"better must be 'higher' or 'lower', got {self.better!r}")
        object.__setattr__(self, "lowest", lowest)
        object.__setattr__(self, "highest", highest)

    @property
    def word(self) -> Literal["reward", "loss"]:
        """What a report calls the outcome."""
        return "reward" if self.better == "higher" else "loss"

    def loss(self, value: float) -> float:
        """An outcome as a loss from 0 to 1."""
        share = (value - self.lowest) / (self.highest - self.lowest)
        return min(1.0, max(0.0, 1.0 - share if self.better == "higher" else share))

    def value(self, loss: float) -> float:
        """A loss from 0 to 1 as an outcome."""
        share = 1.0 - loss if self.better == "higher" else loss
        return self.lowest + share * (self.highest - self.lowest)

    def check(self, name: str, value: Any) -> float:
        """The value as a float, or an InvalidInput if it lies outside the range."""
        number = as_float(value)
        if not self.lowest <= number <= self.highest:
            raise InvalidInput(f"{name} must lie between {self.lowest:g} and {self.highest:g}, got {value!r}")
        return number


def as_outcomes(outcomes: Any) -> OutcomeRange | None:
    """The range of a learner's outcomes, or None if it has none."""
    if outcomes is not None and not isinstance(outcomes, OutcomeRange):
        raise InvalidInput(f"outcomes must be a belated.OutcomeRange, got {outcomes!r}")
    return outcomes


def loss_of(outcomes: OutcomeRange | None, loss: Any, reward: Any) -> float:
    """The loss from 0 to 1 of a report that gives `loss` or `reward`.

    Without a declared range both words are taken, and both go from 0 to 1.
    """
    if (loss is None) == (reward is None):
        example = "loss" if outcomes is None else outcomes.word
        raise InvalidInput(
            f"a report needs either loss= or reward=, got loss={loss!r}, reward={reward!r}. "
            f"Pass one, as in tell(decision, {example}=x)"
        )
    word, value = ("reward", reward) if loss is None else ("loss", loss)
    if outcomes is None:
        return _unit_loss(word, value)
    if word != outcomes.word:
        raise InvalidInput(f"this learner takes {outcomes.word}=, because {outcomes.better} is better, got {word}=")
    return outcomes.loss(outcomes.check(word, value))


def _unit_loss(word: str, value: Any) -> float:
    """The loss of an outcome from 0 to 1."""
    number = as_unit(word, value)
    return number if word == "loss" else 1.0 - number


def loss_in(outcomes: OutcomeRange | None, name: str, value: Any) -> float:
    """The loss from 0 to 1 of an outcome in the learner's units. Without a range it is a loss already."""
    if outcomes is not None:
        return outcomes.loss(outcomes.check(name, value))
    loss = as_float(value)
    if not 0.0 <= loss <= 1.0:
        raise InvalidInput(f"{name} must be a loss from 0 to 1, got {value!r}")
    return loss
