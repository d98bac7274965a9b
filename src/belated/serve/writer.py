"""The writer: a thread that takes the requests which wait together, commits them together, and then answers them."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, Final, NamedTuple, final

from belated.errors import StoreError
from belated.serve.engine import Engine
from belated.serve.expiry import EXPIRED_AT_ONCE
from belated.serve.problems import Problem
from belated.serve.requests import Decide, Report, Request, Result

MAX_GROUP: Final = 20_000  # decisions and reports in one commit, so that nobody waits long behind a crowd
LIGHT: Final = 256  # a group of so few decisions and reports is committed soon
PATIENCE: Final = 0.005  # seconds the event loop waits for it
MOST_TURNS: Final = 16  # of the event loop, in which more requests may join a group
EXPIRY_EVERY: Final = 0.25  # seconds
EXPIRY_TURN: Final = 0.05  # seconds for which it may go on while requests wait
log = logging.getLogger("belated.writer")


class Waiting(NamedTuple):
    """A request and who waits for its answer."""

    request: Request
    weight: int
    future: asyncio.Future[Result]


def weight(request: Request) -> int:
    """How many entries a request may write."""
    if isinstance(request, Decide):
        return request.size
    return len(request.items) if isinstance(request, Report) else 1


@final
class Writer:
    """The one thread that writes. After a failure of the store nothing is acknowledged any more.

    Requests gather in the event loop while the thread is busy, and are handed over all at once, so that a commit has
    many. The loop then stands still for as long as a commit usually takes, instead of taking the interpreter away from
    the thread: that makes both faster. If the disk is slow, the loop goes on, and is told later.
    """

    def __init__(self, engine: Engine, *, capacity: int) -> None:
        self.engine, self.capacity, self.queued, self.failure = engine, capacity, 0, ""
        self._gathered: deque[Waiting] = deque()
        self._is_busy = False  # the thread has a group, or will have one when the event loop is done with its turn
        self._groups: SimpleQueue[list[Waiting] | None] = SimpleQueue()
        self._finished: SimpleQueue[tuple[list[Waiting], list[Result]]] = SimpleQueue()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = Thread(target=self._run, name="belated-writer")
        self._next_expiry = 0.0
        self.committed: Callable[[float, int], None] = lambda _seconds, _entries: None  # metrics listen here

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin to serve the requests of this event loop."""
        self._loop = loop
        self._thread.start()

    async def submit(self, request: Request) -> Any:
        """Wait for a place, the disk and the answer; a Problem is raised."""
        load = weight(request)
        if self.failure:
            raise Problem(503, self.failure)
        if self.queued + load > self.capacity:
            raise Problem(503, f"{self.queued} decisions and reports wait already: try again", {"Retry-After": "1"})
        assert self._loop is not None  # noqa: S101
        waiting = Waiting(request, load, self._loop.create_future())
        self.queued += load
        self._gathered.append(waiting)
        if not self._is_busy:
            self._is_busy = True
            self._loop.call_soon(self._wait_for_more, 0, MOST_TURNS)
        result = await waiting.future
        if isinstance(result, Problem):
            raise result
        return result

    def stop(self) -> None:
        """Answer what was accepted, save a snapshot, and end; the event loop has come to rest."""
        if not self._thread.is_alive():
            return
        if self._gathered:
            self._groups.put(list(self._gathered))
        self._groups.put(None)
        self._thread.join()

    def _wait_for_more(self, known: int, turns: int) -> None:
        """Let the event loop read what has arrived meanwhile; go when a turn has brought nothing new."""
        if len(self._gathered) > known and turns and self._loop is not None:
            self._loop.call_soon(self._wait_for_more, len(self._gathered), turns - 1)
        else:
            self._hand_over()

    def _hand_over(self) -> None:
        """What has gathered goes to the thread, up to MAX_GROUP."""
        group: list[Waiting] = []
        load = 0
        while self._gathered and load < MAX_GROUP:
            group.append(self._gathered.popleft())
            load += group[-1].weight
        self._groups.put(group)
        if load <= LIGHT:
            self._collect(PATIENCE)

    def _collect(self, patience: float = 0.0) -> None:
        """Answer the group that is finished, if it is."""
        try:
            group, results = self._finished.get(timeout=patience)
        except Empty:
            return
        self._answer(group, results)

    def _answer(self, group: list[Waiting], results: list[Result]) -> None:
        """In the event loop again: tell those who wait, and hand over who came meanwhile."""
        for waiting, result in zip(group, results, strict=True):
            self.queued -= waiting.weight
            if not waiting.future.done():  # its client may have gone
                waiting.future.set_result(result)
        self._is_busy = bool(self._gathered)
        if self._gathered:
            self._wait_for_more(0, MOST_TURNS)

    def _run(self) -> None:
        while True:
            try:
                group = self._groups.get(timeout=max(0.0, self._next_expiry - time.monotonic()))
            except Empty:
                group = []
            if group is None:
                break
            self._serve(group)
            if not self.failure:
                self._guarded(self._tidy)
        if not self.failure and self.engine.unsnapshotted:
            self._guarded(self.engine.snapshot)

    def _serve(self, group: list[Waiting]) -> None:
        results: list[Result] = []
        if group and not self.failure:
            before = self.engine.fold.seq
            self._guarded(lambda: results.extend(self.engine.process([one.request for one in group])))
            self.committed(self.engine.commit_seconds, self.engine.fold.seq - before)
        if self.failure:
            results = [Problem(503, self.failure)] * len(group)
        if group and self._loop is not None and not self._loop.is_closed():
            self._finished.put((group, results))
            self._loop.call_soon_threadsafe(self._collect)  # which finds nothing if the loop has waited

    def _tidy(self) -> None:
        """End waits that are over, and keep start-up fast."""
        started = time.monotonic()
        if started >= self._next_expiry:
            before, looked = self.engine.fold.seq, EXPIRED_AT_ONCE
            while looked >= EXPIRED_AT_ONCE and time.monotonic() < started + EXPIRY_TURN:
                looked = self.engine.expire()
            self.committed(self.engine.commit_seconds, self.engine.fold.seq - before)
            self._next_expiry = time.monotonic() + (0.0 if looked >= EXPIRED_AT_ONCE else EXPIRY_EVERY)
            self._snapshot_if_due()

    def _snapshot_if_due(self) -> None:
        """A snapshot is only a shortcut: without it the next start takes longer."""
        try:
            self.engine.snapshot_if_due()
        except StoreError as error:
            log.error("a snapshot could not be saved", extra={"error": str(error)})

    def _guarded(self, step: Callable[[], Any]) -> None:
        """After any failure the state in memory may not be the journal's: stop acknowledging."""
        try:
            step()
        except StoreError as error:
            self.failure = str(error)
            log.critical("the store failed: read-only from now on", extra={"error": str(error)})
        except Exception as error:
            self.failure = f"an unexpected {type(error).__name__}: nothing more is written until a restart"
            log.critical("an unexpected failure: read-only from now on", exc_info=True)
