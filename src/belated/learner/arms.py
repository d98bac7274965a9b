"""The arms of a learner, by number or by name."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from belated.errors import InvalidInput
from belated.validation import LARGEST, whole_number


class Arms(NamedTuple):
    """How many arms there are, and their names if they have any."""

    n: int
    names: tuple[str, ...] = ()

    def name_of(self, index: int) -> Any:
        """What a decision calls the arm at this index."""
        return self.names[index] if self.names else index

    def index_of(self, arm: Any) -> int:
        """The index of an arm that a caller names."""
        if not self.names:
            return whole_number("the arm of a decision", arm, 0, self.n - 1)
        if arm not in self.names:
            raise InvalidInput(f"the arm of a decision must be one of {list(self.names)!r:.200}, got {arm!r}")
        return self.names.index(arm)


def parse_arms(arms: Any) -> Arms:
    """The arms of a learner, from a number or from different names."""
    if isinstance(arms, str | bytes) or (isinstance(arms, Iterable) and not (isinstance(arms, Sequence) and arms)):
        raise InvalidInput(f"arms must be a number or a list of names, got {arms!r:.200}")
    if not isinstance(arms, Sequence):
        return Arms(whole_number("arms", arms, 1))
    for name in arms:
        if not isinstance(name, str) or not name:
            raise InvalidInput(f"the name of an arm must be a string that is not empty, got {name!r}")
    if len(set(arms)) < len(arms):
        twice = next(name for name in arms if arms.count(name) > 1)
        raise InvalidInput(f"arms must have different names, got {twice!r} twice")
    return Arms(whole_number("the number of arms", len(arms), 1, LARGEST), tuple(arms))
