"""The service as http/ sees it: ask and tell, experiments, lists, keys and health."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import copy_context
from pathlib import Path
from typing import Any, Final, NamedTuple, Self, TypeVar, final

from belated.errors import HistoryLost, StoreError, StoreUnreachable
from belated.serve.domain import aliases
from belated.serve.domain.entries import Entry, Found
from belated.serve.domain.experiment import Experiment
from belated.serve.domain.messages import OutcomeReport, ReportStatus, SubjectStatus
from belated.serve.domain.operating import Operation
from belated.serve.domain.quotas import OpenLimit, Quotas, Rates
from belated.serve.domain.refusals import STORE_BUSY, Refusal, behind, try_later
from belated.serve.domain.settings import ArmChange, Settings
from belated.serve.engine import administration
from belated.serve.engine.engine import Engine
from belated.serve.engine.feedback import is_of, look_up, unknown
from belated.serve.engine.recalling import Recalling
from belated.serve.engine.requests import Answers, Ask, ChangeArms, Close, Create, Operate, Tell
from belated.serve.engine.writer import Writer
from belated.serve.service.archived import Archived, looks
from belated.serve.service.descriptions import (
    ArmDetails,
    ExperimentSummary,
    ExperimentTotals,
    ExperimentView,
    StoreView,
)
from belated.serve.service.failed_views import failed_details
from belated.serve.service.keys import Gate, Grant, Scope
from belated.serve.service.lists import ListPage, Lists
from belated.serve.service.misses import Misses
from belated.serve.service.reading import SILENCE_TIMEOUT, Reader
from belated.serve.service.trail import Refused
from belated.serve.service.viewing import ViewThread
from belated.serve.service.views import arm_details, described, summary, totals, view
from belated.serve.store.journal import Busy, Journal, Key, Record
from belated.serve.store.opening import open_to_serve

T = TypeVar("T")
log = logging.getLogger("belated.service")
CAPACITY: Final = 100_000  # decisions and reports that may wait for the disk
BUSY_TIMEOUT: Final = 2.0  # seconds that a change of keys waits for a lock of somebody else
BUSY_PAUSE: Final = 0.1  # seconds between two tries
NOTE_EVERY: Final = 60.0  # seconds between two notes of who used keys and who was refused


class DecisionRecord(NamedTuple):
    """A decision with a page of its outcomes, oldest first."""

    experiment: Experiment
    found: Found
    outcomes: list[Entry]
    next: str | None  # the cursor of the next page


class Measurements(NamedTuple):
    """What the metrics show, all from one moment."""

    experiments: list[ExperimentTotals]
    store: StoreView


def keys_at_start(journal: Journal) -> list[Key]:
    """Return all keys. Waits a little if somebody has locked them. Raises StoreUnreachable."""
    end = time.monotonic() + BUSY_TIMEOUT
    while True:
        try:
            return journal.keys()
        except Busy as error:
            if time.monotonic() > end:
                raise StoreUnreachable(f"{error}, so the keys cannot be read. Try again.") from error
        time.sleep(BUSY_PAUSE)


@final
class Service:
    """One store with its engine, its writer thread, its keys and a connection for readers.

    Call the coroutines in the event loop. Methods that block say so. Call those in another thread.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        capacity: int = CAPACITY,
        internal_keys: Sequence[Key] = (),
        make_snapshot: Callable[[], object] | None = None,
        end_snapshots: Callable[[], object] = lambda: None,
        quotas: Quotas = Quotas(),  # noqa: B008  # a constant
    ) -> None:
        self._engine, self._quotas, self._end_snapshots = engine, quotas, end_snapshots
        self._key_rates, self._rates = (
            Rates("rate of a key", "--rate"),
            Rates("rate of the experiment", "--experiment-rate"),
        )
        self._gate = Gate(keys_at_start(engine.journal), internal_keys, engine.now)
        self.refused, self._next_note = Refused(), time.monotonic() + NOTE_EVERY
        self._writer = Writer(engine, self._learn_keys, capacity=capacity, make_snapshot=make_snapshot)
        self._reader = Reader(engine.journal, self._writer)
        self._archived, self.lists = Archived(self._reader), Lists(engine, self._reader)
        self._recalling = Recalling(engine)
        self.misses = Misses()
        self.refused_connections = Counter[int]()  # requests that broke a limit of their connection, by status
        self.views = ViewThread()
        self.is_stopping = False

    @classmethod
    def open(
        cls,
        store: str | Path,
        *,
        capacity: int = CAPACITY,
        internal_keys: Sequence[Key] = (),
        make_snapshot: Callable[[], object] | None = None,
        end_snapshots: Callable[[], object] = lambda: None,
        quotas: Quotas = Quotas(),  # noqa: B008
        may_create: bool = True,
    ) -> Self:
        """Open a store. Other processes may serve it too. The store does not keep `internal_keys`.

        `make_snapshot` is called when a snapshot is due. Without it the writer saves one itself and stalls meanwhile.
        `end_snapshots` is called before the last one, which the writer saves in any case.
        """
        journal = open_to_serve(store, silence_timeout=SILENCE_TIMEOUT, may_create=may_create)
        engine = Engine(
            journal,
            max_open=quotas.max_open,
            key_lifetime=quotas.key_lifetime,
            max_total_arms=quotas.max_total_arms,
        )
        return cls(
            engine,
            capacity=capacity,
            internal_keys=internal_keys,
            make_snapshot=make_snapshot,
            end_snapshots=end_snapshots,
            quotas=quotas,
        )

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start to write the requests of this event loop."""
        self._writer.start(loop)
        self._recalling.start()

    def stop(self) -> None:
        """Answer every accepted request, save a snapshot and close the store. A second call does nothing."""
        self.is_stopping = True
        self._recalling.stop()
        self._end_snapshots()
        self._next_note = 0.0
        self._writer.stop()
        if not self.failure:
            self._note_at_end()
        self.close()

    def close(self) -> None:
        """Close the store. If that fails, nothing is lost, because every commit is on disk."""
        self.views.close()
        for close in (self._reader.close, self._engine.journal.close):
            try:
                close()
            except StoreError as error:
                log.error("the store cannot be closed", extra={"error": str(error)})

    # -- keys ----------------------------------------------------------------------------------------------------------

    @property
    def is_locked(self) -> bool:
        """Whether callers need a key."""
        return self._gate.is_locked

    def admit(self, key: str | None, needed: Scope, *, is_reading: bool) -> Grant:
        """Return what the caller with this key may do, or raise a Refusal. `is_reading` if it changes nothing."""
        return self._gate.admit(key, needed, is_reading=is_reading)

    def _learn_keys(self, keys: list[Key]) -> None:
        """Learn the keys, and write who used them and who was refused. In the writer's thread, twice a second."""
        self._gate.learn(keys)
        if time.monotonic() >= self._next_note:
            try:
                self._note(self._engine.journal)
            except (HistoryLost, StoreUnreachable):
                raise
            except Exception as error:  # noqa: BLE001  # try again in a minute, because no decision needs this
                reason = f"{type(error).__name__}: {error}"
                log.error("the audit trail cannot be written now", extra={"error": reason})

    def _note(self, journal: Journal) -> None:
        """Write the last uses of keys and the refusals since the last time."""
        self._next_note = time.monotonic() + NOTE_EVERY
        if uses := self._gate.take_uses():
            try:
                journal.note_uses(uses)
            except Exception:
                self._gate.put_back(uses)
                raise
        self._note_refused(journal)

    def _note_refused(self, journal: Journal) -> None:
        """Write the refusals since the last time."""
        if refused := self.refused.take():
            try:
                journal.note(refused)
            except Exception:
                self.refused.put_back(refused)
                raise

    def _note_at_end(self) -> None:
        with suppress(Exception):  # what is missing then is less than a minute of them
            self._note(self._engine.journal)

    async def manage(self, change: Callable[[Journal, int], T]) -> T:
        """Change keys. `change` gets the journal and the time. Returns its result once it is on disk."""

        def errand(journal: Journal) -> T:
            result = change(journal, self._engine.now())
            journal.settle()  # it may rest on a change that did not wait for its standby
            with suppress(Busy):  # what was changed is written, so the writer's thread learns of it soon
                self._gate.learn(journal.keys())
            return result

        return await self._run(errand)

    async def _run(self, errand: Callable[[Journal], T]) -> T:
        """Run an errand. If somebody else has locked what it needs, its caller waits, and nobody else does."""
        end = time.monotonic() + BUSY_TIMEOUT
        while True:
            try:
                return await self._writer.run(errand)
            except Busy as error:
                if time.monotonic() > end:
                    log.warning("a change of keys or of the audit trail gives up", extra={"reason": str(error)})
                    raise try_later(STORE_BUSY) from None
            await asyncio.sleep(BUSY_PAUSE)

    def keys(self) -> list[Key]:
        """Return all keys, also revoked ones. Blocks."""
        return self._reader.ask(lambda journal: journal.keys())

    async def note_change(self, record: Record) -> None:
        """Write that a change was made. It is on disk when this returns."""
        await self._run(lambda journal: journal.note([record]))

    async def audit(self, after: int, limit: int, experiment: str | None) -> ListPage[Record]:
        """Return a page of the audit trail, with what this process has not written yet."""
        if self.refused:  # otherwise nobody who reads writes anything
            with suppress(Refusal, Busy):  # if nothing can be written, what was written can still be read
                await self._writer.run(self._note_refused)
        read = lambda journal: journal.records(after, limit + 1, experiment)  # noqa: E731
        found = await asyncio.to_thread(self._reader.ask, read)
        last = found[:limit][-1].number if found else after
        return ListPage(found[:limit], str(last) if len(found) > limit else None, str(last))

    def now(self) -> int:
        """Return the time that the service uses."""
        return self._engine.now()

    # -- requests that write -------------------------------------------------------------------------------------------

    def spend(self, grant: Grant, amount: int, *names: str) -> None:
        """Count reports of a caller, or decisions, as many of each of these experiments.

        Raises a Refusal if there were too many lately.
        """
        now = time.monotonic()
        rate = self._quotas.key_rate if grant.rate is None else grant.rate
        self._key_rates.spend(grant.owner, amount, rate, now)
        for name in names:
            if self._quotas.experiment_rate is not None and self.knows(name):
                self._rates.spend(name, amount // len(names), self._quotas.experiment_rate, now)

    async def ask(
        self,
        name: str,
        size: int = 1,
        key: str | None = None,
        limit: OpenLimit | None = None,
        subject: str | None = None,
    ) -> Answers:
        """Make decisions. They are on disk when this returns. `limit` is that of the caller's key.

        A subject gets the decision that it has already. So its request can be repeated, and a key has no effect.
        """
        if subject is not None:
            size, key = 1, None
            aliases.checked("subject", subject)
        answers: Answers = await self._writer.submit(Ask(name, size, key, limit, subject))
        return answers

    async def ask_for(self, name: str, subjects: Sequence[str], limit: OpenLimit | None = None) -> list[Answers]:
        """Make a decision for each subject that has none. If one is refused, so is the whole, and can be repeated."""
        for subject in subjects:
            aliases.checked("subject", subject)
        asked = (self.ask(name, limit=limit, subject=subject) for subject in subjects)
        answers = await asyncio.gather(*asked, return_exceptions=True)
        if (error := next((one for one in answers if isinstance(one, BaseException)), None)) is not None:
            raise error
        return [one for one in answers if isinstance(one, Answers)]

    async def tell(
        self, reports: list[OutcomeReport], only: str | None = None, caller: str = ""
    ) -> list[ReportStatus | SubjectStatus | Refusal]:
        """Record outcomes. Each gets a status or a refusal. `only` is the one experiment that the caller may use."""
        self.misses.check(caller)
        statuses: list[ReportStatus | SubjectStatus | Refusal] = await self._writer.submit(Tell(reports, only))
        told = zip(reports, statuses, strict=True)
        missing = [report for report, one in told if isinstance(one, Refusal) and one.kind == "not_found"]
        of_subjects = sum(report.subject is not None for report in missing)
        self.misses.subjects += of_subjects
        self.misses.add(caller, len(missing) - of_subjects)
        return statuses

    async def create(self, settings: Settings, by: str = "") -> bool:
        """Create an experiment. Returns False if there is one with the same settings. `by` is the key of the caller."""
        _, is_new = await self._writer.submit(Create(settings, by, copy_context()))
        return bool(is_new)

    async def change_arms(self, name: str, change: ArmChange, by: str = "") -> None:
        """Add and retire arms."""
        await self._writer.submit(ChangeArms(name, change, by, copy_context()))

    async def close_experiment(self, name: str, by: str = "") -> None:
        """Close an experiment: it makes no more decisions but still takes reports."""
        await self._writer.submit(Close(name, by, copy_context()))

    async def operate(self, name: str, operation: Operation, by: str = "") -> None:
        """Pause, resume, freeze, unfreeze, end or edit an experiment."""
        await self._writer.submit(Operate(name, operation, by, copy_context()))

    # -- experiments ---------------------------------------------------------------------------------------------------

    def knows(self, name: str) -> bool:
        """Whether this server has read of an experiment of this name."""
        return name in self._engine.fold.by_name  # without the lock, for which the event loop would have to wait

    def removal_mark(self) -> tuple[int, int]:
        """Return a value that changes when decisions may have been archived or erased, and for a while after it.

        They leave the store one after the other, and no entry says when.
        """
        removed = self._engine.removed
        return removed.until, looks(removed, self._engine.now())

    def revision(self, name: str) -> tuple[int, int, bool] | None:
        """Return what changes whenever an experiment does. None if this server does not know the name."""
        experiment = self._engine.fold.by_name.get(name)
        return None if experiment is None else (experiment.seq, experiment.revision, experiment.failure is None)

    def find(self, name: str) -> Experiment:
        """Return an experiment, or raise a Refusal. Blocks, unless the service `knows` the name."""
        if not self.knows(name):
            self._require(self._reader.ask(lambda journal: journal.named([name])).get(name, 0))
        return administration.find(self._engine.fold, name)

    # -- documents: all of these block, and may take long. Call them in the thread `views` -----------------------------

    def experiment_view(self, name: str) -> ExperimentView:
        """Describe an experiment at one moment."""
        experiment = self.find(name)
        found = view(experiment, self.store_view(), self._engine.now(), self._engine.lock)
        found.archive = self._archived.view(experiment, self._engine.removed)
        return found

    def arms(self, name: str, after: int, limit: int) -> ListPage[ArmDetails]:
        """List all arms that ever took part, in the order in which they came."""

        experiment, now = self.find(name), self._engine.now()

        def page(one: Experiment, details: Callable[[range], list[ArmDetails]]) -> ListPage[ArmDetails]:
            n_arms = len(one.arms)
            shown = range(min(after, n_arms), min(after + limit, n_arms))
            return ListPage(details(shown), str(shown.stop) if shown.stop < n_arms else None, str(shown.stop))

        return described(
            experiment,
            self._engine.lock,
            lambda still: page(still.experiment, lambda shown: arm_details(still, now, shown)),
            lambda _: page(experiment, lambda shown: failed_details(experiment, shown)),
        )

    def experiments(self, after: int, limit: int, only: str | None = None) -> ListPage[ExperimentSummary]:
        """List experiments in the order of their creation. `only` is the one experiment that the caller may see."""
        with self._engine.lock:
            known = self._engine.fold.experiments.items()
            later = [one for seq, one in known if seq > after and only in (None, one.name)]
            more = str(later[limit - 1].seq) if len(later) > limit else None
            last = later[:limit][-1].seq if later else after
            return ListPage([summary(one) for one in later[:limit]], more, str(last))

    # -- the journal: all of these block -------------------------------------------------------------------------------

    def decision(
        self, decision_id: str, first: int, limit: int, only: str | None = None, caller: str = ""
    ) -> DecisionRecord:
        """Return a decision and its outcomes from the revision `first` on, or raise a Refusal."""
        self.misses.check(caller)

        def read(journal: Journal) -> tuple[Found | None, list[Entry]]:
            [found] = look_up([decision_id], journal)
            return found, [] if found is None else journal.history(found.decision.seq, first, limit + 1)

        found, outcomes = self._reader.ask(read)
        if found is not None:
            self._require_decision(found.decision)
        if found is None or not is_of(only, found.decision, self._engine.fold):
            self.misses.add(caller, 1)
            raise unknown(decision_id, self._engine.removed)
        following = str(outcomes[limit].revision) if len(outcomes) > limit else None
        experiment = self._engine.fold.experiments[found.decision.experiment]
        return DecisionRecord(experiment, found, outcomes[:limit], following)

    def _require(self, seq: int) -> None:
        """Refuse if this server has not applied this entry yet."""
        if self._engine.fold.seq < seq:
            raise behind(self._engine.fold.seq, seq)

    def _require_decision(self, decision: Entry) -> None:
        """Refuse if this server does not know the decision's experiment or arm yet."""
        self._require(decision.experiment)
        if (decision.arm or 0) >= len(self._engine.fold.experiments[decision.experiment].arms):
            self._require(decision.seen or 0)

    # -- health --------------------------------------------------------------------------------------------------------

    @property
    def seq(self) -> int:
        """The last entry that this server has applied."""
        return self._engine.fold.seq

    @property
    def failure(self) -> str:
        """Why nothing can be written, or nothing."""
        return self._writer.failure

    def refusal(self) -> Refusal | None:
        """Return why requests that write are refused now, or None."""
        return self._writer.refusal()

    def is_hopeless(self) -> bool:
        """Whether only a restart of the process can help."""
        return self._writer.is_hopeless()

    def is_hanging(self) -> bool:
        """Whether the store has not answered for so long that this process must be ended from outside."""
        return self._writer.is_hanging()

    @property
    def failed_for(self) -> float:
        """Seconds since a failure that only a restart can end. 0 if there was none."""
        since = self._writer.failed_at
        return 0.0 if since is None else time.monotonic() - since

    def change_mark(self) -> tuple[Any, ...]:
        """Return a value that differs after a change of the journal, the store's health or the lag.

        It also changes for a while after entries were allowed to go.
        """
        _, looked = self.removal_mark()
        return self.seq, self.failure, self._writer.health.lag_entries, looked

    def store_view(self) -> StoreView:
        """Describe the health of the store."""
        writer, engine = self._writer, self._engine
        return StoreView(
            kind=engine.journal.kind,
            writable=not writer.failure,
            entries=engine.fold.seq,
            bytes=writer.health.bytes,
            last_commit_ms=engine.applied.commit_seconds * 1000,
            queue=writer.queued,
            unsnapshotted=engine.unsnapshotted,
            lag_entries=writer.health.lag_entries,
            lag_seconds=writer.lag_seconds(),
        )

    def measure(self) -> Measurements:
        """Return the numbers of all experiments and of the store. Blocks."""
        engine = self._engine  # its lock is held for one experiment at a time
        found = [totals(one, engine.now(), engine.lock) for one in list(engine.fold.experiments.values())]
        return Measurements(found, self.store_view())

    def clock_offset(self) -> float:
        """Return by how many seconds this machine's clock is ahead of the time that the service uses."""
        return self._engine.clock.offset()

    def on_commit(self, listener: Callable[[float, int], None]) -> None:
        """Call `listener` after each commit with its seconds and its number of entries."""
        self._writer.committed = listener
