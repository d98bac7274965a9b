"""Forgets Idempotency-Keys whose time is over, in small steps between requests."""

import logging
import time
from collections.abc import Iterator
from typing import Final, final

from belated.errors import HistoryLost, StoreUnreachable
from belated.serve.domain.quotas import KEY_LIFETIME
from belated.serve.domain.timestamps import MICROSECONDS
from belated.serve.store.journal import Journal

EVERY: Final = 600.0  # seconds between two searches for old keys
TURN: Final = 0.01  # seconds of work at a time, and at least one step
log = logging.getLogger("belated.keys")


@final
class Forgetting:
    """Lets the store walk through the journal by number. It remembers how far any server has come."""

    def __init__(self, journal: Journal, lifetime: int = KEY_LIFETIME) -> None:
        self._journal, self._lifetime = journal, lifetime * MICROSECONDS
        self._steps: Iterator[object] | None = None
        self._not_before = 0.0

    def work(self, now: int, last: int) -> None:
        """Do a little, if anything is due. `now` is in microseconds, and `last` the newest entry to look at.

        A failure is logged, because callers do not depend on this.
        """
        started = time.monotonic()
        if self._steps is None and started < self._not_before:
            return
        try:
            self._steps = self._steps or self._journal.forget_requests(last, now - self._lifetime, now)
            for _ in self._steps:
                if time.monotonic() > started + TURN:
                    return
        except (HistoryLost, StoreUnreachable):
            self._steps = None
            raise
        except Exception as error:  # noqa: BLE001
            reason = f"{type(error).__name__}: {error}"
            log.error("old Idempotency-Keys could not be forgotten", extra={"error": reason})
        self._steps, self._not_before = None, time.monotonic() + EVERY
