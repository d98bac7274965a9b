"""Values of arms: what a caller gets for an arm in place of its name, such as true, 12.5 or an object."""

from collections.abc import Collection, Mapping
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from belated.errors import InvalidInput

MOST_BYTES: Final = 65_536  # of all values of an experiment, as JSON
DEEPEST: Final = 50  # objects and lists inside each other
LEAST, LARGEST = -(2**63), 2**64 - 1  # whole numbers. Snapshots and most languages cannot hold others
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
    """Check that all values of an experiment are of one kind and not too long. Raises InvalidInput."""
    kinds = {kind_of(value): name for name, value in values.items()}
    if len(kinds) > 1:
        (one, first), (other, second) = list(kinds.items())[:2]
        raise InvalidInput(f"values must be of one kind. That of {first!r} is {one}, that of {second!r} is {other}")
    for name, value in values.items():
        _check_parts(name, value)
    size = len(msgspec.json.encode(values))
    if size > MOST_BYTES:
        raise InvalidInput(f"values may have at most {MOST_BYTES:,} bytes as JSON, got {size:,}. Give names of files")


def _check_parts(name: str, value: Any) -> None:
    """Check that every server can keep a value, whatever is inside it. Raises InvalidInput."""
    parts, depth = [value], 0
    while parts:
        if depth > DEEPEST:
            raise InvalidInput(f"the value of {name!r} has more than {DEEPEST} objects or lists inside each other")
        for part in parts:
            if isinstance(part, int) and not LEAST <= part <= LARGEST:
                raise InvalidInput(
                    f"the value of {name!r} has a whole number beyond -2^63 or 2^64 - 1. Write it as a string"
                )
        containers = [
            part.values() if isinstance(part, dict) else part for part in parts if isinstance(part, dict | list)
        ]
        parts, depth = [part for container in containers for part in container], depth + 1


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
