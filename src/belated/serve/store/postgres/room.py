"""Makes partitions of the journal in PostgreSQL ahead of the numbers in use."""

import logging
import time
from contextlib import closing, suppress
from threading import Thread
from typing import Final, final

import psycopg

from belated.errors import StoreError
from belated.serve.store.journal import Rejected
from belated.serve.store.postgres import partitions, rest
from belated.serve.store.postgres.connection import Connection, Link
from belated.serve.store.postgres.partitions import PARTITION_LOCK, attach, briefly, end_of_last, following, leap
from belated.serve.store.postgres.rest import AHEAD

RETRY_SECONDS = 10.0
CLOSING: Final = 1.0  # seconds that a close waits for partitions that are being added
NO_PARTITION: Final = "no partition could be added. Entries go into the rest"
log = logging.getLogger("belated.store")


def make_room(connection: Connection, newest: int) -> int:
    """Create partitions ahead of the newest number. Returns the number from which on there is none.

    Another connection that does the same is not waited for. If the partition of the newest number ends with numbers
    that are not to be used, numbers leap over them once they are there.
    """
    here = [one for one in partitions.partitions(connection) if one.first <= newest < one.end]
    unused = here[0].unused if here else 0
    is_there = bool(here) and newest + unused >= here[0].end
    reached = here[0].end if is_there else newest + unused

    def add() -> int | None:
        if connection.execute("SELECT pg_try_advisory_xact_lock($1)", (PARTITION_LOCK,)).fetchall() == [(False,)]:
            return None
        end = end_of_last(connection)
        if end > reached + AHEAD * partitions.SIZE:
            return None
        rest.check_size(connection)
        first = following(end, newest)
        attach(connection, first, first + partitions.SIZE)
        rest.stop_keeping(connection)
        return first + partitions.SIZE

    while briefly(connection, add, patience=0.0) is not None:
        pass
    end = end_of_last(connection)
    if is_there and end > reached:
        leap(connection, reached, patience=0.0)
        unused = 0
    return end - unused


@final
class Room:
    """Makes partitions ahead of the numbers in use, now and then after an append. The append never fails by it.

    Beside a large rest that takes long, so it is done in the background, with another connection.
    """

    def __init__(self) -> None:
        self._enough_until = 0  # the number up to which nothing is to be done
        self._again_at = 0.0
        self._beside: Beside | None = None

    def look(self, link: Link, newest: int) -> None:
        """Make partitions if few numbers are left."""
        if newest < self._enough_until or time.monotonic() < self._again_at:
            return
        if self._beside is not None and self._beside.is_alive():
            return
        try:
            with link.using("partitioned") as connection:
                self._enough_until = make_room(connection, newest) - (AHEAD - 1) * partitions.SIZE
        except rest.RestTooLarge:
            self._beside = Beside(link.url)
            self._beside.start()
        except (StoreError, Rejected) as error:
            log.warning(NO_PARTITION, extra={"error": str(error)})
        if self._enough_until <= newest:
            self._again_at = time.monotonic() + RETRY_SECONDS

    def close(self) -> None:
        """Stop what is done in the background."""
        if self._beside is not None:
            self._beside.cancel()


@final
class Beside(Thread):
    """Adds partitions beside a large rest once, in the background."""

    def __init__(self, url: str) -> None:
        super().__init__(name="partitions", daemon=True)
        self._link, self._is_cancelled = Link(url), False
        self._connection: Connection | None = None

    def run(self) -> None:
        try:
            with closing(self._link), self._link.using("partitioned") as connection:
                self._connection = connection
                rest.add_beside(connection)
        except (StoreError, Rejected) as error:
            if not self._is_cancelled:
                log.warning(NO_PARTITION, extra={"error": str(error)})

    def cancel(self) -> None:
        """Stop soon. What is begun can be ended by another server."""
        self._is_cancelled = True
        end = time.monotonic() + CLOSING
        while self.is_alive() and time.monotonic() < end:
            with suppress(psycopg.Error):  # it may have just been closed
                if self._connection is not None:
                    self._connection.cancel_safe(timeout=CLOSING)
            self.join(0.05)
