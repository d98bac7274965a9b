"""Lengths of time on the command line, such as 90d or 12h."""

import re
from typing import Final

from belated.errors import InvalidInput

SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
DAY: Final = 86_400
MOST: Final = 100 * 366 * DAY  # a hundred years


def seconds(name: str, text: str, least: int) -> int:
    """Read a length of time in seconds, at least `least`. `name` is the option's."""
    found = re.fullmatch(r"([0-9]{1,12})([smhdw])", text)
    if found is None:
        raise InvalidInput(f"{name} takes a number with s, m, h, d or w, such as 90d, got {text!r}")
    length = int(found[1]) * SECONDS[found[2]]
    if not least <= length <= MOST:
        raise InvalidInput(f"{name} must be at least {shortest(least)} and at most 100 years, got {text!r}")
    return length


def shortest(length: int) -> str:
    """Write a length of time in whole days, or in seconds."""
    return f"{length // DAY}d" if length and length % DAY == 0 else f"{length}s"
