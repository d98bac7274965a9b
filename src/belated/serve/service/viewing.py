"""Documents are made in a thread of their own, so that no decision waits for one."""

import asyncio
import time
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import Any, Final, TypeVar, final

T = TypeVar("T")
REST: Final = 3.0  # times as long as a document has cost, before the next one, so that reading leaves time to deciding
LONGEST_REST: Final = 1.0  # seconds


@final
class ViewThread:
    """Makes documents one at a time. Callers who wait for the same document share it.

    A document is made after it was asked for, so it has everything that was acknowledged before.
    """

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, "belated-views")
        self._lock, self._waiting = Lock(), dict[Hashable, Future[Any]]()
        self._rest_until = 0.0  # on the monotonic clock

    async def make(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return what `make` returns. Callers with the same key, for whom nothing is being made yet, share one call."""
        with self._lock:
            future = self._waiting.get(key)
            if future is None:
                self._waiting[key] = future = self._pool.submit(self._run, key, make)
        made: T = await asyncio.shield(
            asyncio.wrap_future(future)
        )  # a caller that leaves takes nothing from the others
        return made

    def _run(self, key: Hashable, make: Callable[[], T]) -> T:
        time.sleep(max(0.0, self._rest_until - time.monotonic()))
        with self._lock:
            del self._waiting[key]  # who comes from now on may know more
        began = time.thread_time()
        try:
            return make()
        finally:
            cost = time.thread_time() - began
            self._rest_until = time.monotonic() + min(REST * cost, LONGEST_REST)

    def close(self) -> None:
        """Finish the document that is being made, and make no more."""
        self._pool.shutdown(wait=True, cancel_futures=True)
