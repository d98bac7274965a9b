"""Limits how often a caller may name a decision that does not exist. Many of these are guesses, or a mistake."""

import logging
import math
import time
from collections.abc import Callable
from threading import Lock
from typing import Final, final

from belated.serve.domain.refusals import Refusal

RATE: Final = 100.0  # unknown decisions a second, for each caller
BURST: Final = 10_000  # as many at once, such as a batch after a restore that lost its decisions
MOST_CALLERS: Final = 10_000  # remembered at once
log = logging.getLogger("belated.service")


@final
class Misses:
    """Counts unknown decisions. A caller who named too many is refused until they have been forgotten.

    A caller is an access key, or an address if the service has no keys. Each process counts alone.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.subjects = 0  # reports of subjects without a decision. Many are not in the experiment, which is no mistake
        self.total, self._clock, self._lock = 0, clock, Lock()
        self._remembered: dict[str, tuple[float, float]] = {}  # by caller, how many, and when that was

    def check(self, caller: str) -> None:
        """Raise a Refusal if the caller has named too many unknown decisions."""
        if caller not in self._remembered:
            return
        with self._lock:
            wait = (self._count(caller) - BURST) / RATE
        if wait >= 0:
            said = f"too many unknown decision ids. Each caller may send {BURST:,}, and {RATE:g} more a second"
            raise Refusal("too_many", f"{said}. Check where the ids come from.", max(1, math.ceil(wait)))

    def add(self, caller: str, number: int) -> None:
        """Count decisions that the caller named, but that do not exist."""
        if not number:
            return
        with self._lock:
            before = self._count(caller)
            self.total += number
            self._remembered[caller] = before + number, self._clock()
            if len(self._remembered) > MOST_CALLERS:
                self._forget()
        if before < BURST <= before + number:
            log.warning("a caller is refused after too many unknown decision ids", extra={"caller": caller})

    def _count(self, caller: str) -> float:
        """Return how many are remembered now."""
        number, at = self._remembered.get(caller, (0.0, 0.0))
        return max(0.0, number - RATE * (self._clock() - at))

    def _forget(self) -> None:
        """Drop callers of whom nothing is left, and then those with the fewest."""
        left = sorted(((self._count(caller), caller) for caller in self._remembered), reverse=True)
        now = self._clock()
        self._remembered = {caller: (number, now) for number, caller in left[: MOST_CALLERS // 2] if number}
