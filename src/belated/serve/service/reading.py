"""The connection for readers, shared by all threads but the writer's."""

import time
from collections.abc import Callable
from threading import Lock
from typing import Final, TypeVar, final

from belated.errors import StoreUnreachable
from belated.serve.domain.refusals import STORE_BUSY, STORE_SILENT, try_later
from belated.serve.engine.writer import Writer
from belated.serve.store.journal import Busy, Journal

T = TypeVar("T")
SILENCE_TIMEOUT: Final = 5.0  # seconds without a word from the database
RECONNECT_TIMEOUT: Final = 1.0  # seconds within which a lost connection fails, if the server is up


@final
class Reader:
    """Asks the store one question at a time. Never call it in the event loop, because it blocks."""

    def __init__(self, journal: Journal, writer: Writer) -> None:
        self._journal, self._writer = journal, writer
        self._connection, self._lock = journal.reader(), Lock()  # only one thread may use the connection
        self._gave_up_at = 0.0  # when a question last failed

    def ask(self, question: Callable[[Journal], T]) -> T:
        """Return the store's answer. Raises a Refusal if the store cannot be reached, or somebody has locked it."""
        self._check_reachable()
        came = time.monotonic()
        if not self._lock.acquire(timeout=SILENCE_TIMEOUT):
            raise try_later(STORE_SILENT)
        try:
            if self._gave_up_at > came:  # the thread before this one got no answer, so do not wait as long again
                raise try_later(STORE_SILENT)
            return self._answer(question)
        except StoreUnreachable:
            self._gave_up_at = time.monotonic()
            raise
        except Busy:
            raise try_later(STORE_BUSY) from None
        finally:
            self._lock.release()

    def _answer(self, question: Callable[[Journal], T]) -> T:
        started = time.monotonic()
        try:
            return question(self._connection)
        except StoreUnreachable:
            if self._writer.failure or time.monotonic() > started + RECONNECT_TIMEOUT:
                raise
            return question(self._connection)  # the connection was lost, maybe long ago, but the server is up

    def open(self) -> Journal:
        """Open another connection, for a caller that reads for a long time."""
        self._check_reachable()
        return self._journal.reader()

    def _check_reachable(self) -> None:
        """Refuse while the store cannot be reached. A store that only cannot be written can still be read."""
        if self._writer.failure and self._writer.may_recover:
            raise try_later(self._writer.failure)

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            self._connection.close()
