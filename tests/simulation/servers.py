"""A server process: an engine, driven as the writer's thread drives it, that can crash at any call of its journal."""

import math
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple, final

import numpy as np
from greenlet import greenlet

from belated.errors import HistoryLost, StoreError, StoreUnreachable
from belated.serve.domain.refusals import Refusal, try_later
from belated.serve.domain.timestamps import MICROSECONDS
from belated.serve.engine.engine import Engine
from belated.serve.engine.parking import Parked, Parking
from belated.serve.engine.requests import Hidden, Result
from belated.serve.engine.writer import CATCH_UP_TIMEOUT, LOOK_EVERY
from tests.simulation.database import Transaction
from tests.simulation.journal import SimulatedJournal
from tests.simulation.model import SKEW
from tests.simulation.network import Call

if TYPE_CHECKING:
    from tests.simulation.world import World

MOST_AT_ONCE: Final = 5  # calls in one commit


class Taken(NamedTuple):
    """A call that a server has begun to serve, when that was, and how often history had been lost by then."""

    call: Call
    since: int
    losses: int


@final
class FaultyLine:
    """The line from a server to the database, with the faults of the run."""

    def __init__(self, world: "World", server: "Server") -> None:
        self._world, self._server = world, server

    def pause(self, what: str) -> None:
        self._world.pause(f"server {self._server.number}: {what}")

    def request(self, what: str) -> None:
        if self._server.is_cut or self._world.happens("lost_requests"):
            self._world.note(f"server {self._server.number}: {what}: the request is lost")
            raise StoreUnreachable("the request was lost")

    def answer(self, what: str) -> None:
        if self._server.is_cut or self._world.happens("lost_answers"):
            self._world.note(f"server {self._server.number}: {what}: the answer is lost")
            raise StoreUnreachable("the answer was lost")

    def holds(self) -> bool:
        return not (self._server.is_cut or self._world.happens("cut_appends"))

    def is_broken(self) -> bool:
        self._server.has_broken_disk = self._world.happens("broken_disks") or self._server.has_broken_disk
        return self._server.has_broken_disk

    def abandon(self, transaction: Transaction) -> None:
        self._world.orphans.append(transaction)

    def chance(self) -> bool:
        return self._world.random.random() < 0.5


