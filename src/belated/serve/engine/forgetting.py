"""Forgets Idempotency-Keys whose time is over, in small steps between requests."""

import logging
import time
from collections.abc import Iterator
from typing import Final, final

from belated.errors import HistoryLost, StoreError, StoreUnreachable
from belated.serve.domain.quotas import KEY_LIFETIME
from belated.serve.domain.timestamps import MICROSECONDS
from belated.serve.store.journal import Busy, Journal

EVERY: Final = 600.0  # seconds between two searches for old keys
TURN: Final = 0.01  # seconds of work at a time, and at least one step
log = logging.getLogger("belated.keys")


@final
class Forgetting:
    """Walks through the journal by number. The store remembers how far any server has come."""

    def __init__(self, journal: Journal, lifetime: int = KEY_LIFETIME) -> None:
        self._journal, self._lifetime = journal, lifetime * MICROSECONDS
        self._steps: Iterator[object] | None = None
        self._not_before = 0.0

    def work(self, now: int, last: int) -> None:
        """Do a little, if anything is due. `now` is in microseconds, and `last` the newest entry to look at.

        A failure of the store is logged, because callers do not depend on this.
        """
        started = time.monotonic()
        if self._steps is None:
            if started < self._not_before:
                return
            self._steps = self._forget(now, last)
        try:
            for _ in self._steps:
                if time.monotonic() > started + TURN:
                    return
        except (HistoryLost, StoreUnreachable):
            self._steps = None
            raise
        except (StoreError, Busy) as error:
            log.error("old Idempotency-Keys could not be forgotten", extra={"error": str(error)})
        self._steps, self._not_before = None, time.monotonic() + EVERY

    def _forget(self, now: int, last: int) -> Iterator[object]:
        """Find the newest entry before the limit, by halves, and forget the keys up to there. Yields after each step.

        Times rise with the numbers, except those of a wrong clock. So the store looks at each entry again.
        """
        limit, old, young = now - self._lifetime, 0, last + 1
        while old + 1 < young:
            middle = (old + young) // 2
            entry = next(iter(self._journal.left(middle - 1, young - 1, 1)), None)
            yield middle
            if entry is not None and entry.at < limit:
                old = entry.seq
            else:
                young = middle
        yield from self._journal.forget_requests(old, limit, now)
