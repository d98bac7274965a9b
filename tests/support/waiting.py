"""Waiting for a condition."""

import time
from collections.abc import Callable

PAUSE = 0.02  # seconds between two checks


def until(is_true: Callable[[], bool], within: float = 30.0) -> float:
    """Wait until the condition holds, at most `within` seconds. Returns how long it took."""
    began = time.monotonic()
    while not is_true():
        assert time.monotonic() < began + within, "it has not come true"
        time.sleep(PAUSE)
    return time.monotonic() - began