@final
class Server:
    """One server of the store. `start` begins a new life of it."""

    def __init__(self, world: "World", number: int) -> None:
        self._world, self.number = world, number
        self._skew = world.random.randint(-SKEW, SKEW)
        self.jump = 0  # by which its clock is wrong in addition
        self.since, self.losses = world.now, 0  # when it began what it does now, and how much was lost by then
        self.is_cut = self.has_broken_disk = False
        self._task: greenlet | None = None
        self.journal: SimulatedJournal | None = None
        self.engine: Engine | None = None
        self.inbox: deque[Call] = deque()
        self.rounds = 0  # how often it had nothing left to do
        self.is_failed = self._may_recover = self.is_stopping = False
        self._parking: Parking[Taken] = Parking()
        self._next_look = 0.0

    @property
    def is_running(self) -> bool:
        return self._task is not None and not self._task.dead

    @property
    def must_be_restarted(self) -> bool:
        """Whether a supervisor has to act."""
        return not self.is_running or (self.is_failed and not self._may_recover)

    def start(self) -> None:
        """Start the process. If no other clock could tell that the machine's is wrong, somebody has set it right."""
        if self._world.database.clock is None:
            self.jump = 0
        self.inbox.clear()
        self._parking, self._next_look = Parking(), 0.0
        self.engine, self.has_broken_disk = None, False
        self.is_failed = self._may_recover = self.is_stopping = False
        self._task = greenlet(self._live)

    def turn(self) -> None:
        """Let the process go on until it waits for something."""
        assert self._task is not None
        self._task.switch()

    def end(self) -> None:
        """End the process, without a look at its state."""
        if self._task is not None and not self._task.dead:
            self._task.throw()

    def crash(self) -> None:
        """Kill the process where it is."""
        self.end()
        if self.engine is not None:
            self._world.model.observe(self.engine.fold)
        self.engine = None

    def clock(self) -> int:
        return self._world.now + self._skew + self.jump

    # -- inside the process --------------------------------------------------------------------------------------------

    def _live(self) -> None:
        self.journal = SimulatedJournal(self._world.database, FaultyLine(self._world, self))
        generator = np.random.default_rng(self._world.random.randrange(2**32))
        try:
            self.engine = Engine(self.journal, generator=generator)
        except StoreUnreachable:
            return  # a supervisor tries again
        except HistoryLost:
            if self._world.database.removal is None:
                raise
            return  # entries were removed while it read them, again and again
        self._world.model.observe(self.engine.fold)
        while True:
            self.rounds += 1
            self._world.pause(f"server {self.number}: idle")
            self.since = self._world.now
            self.losses = self._world.model.losses
            group = [
                Taken(self.inbox.popleft(), self.since, self.losses) for _ in range(min(len(self.inbox), MOST_AT_ONCE))
            ]
            if group:
                self._serve(group)
            if self.is_stopping:
                break
            self._look_after()
            self._resume(math.inf if self.is_failed else self._seconds())
        self._resume(math.inf)
        if not self.is_failed:
            self._guarded(self._snapshot_at_end)

    def _seconds(self) -> float:
        return self._world.now / MICROSECONDS

    def _serve(self, group: list[Taken]) -> None:
        engine = self._engine
        results = self._results(lambda: engine.process([one.call.request for one in group]), len(group))
        self._answer(group, results, self._seconds() + CATCH_UP_TIMEOUT)

    def _resume(self, now: float) -> None:
        """Go on with requests that had to wait for an entry."""
        for parked, may_wait in zip(self._parking.take(self._engine.fold.seq, now), (True, False), strict=True):
            if parked:
                self._serve_parked(parked, may_wait=may_wait)

    def _serve_parked(self, parked: list[Parked[Taken]], *, may_wait: bool) -> None:
        engine, again = self._engine, [(one.waiting.call.request, one.hidden) for one in parked]
        results = self._results(lambda: engine.resume(again, may_wait=may_wait), len(parked))
        self._answer([one.waiting for one in parked], results, parked[0].until)

    def _results(self, step: Callable[[], list[Result]], n: int) -> list[Result]:
        results: list[Result] = []
        if not self.is_failed:
            self._guarded(lambda: results.extend(step()))
        if self.is_failed:
            results = [try_later("") if self._may_recover else Refusal("unavailable", "")] * n
        return results

    def _answer(self, group: list[Taken], results: list[Result], until: float) -> None:
        self._world.happened["hidden"] += sum(isinstance(one, Hidden) for one in results)
        for taken, result in zip(*self._parking.keep(group, results, until), strict=True):
            self._world.answer(self, taken, result)

    @property
    def _engine(self) -> Engine:
        assert self.engine is not None
        return self.engine

    def _look_after(self) -> None:
        """Do some of what the writer does between two groups."""
        dice = 0.0 if self._world.is_settling else self._world.random.random()
        if self.is_failed:
            if self._may_recover and dice < 0.5:
                self._next_look = 0.0
                self.is_failed = not self._guarded(self._reach_again)
            return
        if dice < self._world.diligence:
            self._guarded(self._catch_up)
        if not self.is_failed and (dice < 0.1 or 0.5 < dice < 0.6):
            self._guarded(self._engine.expire)
        elif 0.6 < dice < 0.63:
            self._guarded(self._snapshot)

    def _reach_again(self) -> None:
        self._engine.confirm_history(is_whole=True)
        self._catch_up()

    def _catch_up(self) -> None:
        self._engine.catch_up()
        if self._seconds() >= self._next_look:
            self._engine.confirm_history()
            self._world.model.confirmed(self)
            self._next_look = self._seconds() + LOOK_EVERY

    def _snapshot(self) -> None:
        """Save a snapshot. Only a lost history is a failure, otherwise the next start is slower."""
        if not self._engine.unsnapshotted:
            return
        try:
            self._engine.snapshot()
        except HistoryLost:
            raise
        except StoreError:
            return
        self._world.model.observe(self._engine.fold)

    def _snapshot_at_end(self) -> None:
        if self._engine.is_last_snapshot_due():
            self._snapshot()

    def _guarded(self, step: Callable[[], object]) -> bool:
        """As the writer does, refuse requests after a failure, for good if it is not transient."""
        try:
            step()
        except StoreUnreachable:
            self.is_failed, self._may_recover = True, True
        except StoreError as error:
            self._world.model.failed(self, error)
            self.is_failed, self._may_recover = True, False
        else:
            return True
        return False
