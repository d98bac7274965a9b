"""Time as the journal keeps it: whole microseconds since 1970, UTC."""

import time
from typing import Final

MICROSECONDS: Final = 1_000_000  # in a second


def now() -> int:
    """Return the present time."""
    return time.time_ns() // 1000
