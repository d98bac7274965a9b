"""Calls that are over in time, whatever they wait for."""

from _thread import start_new_thread
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from threading import Semaphore
from time import monotonic
from typing import Final, TypeVar, final

T = TypeVar("T")
MOST_CALLS: Final = 100  # at a time, also those that nobody waits for any more


@final
class Timely:
    """Runs calls in threads of their own, and does not wait for one that is late.

    A timeout of a socket holds for each step alone, and looking up the address of a name has none. So only another
    thread can be in time. A late call goes on until it ends by itself, and its result is dropped.
    """

    def __init__(self, most: int = MOST_CALLS) -> None:
        self._room = Semaphore(most)

    def run(self, seconds: float, call: Callable[[], T]) -> T:
        """Return what the call returns, or raise what it raises. Raise TimeoutError if it takes longer."""
        ends, done = monotonic() + seconds, Future[T]()
        if seconds <= 0 or not self._room.acquire(timeout=seconds):
            raise TimeoutError("there is no time left, or too many calls are late already")
        try:
            start_new_thread(copy_context().run, (self._work, call, done))  # Thread.start waits until it runs
        except BaseException:
            self._room.release()
            raise
        return done.result(max(0.0, ends - monotonic()))

    def _work(self, call: Callable[[], T], done: "Future[T]") -> None:
        try:
            done.set_result(call())
        except BaseException as error:  # noqa: BLE001  # whoever waits gets it
            done.set_exception(error)
        finally:
            self._room.release()
