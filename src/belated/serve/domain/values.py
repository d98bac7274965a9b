"""Values of arms: what a caller gets for an arm in place of its name, such as true, 12.5 or an object."""

from collections.abc import Collection, Iterable, Mapping
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from belated.errors import InvalidInput

MOST_BYTES: Final = 65_536  # of all values of an experiment, as JSON
MOST_LEVELS: Final = 20  # of lists and objects inside each other. Reading a thousand fails, sooner in a deeper call
SMALLEST, LARGEST = -(2**63), 2**64 - 1  # of a whole number that a snapshot can hold
Values = Annotated[
    dict[str, str | bool | int | float | dict[str, Any]],
    Meta(
        description="A value for each arm: a string, a number, true or false, or an object. All are of one kind. "
        "Without values, the value of an arm is its name."
    ),
]


def check_values(values: Mapping[str, Any], arms: Collection[str], what: str) -> None:
    """Check that these arms have values of one kind, and nothing else has one. Raises InvalidInput."""
    for name in values:
        if name not in arms:
            raise InvalidInput(f"values has {name!r}, which is no arm that {what}")
    if missing := [name for name in arms if name not in values]:
        raise InvalidInput(f"values has none for {missing[0]!r}. Give one for each arm that {what}, or none at all")


def check_all(values: Mapping[str, Any]) -> None:
    """Check that all values of an experiment are of one kind, and that they can be kept. Raises InvalidInput."""
    for name, value in values.items():
        check_kept(name, value)
    kinds = {kind_of(value): name for name, value in values.items()}
    if len(kinds) > 1:
        (one, first), (other, second) = list(kinds.items())[:2]
        raise InvalidInput(f"values must be of one kind. That of {first!r} is {one}, that of {second!r} is {other}")
    size = len(msgspec.json.encode(values))
    if size > MOST_BYTES:
        raise InvalidInput(f"values may have at most {MOST_BYTES:,} bytes as JSON, got {size:,}. Give names of files")


def check_kept(name: str, value: Any) -> None:
    """Check that every release can read a value again, from an entry and from a snapshot. Raises InvalidInput."""
    level, depth = [value], 0
    while level:
        if any(isinstance(one, int) and not SMALLEST <= one <= LARGEST for one in level):
            raise InvalidInput(f"the value of {name!r} has a whole number of more than 64 bits. Send it as a string")
        if depth == MOST_LEVELS and any(isinstance(one, dict | list) for one in level):
            raise InvalidInput(f"the value of {name!r} has more than {MOST_LEVELS} lists and objects inside each other")
        level, depth = [inner for one in level for inner in inside(one)], depth + 1


def inside(value: Any) -> Iterable[Any]:
    """Return what is in a list or an object."""
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def kind_of(value: Any) -> str:
    """What a value is, in JSON's words."""
    if isinstance(value, bool):
        return "true or false"
    return "a string" if isinstance(value, str) else "an object" if isinstance(value, dict) else "a number"


def value_of(values: Mapping[str, Any], arm: str) -> Any:
    """Return the value of an arm. If one number of an experiment has a fraction, all of them are written with one."""
    value = values.get(arm, arm)
    if type(value) is int and any(type(one) is float for one in values.values()):
        return float(value)
    return value
