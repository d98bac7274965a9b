"""Errands: small jobs of others that need the journal of the writer's thread, such as the change of a key."""

import asyncio
import logging
from collections.abc import Callable
from contextvars import Context, copy_context
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Final, final

from belated.errors import HistoryLost, InvalidInput, StoreError, StoreUnreachable
from belated.serve.domain.refusals import STORE_UNWRITABLE, Refusal
from belated.serve.engine.guarding import unexpected
from belated.serve.store.journal import Busy, Journal, Rejected

EXPECTED: Final = (InvalidInput, Refusal, Busy)  # may be raised, and are no failures of the store

log = logging.getLogger("belated.engine")


@final
class Errands:
    """A queue of errands. The event loop hands them in, and the writer's thread runs them."""

    def __init__(self) -> None:
        self._waiting: SimpleQueue[tuple[Callable[[Journal], Any], Context, asyncio.Future[Any]]] = SimpleQueue()

    def submit(self, errand: Callable[[Journal], Any]) -> asyncio.Future[Any]:
        """Hand in an errand. The future gets its result, or what it raised."""
        future = asyncio.get_running_loop().create_future()
        self._waiting.put((errand, copy_context(), future))  # so that the log names the request
        return future

    def run(
        self, journal: Journal, guarded: Callable[[Callable[[], Any]], bool], refusal: Callable[[], Refusal]
    ) -> None:
        """Run all errands. `guarded` runs one, and `refusal` is why one was not run or has failed."""
        while True:
            try:
                errand, context, future = self._waiting.get_nowait()
            except Empty:
                return
            results: list[Any] = []
            run = partial(context.run, outcome, errand, journal)
            guarded(lambda run=run, results=results: results.append(run()))  # type: ignore[misc]
            _answer(future, results[0] if results else refusal())


def outcome(errand: Callable[[Journal], Any], journal: Journal) -> Any:
    """Return the result of an errand, or what its caller is told. A bug is the errand's own.

    So is an error of a table that no decision needs. If the store is broken, the next append will tell.
    """
    try:
        return errand(journal)
    except EXPECTED as error:
        return error
    except (HistoryLost, StoreUnreachable):
        raise
    except (StoreError, Rejected) as error:
        log.error("keys or the audit trail cannot be written", extra={"error": str(error)})
        return Refusal("unavailable", STORE_UNWRITABLE)
    except Exception as error:  # noqa: BLE001
        return unexpected(error)


def _answer(future: asyncio.Future[Any], result: Any) -> None:
    loop = future.get_loop()
    if not loop.is_closed():
        loop.call_soon_threadsafe(_set, future, result)


def _set(future: asyncio.Future[Any], result: Any) -> None:
    if future.done():  # its caller has left
        return
    if isinstance(result, EXPECTED):
        future.set_exception(result)
    else:
        future.set_result(result)
