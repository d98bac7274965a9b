"""Numbers from outside, without NumPy, so that the client can use this too."""

import math
from typing import Any


def as_float(value: Any) -> float:
    """Any real number as a float. NaN for everything else, including text."""
    if isinstance(value, str | bytes | bytearray):
        return math.nan
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan
