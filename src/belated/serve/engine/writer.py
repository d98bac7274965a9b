"""The writer: a thread that commits waiting requests in groups and then answers them."""

import asyncio
import logging
import math
import time
from collections import deque
from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, Final, NamedTuple, TypeVar, final

from belated.errors import HistoryLost, StoreError, StoreUnreachable
from belated.serve.domain.refusals import STORE_FAILED, STORE_SILENT, STORE_UNREACHABLE, Refusal, try_later
from belated.serve.domain.timestamps import MICROSECONDS
from belated.serve.engine.engine import Engine
from belated.serve.engine.errands import Errands
from belated.serve.engine.expiry import EXPIRED_AT_ONCE
from belated.serve.engine.parking import Parked, Parking
from belated.serve.engine.requests import Ask, Request, Result, Tell
from belated.serve.store.journal import Busy, Journal, Key

MAX_GROUP: Final = 20_000  # decisions and reports in one commit, so that no request waits long behind a crowd
LIGHT: Final = 256  # decisions and reports in a group that is small enough to commit fast
LOOP_TIMEOUT: Final = 0.005  # seconds that the event loop blocks at most for a light group
RETURN_TIMEOUT: Final = 0.005  # seconds that a group waits at most for returning clients
MOST_TURNS: Final = 16  # turns of the event loop in which more requests may join a group
RETURN_SHARE: Final = 0.1  # fraction of the last commit time to wait for returning clients
TAIL_EVERY: Final = 0.02  # seconds between two reads of what other servers have written
TAIL_SOON: Final = 0.002  # the same while the server is idle and has not applied its own entries yet
LOOK_EVERY: Final = 0.5  # seconds between two looks at the store's size, its keys and this server's lag
CATCH_UP_TIMEOUT: Final = 2.0  # seconds that a request waits for an entry to become readable
RETRY_EVERY: Final = 0.25  # seconds between two tries to reach a lost store
STALL_TIMEOUT: Final = 2.0  # seconds without an answer from the store after which new requests are refused
HANG_TIMEOUT: Final = 60.0  # and after which this process is given up. Databases that are silent are noticed before
CLAIM_TIMEOUT: Final = 1.0  # seconds to wait for the claim to save the last snapshot
EXPIRY_EVERY: Final = 0.25  # seconds between two searches for waits that are over
EXPIRY_TURN: Final = 0.05  # seconds that such a search may take while requests wait
T = TypeVar("T")
log = logging.getLogger("belated.writer")


class PendingRequest(NamedTuple):
    """A request, its number of entries, and the future of its answer."""

    request: Request
    weight: int
    future: asyncio.Future[Result]


class StoreHealth(NamedTuple):
    """The store at the last look."""

    bytes: int = 0
    lag_entries: int = 0
    caught_up_at: float = 0.0  # when this server had last caught up, on the monotonic clock


def weight(request: Request) -> int:
    """Return how many entries a request may write."""
    if isinstance(request, Ask):
        return request.size
    return len(request.reports) if isinstance(request, Tell) else 1


@final
class Writer:
    """The only thread that writes. After a failure of the store it acknowledges nothing.

    Requests gather in the event loop while the thread is busy, and are then handed over together, so that one commit
    has many of them. The loop then blocks for as long as a commit usually takes. Otherwise both threads would compete
    for the interpreter, and both would be slower. If the disk is slow, the loop goes on and gets the results later.
    """

    def __init__(
        self,
        engine: Engine,
        learn_keys: Callable[[list[Key]], object],
        *,
        capacity: int,
        make_snapshot: Callable[[], object] | None = None,
    ) -> None:
        self.engine, self.capacity, self.queued, self.failure = engine, capacity, 0, ""
        self._learn_keys, self.may_recover = learn_keys, False  # whether the store may come back after a failure
        self.failed_at: float | None = None  # when a failure came that only a restart can end, on the monotonic clock
        self.health = StoreHealth(engine.journal.size(), caught_up_at=time.monotonic())
        self._make_snapshot = engine.snapshot if make_snapshot is None else make_snapshot
        self._handed_over_at = 0.0
        # how many clients are likely to return, and until when to wait for them
        self._callers, self._wait_until = 0, 0.0
        self._gathered: deque[PendingRequest] = deque()
        self._is_busy = False  # the thread has a group, or gets one in the next turn of the event loop
        self._groups: SimpleQueue[list[PendingRequest] | None] = SimpleQueue()
        self._finished: SimpleQueue[tuple[list[PendingRequest], list[Result]]] = SimpleQueue()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = Thread(target=self._run, name="belated-writer")
        self._errands = Errands()
        self._parking: Parking[PendingRequest] = Parking()
        self._next_expiry = self._next_look = self._next_turn = 0.0
        self._pause = TAIL_SOON
        self._is_locked_out = False  # whether the log says that the keys are locked
        self.committed: Callable[[float, int], None] = lambda _seconds, _entries: None  # called after each commit

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start to serve the requests of this event loop."""
        self._loop = loop
        self._thread.start()

    async def submit(self, request: Request) -> Any:
        """Hand in a request and return its answer once it is on disk. Raises a Refusal."""
        load = weight(request)
        if (refusal := self.refusal()) is not None:
            raise refusal
        if self.queued + load > self.capacity:
            raise try_later(f"the queue is full, {self.queued} decisions and reports are waiting")
        assert self._loop is not None  # noqa: S101
        waiting = PendingRequest(request, load, self._loop.create_future())
        self.queued += load
        self._gathered.append(waiting)
        if not self._is_busy:
            self._is_busy = True
            self._loop.call_soon(self._wait_for_more, 0, MOST_TURNS)
        result = await waiting.future
        if isinstance(result, Refusal):
            if result.kind == "internal" and isinstance(request, Ask | Tell):  # the thread does not know its caller
                log.error("this request has failed unexpectedly. A line just before says why")
            raise result
        return result

    async def run(self, errand: Callable[[Journal], T]) -> T:
        """Run something with the journal of the writer's thread, between two groups. Raises a Refusal."""
        if (refusal := self.refusal()) is not None:
            raise refusal
        future = self._errands.submit(errand)
        self._groups.put([])  # so that the thread wakes up
        result: T = await future
        return result

    def _run_errands(self) -> None:
        guarded = (lambda _step: False) if self.failure else self._guarded
        self._errands.run(self.engine.journal, guarded, self._failed)

    def _is_stalled(self) -> bool:
        """Whether the thread has waited for the store longer than STALL_TIMEOUT."""
        return self._is_busy and bool(self._handed_over_at) and time.monotonic() > self._handed_over_at + STALL_TIMEOUT

    def stop(self) -> None:
        """Answer every accepted request, save a snapshot, and end. Call it when the event loop is idle."""
        if not self._thread.is_alive():
            return
        if self._gathered:
            self._groups.put(list(self._gathered))
        self._groups.put(None)
        self._thread.join()

    def _wait_for_more(self, known: int, turns: int) -> None:
        """Let the event loop read more requests. Hand over the group when a turn brings nothing new.

        Wait a little longer for clients that have just been answered, because they may ask again at once. A request
        that comes too late for this group waits for a whole commit.
        """
        assert self._loop is not None  # noqa: S101
        is_growing = len(self._gathered) > known and turns > 0
        are_more_due = len(self._gathered) < self._callers and self.queued < MAX_GROUP
        if is_growing or (are_more_due and time.monotonic() < self._wait_until):
            self._loop.call_soon(self._wait_for_more, len(self._gathered), turns - 1)
        else:
            self._hand_over()

    def _hand_over(self) -> None:
        """Give the gathered requests to the thread, up to MAX_GROUP."""
        group: list[PendingRequest] = []
        load = 0
        while self._gathered and load < MAX_GROUP:
            group.append(self._gathered.popleft())
            load += group[-1].weight
        if self.failure:  # the thread may be busy reconnecting, so do not wait for it
            self._answer(group, [self._failed()] * len(group))
            return
        self._handed_over_at = time.monotonic()
        self._groups.put(group)
        if load <= LIGHT:
            self._collect(LOOP_TIMEOUT)

    def _collect(self, timeout: float = 0.0) -> None:
        """Answer the finished group, if there is one."""
        try:
            group, results = self._finished.get(timeout=timeout)
        except Empty:
            return
        self._answer(group, results)

    def _answer(self, group: list[PendingRequest], results: list[Result]) -> None:
        """Set the results in the event loop, and hand over the requests that came meanwhile."""
        for waiting, result in zip(group, results, strict=True):
            self.queued -= waiting.weight
            if not waiting.future.done():  # its client may have left
                waiting.future.set_result(result)
        now = time.monotonic()
        took = now - self._handed_over_at if self._handed_over_at else 0.0
        self._callers = len(group) + len(self._gathered)
        self._wait_until = now + min(RETURN_TIMEOUT, RETURN_SHARE * took)
        self._is_busy, self._handed_over_at = bool(self._gathered), 0.0
        if self._gathered:
            self._wait_for_more(0, MOST_TURNS)

    def _run(self) -> None:
        while True:
            wait = self._next_turn - time.monotonic()
            if self.engine.applied.is_behind and not self.failure:
                wait = min(wait, self._pause)
            try:
                group = self._groups.get(timeout=max(0.0, wait))
            except Empty:
                group = []
            if group is None:
                break
            self._turn(group)
        self._resume(math.inf)
        self._run_errands()
        if not self.failure:
            self._guarded(self._snapshot_at_end)

    def _turn(self, group: list[PendingRequest]) -> None:
        """Serve a group, and do what else is due. Whatever fails, the thread goes on, or callers would wait forever."""
        if not self._guarded(lambda: self._serve(group)):
            self._finish(group, [self._failed()] * len(group))
        self._run_errands()
        self._guarded(lambda: self._look_after(is_idle=not group))
        self._guarded(lambda: self._resume(math.inf if self.failure else time.monotonic()))

    def _serve(self, group: list[PendingRequest]) -> None:
        results: list[Result] = []
        if group and not self.failure:
            before = self.engine.applied.entries
            self._guarded(lambda: results.extend(self.engine.process([one.request for one in group])))
            self.committed(self.engine.applied.commit_seconds, self.engine.applied.entries - before)
        if self.failure:
            results = [self._failed()] * len(group)
        if group:
            self._finish(*self._parking.keep(group, results, time.monotonic() + CATCH_UP_TIMEOUT))

    def _finish(self, group: list[PendingRequest], results: list[Result]) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._finished.put((group, results))
            self._loop.call_soon_threadsafe(self._collect)  # finds nothing if the loop has blocked for it

    def _resume(self, now: float) -> None:
        """Go on with requests that had to wait for an entry. Others are answered in the meantime."""
        for parked, may_wait in zip(self._parking.take(self.engine.fold.seq, now), (True, False), strict=True):
            if parked:
                self._serve_parked(parked, may_wait=may_wait)

    def _serve_parked(self, parked: list[Parked[PendingRequest]], *, may_wait: bool) -> None:
        results, before = list[Result](), self.engine.applied.entries
        if not self.failure:
            again = [(one.waiting.request, one.hidden) for one in parked]
            self._guarded(lambda: results.extend(self.engine.resume(again, may_wait=may_wait)))
            self.committed(self.engine.applied.commit_seconds, self.engine.applied.entries - before)
        if self.failure:
            results = [self._failed()] * len(parked)
        group, results = self._parking.keep([one.waiting for one in parked], results, parked[0].until)
        if group and self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._answer_parked, group, results)

    def _answer_parked(self, group: list[PendingRequest], results: list[Result]) -> None:
        """Set the results of requests that had to wait, in the event loop."""
        for waiting, result in zip(group, results, strict=True):
            self.queued -= waiting.weight
            if not waiting.future.done():
                waiting.future.set_result(result)

    def refusal(self) -> Refusal | None:
        """Return why requests are refused now, or None."""
        if self.failure:
            return self._failed()
        return try_later(STORE_SILENT) if self._is_stalled() else None

    def _failed(self) -> Refusal:
        return try_later(self.failure) if self.may_recover else Refusal("unavailable", self.failure)

    def _look_after(self, *, is_idle: bool) -> None:
        """Do what is due: apply new entries, end waits, look at the store, or try to reach it again."""
        now = time.monotonic()
        if self.failure:
            if now >= self._next_turn:
                if self.may_recover:
                    self._try_again()
                self._next_turn = time.monotonic() + (RETRY_EVERY if self.failure else TAIL_EVERY)
            return
        if now >= self._next_turn or (is_idle and self.engine.applied.is_behind):
            self._guarded(self._catch_up)
            self._pause = min(TAIL_EVERY, 2 * self._pause) if self.engine.applied.is_behind else TAIL_SOON
            self._next_turn = time.monotonic() + TAIL_EVERY
        if not self.failure and now >= self._next_expiry:
            self._guarded(self._tidy)

    def _catch_up(self) -> None:
        self.engine.catch_up()
        now = time.monotonic()
        if now >= self._next_look:
            self.engine.confirm_history()
            self.engine.journal.require_durability()
            lag = max(0, self.engine.journal.last() - self.engine.fold.seq)
            self.health = StoreHealth(self.engine.journal.size(), lag, now if lag == 0 else self.health.caught_up_at)
            self._look_at_keys()
            self._next_look = now + LOOK_EVERY

    def _look_at_keys(self) -> None:
        """Read the keys, unless somebody has locked them. Those that are known then work for a while."""
        try:
            self._learn_keys(self.engine.journal.keys())
        except Busy as error:
            if not self._is_locked_out:
                log.warning("the keys cannot be read now, and the service goes on", extra={"reason": str(error)})
            self._is_locked_out = True
        else:
            self._is_locked_out = False

    def lag_seconds(self) -> float:
        """Return seconds since this server was last caught up, but no more than the age of its last entry."""
        if self.health.lag_entries == 0 and not self.failure:
            return 0.0
        since, age = (
            time.monotonic() - self.health.caught_up_at,
            (self.engine.now() - self.engine.fold.at) / MICROSECONDS,
        )
        return since if age < 0 else min(since, age)  # an entry may be dated ahead by a wrong clock

    def _try_again(self) -> None:
        """Try to reach the lost store. If that works, apply all it holds and accept requests again."""
        self._next_look = 0.0
        if self._guarded(self._reach_again, is_again=True):
            log.warning(
                "the store can be reached again", extra={"failure": self.failure, "entry": self.engine.fold.seq}
            )
            self.failure = ""

    def _reach_again(self) -> None:
        """Look whether history was lost before anything new is applied. A new witness may hide an older loss."""
        self.engine.confirm_history(is_whole=True)  # after an outage it may be another server
        self._catch_up()
        self.engine.journal.settle()  # otherwise each request would have to wait for a lost standby

    def _tidy(self) -> None:
        """End waits that are over, forget old Idempotency-Keys, and save a snapshot if it is due."""
        started, before, looked = time.monotonic(), self.engine.applied.entries, EXPIRED_AT_ONCE
        while looked >= EXPIRED_AT_ONCE and time.monotonic() < started + EXPIRY_TURN:
            looked = self.engine.expire()
        self.committed(self.engine.applied.commit_seconds, self.engine.applied.entries - before)
        self._next_expiry = time.monotonic() + (0.0 if looked >= EXPIRED_AT_ONCE else EXPIRY_EVERY)
        self.engine.forget_keys()
        self._snapshot_if_due()

    def _snapshot_if_due(self) -> None:
        self._try_snapshot(self.engine.is_snapshot_due, self._make_snapshot)

    def _snapshot_at_end(self) -> None:
        self._try_snapshot(self._may_save_last, self.engine.snapshot)

    def _may_save_last(self) -> bool:
        """Whether a last snapshot is worth its time, and nobody else saves one. Two at once could spoil each other."""
        end = time.monotonic() + CLAIM_TIMEOUT
        while self.engine.is_last_snapshot_due() and time.monotonic() < end:
            if self.engine.journal.claim_snapshots():
                return True
            time.sleep(TAIL_EVERY)  # the process that was ended may have held the claim until now
        return False

    @staticmethod
    def _try_snapshot(is_due: Callable[[], bool], make: Callable[[], object]) -> None:
        """Have a snapshot saved. It only makes the next start faster, so a failure is logged and ignored."""
        try:
            if is_due():
                make()
        except HistoryLost:
            raise
        except Exception as error:  # noqa: BLE001
            log.error("a snapshot could not be saved", extra={"error": f"{type(error).__name__}: {error}"})

    def _guarded(self, step: Callable[[], Any], *, is_again: bool = False) -> bool:
        """Run a step. After any failure stop acknowledging writes. Recover only if the error is transient.

        The state in memory stays valid, because only entries that were read or written are applied to it.
        """
        try:
            step()
        except StoreUnreachable as error:
            self.may_recover, self.failure = True, STORE_UNREACHABLE
            if not is_again:
                log.critical("the store cannot be reached, so requests are refused", extra={"error": str(error)})
        except Exception as error:  # noqa: BLE001
            self._fail(error)
        else:
            return True
        return False

    def _fail(self, error: Exception) -> None:
        """Write nothing more. Only a restart can end this failure, so the process ends soon."""
        self.may_recover, self.failed_at = False, self.failed_at or time.monotonic()
        if isinstance(error, StoreError):
            self.failure = STORE_FAILED
            log.critical("the store failed, and the service is read-only until a restart", extra={"error": str(error)})
        else:
            self.failure = f"an unexpected {type(error).__name__}. Nothing more is written until a restart."
            log.critical("an unexpected failure, and the service is read-only until a restart", exc_info=error)

    def is_hopeless(self) -> bool:
        """Whether only a restart can help: after a permanent failure, or if the store hangs for very long."""
        return self.failed_at is not None or self.is_hanging()

    def is_hanging(self) -> bool:
        """Whether the thread has been busy with one group for very long, so that nobody can wait for its end."""
        return self._is_busy and 0 < self._handed_over_at < time.monotonic() - HANG_TIMEOUT
