"""Time as the journal keeps it: whole microseconds since 1970, UTC."""

import time
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

MICROSECONDS: Final = 1_000_000  # in a second
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def now() -> int:
    """Return the present time."""
    return time.time_ns() // 1000


def parsed(text: str) -> int:
    """Read a time as RFC 3339 writes it. Raises ValueError, also for a time without its zone."""
    at = datetime.fromisoformat(text)
    if at.tzinfo is None:
        raise ValueError(f"{text} has no zone")
    return (at - EPOCH) // timedelta(microseconds=1)


@lru_cache(256)  # decisions of one commit have one time
def iso(at: int) -> str:
    """Format a time in microseconds as RFC 3339."""
    return (EPOCH + timedelta(microseconds=at)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def iso_or_none(at: int | None) -> str | None:
    """Format a time that may be missing."""
    return None if at is None else iso(at)


def shown(at: int) -> str:
    """Return a time for people to read."""
    return datetime.fromtimestamp(at / MICROSECONDS, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
