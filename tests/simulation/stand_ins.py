"""What stands in for the clock, for sleeping and for random numbers, so that a run can be repeated."""

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import NamedTuple, final
from unittest.mock import patch

from belated.serve.domain.timestamps import MICROSECONDS
from belated.serve.engine import drawing
from belated.serve.engine import engine as engine_module
from belated.serve.store import journal as journal_module


@final
class SimulatedTime:
    """Stands in for the module `time` where the service waits or measures."""

    def __init__(self, now: Callable[[], int], pause: Callable[[], None]) -> None:
        self._now, self._pause = now, pause

    def monotonic(self) -> float:
        return self._now() / MICROSECONDS

    perf_counter = monotonic

    def sleep(self, _seconds: float) -> None:
        self._pause()


class SeededSecrets(NamedTuple):
    """Stands in for the module `secrets`."""

    token_bytes: Callable[[int], bytes]


@contextmanager
def simulated(now: Callable[[], int], pause: Callable[[], None], randbytes: Callable[[int], bytes]) -> Iterator[None]:
    """Let the service use this time and these random numbers, and be quiet."""
    clock = SimulatedTime(now, pause)
    with ExitStack() as stack:
        for module in (engine_module, journal_module):
            stack.enter_context(patch.object(module, "time", clock))
        stack.enter_context(patch.object(drawing, "secrets", SeededSecrets(randbytes)))
        logging.disable(logging.CRITICAL)
        stack.callback(logging.disable, logging.NOTSET)
        yield
