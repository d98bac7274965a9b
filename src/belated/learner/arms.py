"""The arms of a learner, by number or by name."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from belated.errors import InvalidInput
from belated.validation import LARGEST, whole_number


class Arms(NamedTuple):
    """How many arms there are, and what they are called unless they are 0, 1, 2 and so on."""

    n: int
    names: tuple[Any, ...] = ()  # strings, or the numbers that are left after some were retired
    born: int = 0  # how many arms there have ever been, if they have numbers

    @property
    def has_numbers(self) -> bool:
        """Whether arms are called by numbers."""
        return not (self.names and isinstance(self.names[0], str))

    @property
    def all(self) -> tuple[Any, ...]:
        """What the arms are called."""
        return self.names or tuple(range(self.n))

    def name_of(self, index: int) -> Any:
        """What a decision calls the arm at this index."""
        return self.names[index] if self.names else index

    def index_of(self, arm: Any) -> int:
        """The index of an arm that a caller names."""
        if not self.names:
            return whole_number("the arm of a decision", arm, 0, self.n - 1)
        if arm not in self.names or isinstance(arm, bool | float):  # 1.0 is no name of arm 1
            raise InvalidInput(f"the arm of a decision must be one of {list(self.names)!r:.200}, got {arm!r}")
        return self.names.index(arm)

    def may_have_left(self, arm: Any) -> bool:
        """Whether this may be what an arm was called that is not there any more. Names are not remembered."""
        if self.has_numbers:
            return type(arm) is int and 0 <= arm < self.born and arm not in self.all
        return isinstance(arm, str) and arm not in self.names

    def changed(self, add: Any, retire: Any) -> "Arms":
        """The arms after some have come and gone. Arms that stay keep their order, and new ones follow."""
        leaving = _listed("retire", retire)
        for arm in leaving:
            if arm not in self.all or isinstance(arm, bool):
                raise InvalidInput(f"retire: {arm!r} is not one of the arms {list(self.all)!r:.200}")
        staying = tuple(arm for arm in self.all if arm not in leaving)
        if self.has_numbers:
            born = max(self.born, self.n)
            more = whole_number("add", add if not (isinstance(add, Sequence) and not add) else 0, 0)
            names: tuple[Any, ...] = (*staying, *range(born, born + more))
            _check_left(names, self)
            return Arms(len(names), () if names == tuple(range(len(names))) else names, born + more)
        coming = _listed("add", add)
        for arm in leaving:
            if arm in coming:
                raise InvalidInput(f"{arm!r} cannot be retired and added at once. Leave it out, or use another name")
        names = (*staying, *coming)
        _check_left(names, self)
        return parse_arms(names)


def _check_left(names: tuple[Any, ...], before: Arms) -> None:
    if not names:
        raise InvalidInput(
            f"retire has all the arms {list(before.all)!r:.200}, but at least one must stay. Add one, or retire fewer"
        )


def _listed(what: str, arms: Any) -> tuple[Any, ...]:
    if isinstance(arms, str | bytes) or not isinstance(arms, Sequence):
        raise InvalidInput(f"{what} must be a list of arms, got {arms!r:.200}")
    return tuple(arms)


def _naming_hint(arms: Sequence[Any]) -> str:
    """What to pass instead of a list of numbers."""
    if not all(isinstance(arm, int) for arm in arms):
        return ""
    return f". Write {str(arms[0])!r} for a name, or pass {len(arms)} for {len(arms)} arms that have numbers"


def parse_arms(arms: Any) -> Arms:
    """The arms of a learner, from a number or from different names."""
    if isinstance(arms, str | bytes) or (isinstance(arms, Iterable) and not (isinstance(arms, Sequence) and arms)):
        raise InvalidInput(f"arms must be a number or a list of names, got {arms!r:.200}")
    if not isinstance(arms, Sequence):
        return Arms(whole_number("arms", arms, 1))
    for name in arms:
        if not isinstance(name, str) or not name:
            raise InvalidInput(
                f"the name of an arm must be a string that is not empty, got {name!r:.200}{_naming_hint(arms)}"
            )
    if len(set(arms)) < len(arms):
        twice = next(name for name in arms if arms.count(name) > 1)
        raise InvalidInput(f"arms must have different names, got {twice!r} twice")
    return Arms(whole_number("the number of arms", len(arms), 1, LARGEST), tuple(arms))
