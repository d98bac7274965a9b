"""The writer: a thread that takes the requests which wait together, commits them together, and then answers them."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, Final, NamedTuple, final

from belated.errors import StoreError, StoreUnreachable
from belated.serve.domain.clock import MICROSECONDS
from belated.serve.domain.refusals import STORE_SILENT, STORE_UNREACHABLE, Refusal, try_later
from belated.serve.engine.engine import Engine
from belated.serve.engine.expiry import EXPIRED_AT_ONCE
from belated.serve.engine.requests import Ask, Request, Result, Tell
from belated.serve.store.journal import Key

MAX_GROUP: Final = 20_000  # decisions and reports in one commit, so that nobody waits long behind a crowd
LIGHT: Final = 256  # a group of so few decisions and reports is committed soon
COMMIT_TIMEOUT: Final = 0.005  # seconds the event loop waits for it, and a group for more
MOST_TURNS: Final = 16  # of the event loop, in which more requests may join a group
SHARE: Final = 0.1  # of the time a group took: for so long it is waited for those who were answered to ask again
TAIL_EVERY: Final = 0.02  # seconds between two looks for what other servers have written
SOON: Final = 0.002  # the same while nobody asks and what this server has written itself is not folded yet
LOOK_EVERY: Final = 0.5  # seconds between two looks at the store: its size, its keys, how far this server is behind
RETRY_EVERY: Final = 0.25  # seconds between two tries to reach a store that could not be reached
STALLED: Final = 2.0  # seconds after which a store that does not answer is not waited for by newcomers
EXPIRY_EVERY: Final = 0.25  # seconds
EXPIRY_TURN: Final = 0.05  # seconds for which it may go on while requests wait
log = logging.getLogger("belated.writer")


class PendingRequest(NamedTuple):
    """A request and who waits for its answer."""

    request: Request
    weight: int
    future: asyncio.Future[Result]


class StoreHealth(NamedTuple):
    """The store when it was looked at last."""

    bytes: int = 0
    lag_entries: int = 0
    level_at: float = 0.0  # on the monotonic clock: when this server was level with the journal


def weight(request: Request) -> int:
    """How many entries a request may write."""
    if isinstance(request, Ask):
        return request.size
    return len(request.reports) if isinstance(request, Tell) else 1


@final
class Writer:
    """The one thread that writes. After a failure of the store nothing is acknowledged any more.

    Requests gather in the event loop while the thread is busy, and are handed over all at once, so that a commit has
    many. The loop then stands still for as long as a commit usually takes, instead of taking the interpreter away from
    the thread: that makes both faster. If the disk is slow, the loop goes on, and is told later.
    """

    def __init__(self, engine: Engine, learn_keys: Callable[[list[Key]], object], *, capacity: int) -> None:
        self.engine, self.capacity, self.queued, self.failure = engine, capacity, 0, ""
        self._learn_keys, self.may_recover = learn_keys, False  # after a failure: whether the store may come back
        self.health = StoreHealth(engine.journal.size(), level_at=time.monotonic())
        self._handed_over_at = 0.0
        self._callers, self._until = 0, 0.0  # as many are likely to have asked again by then
        self._gathered: deque[PendingRequest] = deque()
        self._is_busy = False  # the thread has a group, or will have one when the event loop is done with its turn
        self._groups: SimpleQueue[list[PendingRequest] | None] = SimpleQueue()
        self._finished: SimpleQueue[tuple[list[PendingRequest], list[Result]]] = SimpleQueue()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = Thread(target=self._run, name="belated-writer")
        self._next_expiry = self._next_look = self._next_turn = 0.0
        self._pause = SOON
        self.committed: Callable[[float, int], None] = lambda _seconds, _entries: None  # metrics listen here

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin to serve the requests of this event loop."""
        self._loop = loop
        self._thread.start()

    async def submit(self, request: Request) -> Any:
        """Wait for a place, the disk and the answer; a Refusal is raised."""
        load = weight(request)
        if (refusal := self.refusal()) is not None:
            raise refusal
        if self.queued + load > self.capacity:
            raise try_later(f"{self.queued} decisions and reports wait already")
        assert self._loop is not None  # noqa: S101
        waiting = PendingRequest(request, load, self._loop.create_future())
        self.queued += load
        self._gathered.append(waiting)
        if not self._is_busy:
            self._is_busy = True
            self._loop.call_soon(self._wait_for_more, 0, MOST_TURNS)
        result = await waiting.future
        if isinstance(result, Refusal):
            raise result
        return result

    def _is_stalled(self) -> bool:
        """The thread has had a group for so long that the store must be out of reach."""
        return self._is_busy and bool(self._handed_over_at) and time.monotonic() > self._handed_over_at + STALLED

    def stop(self) -> None:
        """Answer what was accepted, save a snapshot, and end; the event loop has come to rest."""
        if not self._thread.is_alive():
            return
        if self._gathered:
            self._groups.put(list(self._gathered))
        self._groups.put(None)
        self._thread.join()

    def _wait_for_more(self, known: int, turns: int) -> None:
        """Let the event loop read what has arrived meanwhile; go when a turn has brought nothing new.

        But those who have just been answered may ask again at once: who comes too late waits for a whole commit.
        """
        assert self._loop is not None  # noqa: S101
        is_growing = len(self._gathered) > known and turns > 0
        are_more_due = len(self._gathered) < self._callers and self.queued < MAX_GROUP
        if is_growing or (are_more_due and time.monotonic() < self._until):
            self._loop.call_soon(self._wait_for_more, len(self._gathered), turns - 1)
        else:
            self._hand_over()

    def _hand_over(self) -> None:
        """What has gathered goes to the thread, up to MAX_GROUP."""
        group: list[PendingRequest] = []
        load = 0
        while self._gathered and load < MAX_GROUP:
            group.append(self._gathered.popleft())
            load += group[-1].weight
        if self.failure:  # the thread may be at work on reaching the store again: nobody waits for that
            self._answer(group, [self._failed()] * len(group))
            return
        self._handed_over_at = time.monotonic()
        self._groups.put(group)
        if load <= LIGHT:
            self._collect(COMMIT_TIMEOUT)

    def _collect(self, patience: float = 0.0) -> None:
        """Answer the group that is finished, if it is."""
        try:
            group, results = self._finished.get(timeout=patience)
        except Empty:
            return
        self._answer(group, results)

    def _answer(self, group: list[PendingRequest], results: list[Result]) -> None:
        """In the event loop again: tell those who wait, and hand over who came meanwhile."""
        for waiting, result in zip(group, results, strict=True):
            self.queued -= waiting.weight
            if not waiting.future.done():  # its client may have gone
                waiting.future.set_result(result)
        now = time.monotonic()
        took = now - self._handed_over_at if self._handed_over_at else 0.0
        self._callers, self._until = len(group) + len(self._gathered), now + min(COMMIT_TIMEOUT, SHARE * took)
        self._is_busy, self._handed_over_at = bool(self._gathered), 0.0
        if self._gathered:
            self._wait_for_more(0, MOST_TURNS)

    def _run(self) -> None:
        while True:
            wait = self._next_turn - time.monotonic()
            if self.engine.is_behind and not self.failure:
                wait = min(wait, self._pause)
            try:
                group = self._groups.get(timeout=max(0.0, wait))
            except Empty:
                group = []
            if group is None:
                break
            self._serve(group)
            self._look_after(is_idle=not group)
        if not self.failure and self.engine.unsnapshotted:
            self._guarded(self.engine.snapshot)

    def _serve(self, group: list[PendingRequest]) -> None:
        results: list[Result] = []
        if group and not self.failure:
            before = self.engine.entries
            self._guarded(lambda: results.extend(self.engine.process([one.request for one in group])))
            self.committed(self.engine.commit_seconds, self.engine.entries - before)
        if self.failure:
            results = [self._failed()] * len(group)
        if group and self._loop is not None and not self._loop.is_closed():
            self._finished.put((group, results))
            self._loop.call_soon_threadsafe(self._collect)  # which finds nothing if the loop has waited

    def refusal(self) -> Refusal | None:
        """Why nothing is accepted now, if so."""
        if self.failure:
            return self._failed()
        return try_later(STORE_SILENT) if self._is_stalled() else None

    def _failed(self) -> Refusal:
        return try_later(self.failure) if self.may_recover else Refusal("unavailable", self.failure)

    def _look_after(self, *, is_idle: bool) -> None:
        """What is due: fold what others have written, end waits, look at the store, or try whether it is back."""
        now = time.monotonic()
        if self.failure:
            if now >= self._next_turn:
                if self.may_recover:
                    self._try_again()
                self._next_turn = time.monotonic() + (RETRY_EVERY if self.failure else TAIL_EVERY)
            return
        if now >= self._next_turn or (is_idle and self.engine.is_behind):
            self._guarded(self._catch_up)
            self._pause = min(TAIL_EVERY, 2 * self._pause) if self.engine.is_behind else SOON
            self._next_turn = time.monotonic() + TAIL_EVERY
        if not self.failure and now >= self._next_expiry:
            self._guarded(self._tidy)

    def _catch_up(self) -> None:
        self.engine.catch_up()
        now = time.monotonic()
        if now >= self._next_look:
            lag = max(0, self.engine.journal.last() - self.engine.fold.seq)
            self.health = StoreHealth(self.engine.journal.size(), lag, now if lag == 0 else self.health.level_at)
            self._learn_keys(self.engine.journal.keys())
            self._next_look = now + LOOK_EVERY

    def lag_seconds(self) -> float:
        """For how long this server has not been level with the journal, and what it has folded is no news."""
        if self.health.lag_entries == 0 and not self.failure:
            return 0.0
        age = (self.engine.now() - self.engine.fold.at) / MICROSECONDS
        return max(0.0, min(time.monotonic() - self.health.level_at, age))

    def _try_again(self) -> None:
        """The store could not be reached: if it can be now, all that it holds is folded, and work goes on."""
        self._next_look = 0.0
        if self._guarded(self._catch_up, is_again=True):
            log.warning("the store is back", extra={"failure": self.failure, "entry": self.engine.fold.seq})
            self.failure = ""

    def _tidy(self) -> None:
        """End waits that are over, and keep start-up fast."""
        started, before, looked = time.monotonic(), self.engine.entries, EXPIRED_AT_ONCE
        while looked >= EXPIRED_AT_ONCE and time.monotonic() < started + EXPIRY_TURN:
            looked = self.engine.expire()
        self.committed(self.engine.commit_seconds, self.engine.entries - before)
        self._next_expiry = time.monotonic() + (0.0 if looked >= EXPIRED_AT_ONCE else EXPIRY_EVERY)
        self._snapshot_if_due()

    def _snapshot_if_due(self) -> None:
        """A snapshot is only a shortcut: without it the next start takes longer."""
        try:
            self.engine.snapshot_if_due()
        except StoreError as error:
            log.error("a snapshot could not be saved", extra={"error": str(error)})

    def _guarded(self, step: Callable[[], Any], *, is_again: bool = False) -> bool:
        """After any failure what is on disk is not known: stop acknowledging, for good unless the store may come back.

        What is in memory is still the fold of a part of the journal: nothing is folded that was not read or written.
        """
        try:
            step()
        except StoreUnreachable as error:
            self.may_recover, self.failure = True, STORE_UNREACHABLE
            if not is_again:
                log.critical("the store cannot be reached: nothing is acknowledged", extra={"error": str(error)})
        except StoreError as error:
            self.may_recover, self.failure = False, str(error)
            log.critical("the store failed: read-only from now on", extra={"error": str(error)})
        except Exception as error:
            self.may_recover = False
            self.failure = f"an unexpected {type(error).__name__}: nothing more is written until a restart"
            log.critical("an unexpected failure: read-only from now on", exc_info=True)
        else:
            return True
        return False
