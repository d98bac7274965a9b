"""What stands in for the clock, for sleeping and for random numbers, so that a run can be repeated."""

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple, final
from unittest.mock import patch

from belated.replicated.shared_learner import SharedLearner
from belated.serve.domain.timestamps import MICROSECONDS
from belated.serve.engine import applied as applied_module
from belated.serve.engine import clock as clock_module
from belated.serve.engine import drawing
from belated.serve.store import journal as journal_module
from tests.simulation.faults import CURSED_ARMS


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


class SimulatedTimestamps(NamedTuple):
    """Stands in for the module `timestamps` where a server asks for the time of its machine."""

    now: Callable[[], int]


class SeededSecrets(NamedTuple):
    """Stands in for the module `secrets`."""

    token_bytes: Callable[[int], bytes]


@contextmanager
def simulated(
    now: Callable[[], int], wall: Callable[[], int], pause: Callable[[], None], randbytes: Callable[[int], bytes]
) -> Iterator[None]:
    """Let the service use this time and these random numbers, and be quiet.

    `now` is the true time, and `wall` is that of the machine whose server goes on now.
    """
    clock = SimulatedTime(now, pause)
    with ExitStack() as stack:
        for module in (applied_module, journal_module):
            stack.enter_context(patch.object(module, "time", clock))
        stack.enter_context(patch.object(clock_module, "steady", now))
        stack.enter_context(patch.object(clock_module, "timestamps", SimulatedTimestamps(wall)))
        stack.enter_context(patch.object(drawing, "secrets", SeededSecrets(randbytes)))
        logging.disable(logging.CRITICAL)
        stack.callback(logging.disable, logging.NOTSET)
        yield


@contextmanager
def failing_learner() -> Iterator[None]:
    """Let a learner of the cursed experiment fail at the loss 1, and after some rounds at every draw.

    It fails at the same entry on every server, as a bug in a learner does.
    """
    tell, draw_context = SharedLearner.tell, SharedLearner.draw_context

    def tell_or_fail(self: SharedLearner, seq: int, decision: int, loss: float) -> None:
        if is_cursed(self) and loss == 1.0:
            raise FloatingPointError("the learner cannot take this loss")
        tell(self, seq, decision, loss)

    def draw_or_fail(self: SharedLearner) -> Any:
        if is_cursed(self) and self.learner.round >= 8:
            raise FloatingPointError("the learner cannot decide any more")
        return draw_context(self)

    with patch.object(SharedLearner, "tell", tell_or_fail), patch.object(SharedLearner, "draw_context", draw_or_fail):
        yield


def is_cursed(shared: SharedLearner) -> bool:
    """Whether a learner belongs to the experiment that fails."""
    return shared.learner.n_arms == len(CURSED_ARMS)
