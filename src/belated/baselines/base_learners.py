"""The base learner inside a wrapper, and the function that makes one."""

from collections.abc import Callable
from typing import Any, Protocol

from belated.arrays import Floats
from belated.errors import InvalidInput
from belated.learner.decisions import Learner


class Base(Learner, Protocol):
    """A learner that also knows the probabilities of its next draw."""

    @property
    def round(self) -> int:
        """t, the number of decisions made so far."""

    def distribution(self) -> Floats:
        """The probability of each arm in the next round. Changes nothing."""


MakeBase = Callable[[int, int], Base]  # from the number of arms and a seed


def as_maker(base: Any, default: MakeBase) -> MakeBase:
    """`base` if given, otherwise the default maker of base learners."""
    if base is None:
        return default
    if not callable(base):
        raise InvalidInput(f"base must make a learner from a number of arms and a seed, got {base!r}")
    maker: MakeBase = base
    return maker
