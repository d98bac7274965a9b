"""The engine turns requests into journal entries, applies them once they are on disk, and only then answers.

Any number of engines may share one journal. Each applies what all of them write, in the journal's order, and draws from
its newest state. The store enforces uniqueness. After a Conflict the engine reads the journal and tries again.

The engine is synchronous and knows no HTTP. One thread calls it. Other threads may read experiments while they hold
`lock`.
"""

import logging
import time
from collections.abc import Callable, Sequence
from itertools import islice
from threading import RLock
from typing import Final, final

import numpy as np

from belated.errors import HistoryLost, InvalidInput, StoreError
from belated.serve.domain import ids, timestamps
from belated.serve.domain.entries import Entry, Found, with_seq
from belated.serve.domain.experiment import Experiment
from belated.serve.domain.messages import Decided, OutcomeReport, ReportStatus
from belated.serve.domain.quotas import MAX_OPEN, Ahead, Room
from belated.serve.domain.refusals import Refusal, behind, try_later
from belated.serve.domain.timestamps import MICROSECONDS
from belated.serve.engine import administration
from belated.serve.engine.administration import find, find_running
from belated.serve.engine.drawing import DrawnBatch, draw
from belated.serve.engine.expiry import Expiry
from belated.serve.engine.feedback import is_of, judge, look_up
from belated.serve.engine.requests import Answers, Ask, ChangeArms, Close, Create, Request, Result, Tell
from belated.serve.store.journal import PAGE, Conflict, Journal, Requested
from belated.serve.store.loading import load

SNAPSHOT_EVERY: Final = 50_000  # entries, or more if so many decisions are open that a snapshot takes long to write
OPEN_SHARE: Final = 10  # then a tenth of the open decisions
CATCH_UP_TIMEOUT: Final = 2.0  # seconds that a group of requests waits for an entry to become readable
SUM_PAUSE: Final = 50.0  # times as long as a check of the history took, until the next one that sums all entries
MAX_OVERTAKEN: Final = 50  # times that other servers are faster, before a request gives up
log = logging.getLogger("belated.engine")


@final
class Engine:
    """The state of all experiments after the entries that this server has applied."""

    def __init__(
        self,
        journal: Journal,
        *,
        clock: Callable[[], int] = timestamps.now,
        generator: np.random.Generator | None = None,
        max_open: int = MAX_OPEN,
    ) -> None:
        self.journal, self.lock, self._clock = journal, RLock(), clock
        self._generator = np.random.default_rng() if generator is None else generator
        self._max_open, self._ahead = max_open, Ahead()  # open decisions of an experiment
        self.fold = load(journal)
        self._snapshot_seq = self.fold.restored
        self._expiry = Expiry(journal)
        self.commit_seconds = 0.0  # of the last append
        self.entries, self.written = 0, 0  # how many entries this server has written, and the last of them
        self._clock_lag: int | None = None  # microseconds by which the clock is behind the journal
        self._next_sum = 0.0  # when all entries after the witness may be summed again
        self._deadline = 0.0  # until when the present group of requests may wait for the journal
        self._expects_repeats = False  # whether the last group had an Idempotency-Key that was used before

    @property
    def unsnapshotted(self) -> int:
        """How many entries a restart would have to apply."""
        return self.fold.seq - self._snapshot_seq

    def now(self) -> int:
        """Return the time of a new entry. It is never before that of the last entry applied.

        If the clock is behind the journal, time goes on from the journal's. That happens when this clock was set back,
        or when another server's clock is ahead.
        """
        # each is read once, because views ask for the time from other threads
        now, at, lag = self._clock(), self.fold.at, self._clock_lag
        if now >= at:
            self._clock_lag = None
            return now
        if lag is None:
            self._clock_lag = lag = at - now
            if lag > MICROSECONDS:
                log.warning("the clock is behind the journal", extra={"seconds": lag / MICROSECONDS})
        return max(now + lag, at)

    @property
    def is_behind(self) -> bool:
        """Whether this server has not yet applied all it has written itself."""
        return self.fold.seq < self.written

    def catch_up(self) -> None:
        """Apply all readable entries from every server."""
        while page := self.journal.read(self.fold.seq, PAGE):
            with self.lock:
                self.fold.apply(page)
            if len(page) < PAGE:
                return

    def confirm_history(self) -> None:
        """Raise HistoryLost if the journal has lost entries that were applied here.

        All entries after the witness are summed only now and then, if there are so many that it takes long.
        """
        started = time.monotonic()
        mark = self.fold.tail.mark() if started >= self._next_sum else self.fold.tail.short_mark()
        is_held = self.journal.confirms(mark)
        self._next_sum = max(self._next_sum, started + (time.monotonic() - started) * SUM_PAUSE)
        if not is_held:
            raise HistoryLost(
                f"the journal has lost entries up to {mark.newest.seq} that this server has applied. "
                "Restart the service, and run `belated verify`."
            )

    def _reach(self, seq: int) -> None:
        """Catch up to this entry. Raises a Refusal if an open transaction hides it for too long."""
        while self.fold.seq < seq:
            self.catch_up()
            if self.fold.seq < seq:
                if time.monotonic() > self._deadline:
                    raise behind(self.fold.seq, seq)
                time.sleep(0.002)

    def _meet(self, name: str, created: dict[str, int]) -> None:
        """Learn of an experiment that another server has just created, as `_created` says."""
        if name in created:
            self._reach(created[name])

    def _created(self, names: set[str]) -> dict[str, int]:
        """Return the experiments among these that are in the journal, but that this server has not read of yet."""
        unknown = [name for name in names if name not in self.fold.by_name]
        return self.journal.named(unknown) if unknown else {}

    def process(self, requests: Sequence[Request]) -> list[Result]:
        """Carry out and answer each request. Raises a StoreError if it is not certain that they are on disk."""
        self._deadline = time.monotonic() + CATCH_UP_TIMEOUT
        results: list[Result] = [None] * len(requests)
        hot: list[int] = []
        for index, request in enumerate(requests):
            if isinstance(request, Ask | Tell):
                hot.append(index)
            else:
                self._process_hot(requests, hot, results)
                hot = []
                results[index] = self._guarded(self._administer, request)
        self._process_hot(requests, hot, results)
        return results

    @staticmethod
    def _guarded(step: Callable[..., Result], *arguments: object) -> Result:
        try:
            return step(*arguments)
        except Refusal as refusal:
            return refusal
        except InvalidInput as error:
            return Refusal("invalid", str(error))

    def _append(self, entries: Sequence[Entry]) -> list[Entry]:
        """Write entries and return them with their numbers. Applies them at once if no other entry can precede them."""
        if not entries:
            return []
        started = time.perf_counter()
        seqs = self.journal.append(entries, self.fold.tail.short_mark())
        self.commit_seconds = time.perf_counter() - started
        self.entries, self.written = self.entries + len(entries), seqs[-1]
        written = [with_seq(entry, seq) for entry, seq in zip(entries, seqs, strict=True)]
        if seqs == list(range(self.fold.seq + 1, self.fold.seq + 1 + len(entries))):
            with self.lock:
                self.fold.apply(written)
        else:
            self._ahead.add(written)
        return written

    def _administer(self, request: Create | ChangeArms | Close) -> tuple[Experiment, bool]:
        """Return the experiment, and whether the request has changed anything."""
        name = request.settings.name if isinstance(request, Create) else request.name
        for _ in range(MAX_OVERTAKEN):
            self._meet(name, self._created({name}))
            entry = administration.entry_of(request, self.fold, self.now())
            if entry is None:
                return self.fold.by_name[name], False
            try:
                [written] = self._append([entry])
            except Conflict:  # another server was faster, so look at what it did
                self._reach(self.journal.last())
                continue
            log.info(entry.kind.name.lower(), extra={"experiment": name, "entry": written.seq})
            self._reach(written.seq)
            return self.fold.by_name[name], True
        raise try_later(f"{name!r} could not be changed because other servers keep changing it")

    # -- decisions and reports ------------------------------------------------------------------------------------

    def _process_hot(self, requests: Sequence[Request], indices: list[int], results: list[Result]) -> None:
        """Draw decisions first, then judge reports. So no draw knows of a report in the same group."""
        asked = [(index, request) for index in indices if isinstance(request := requests[index], Ask)]
        told = [(index, request) for index in indices if isinstance(request := requests[index], Tell)]
        for _ in range(MAX_OVERTAKEN):
            entries: list[Entry] = []
            drawn = self._draw(asked, entries, results)
            judged = self._judge(told, entries)
            try:
                written = self._append(entries)
            except Conflict:  # a key was used before, or another server got the same report. Look at all of them.
                self._expects_repeats = True
                continue
            for index, first, size in drawn:
                results[index] = Answers(list(map(self._decided, written[first : first + size])), replayed=False)
            for index, statuses in judged:
                results[index] = statuses
            self._replay_twins(asked, drawn, written, results)
            return
        for index in indices:
            results[index] = try_later("this could not be written because other servers were always faster")

    def _draw(self, asked: list[tuple[int, Ask]], entries: list[Entry], results: list[Result]) -> list[DrawnBatch]:
        """Answer repeated requests from the journal, and append entries for the others."""
        waiting: dict[int, list[tuple[int, Ask]]] = {}
        keys: set[Requested] = set()
        created = self._created({request.name for _, request in asked})
        room, ahead = Room(self._max_open), self._ahead.count(self.fold.seq)
        full: list[tuple[int, Ask]] = []  # refused because too many decisions are open
        for index, request in asked:
            results[index] = self._guarded(self._introduce, request.name, created)
        known = [(index, request) for index, request in asked if results[index] is None]
        earlier = self._earlier([request for _, request in known])
        for index, request in known:
            results[index] = self._guarded(self._known, request, earlier)
            if results[index] is None:
                number, key = self.fold.by_name[request.name].seq, request.key
                if key is None or (number, key) not in keys:
                    waits = self.fold.experiments[number].counts.outstanding + ahead[number]
                    results[index] = room.enter(request.name, waits, request.size, request.max_open)
                    if results[index] is not None:
                        full.append((index, request))
                        continue
                    waiting.setdefault(number, []).append((index, request))
                    keys.add((number, key or ""))
        self._answer_repeats(full, results)
        drawn, at = list[DrawnBatch](), self.now()
        for number, ones in waiting.items():
            drawn += draw(self.fold.experiments[number], ones, entries, at, self.fold.seq, self._generator)
        return drawn

    def _answer_repeats(self, refused: list[tuple[int, Ask]], results: list[Result]) -> None:
        """Answer refused requests whose key was used before, because that adds no decision."""
        keyed = [(index, one, (self.fold.by_name[one.name].seq, one.key)) for index, one in refused if one.key]
        if not keyed:
            return
        earlier = self.journal.requested([key for _, _, key in keyed])
        for index, request, key in keyed:
            if key in earlier:
                results[index] = self._guarded(self._answer_again, request, earlier[key])

    def _introduce(self, name: str, created: dict[str, int]) -> None:
        """Raise a Refusal if there is no experiment of this name, or this server cannot read of it yet."""
        self._meet(name, created)
        find(self.fold, name)

    def _earlier(self, requests: list[Ask]) -> dict[Requested, list[Entry]]:
        """Return what earlier requests with the same keys got, where that has to be known before the append.

        A new key needs no look-up, because the append of a used one is a Conflict, after which all keys are looked up.
        They are also looked up beforehand while repeats come, and if the experiment makes no more decisions.
        """
        keyed = [(self.fold.by_name[one.name], one.key) for one in requests if one.key is not None]
        wanted = {(one.seq, key) for one, key in keyed if self._expects_repeats or one.closed_at is not None}
        if not wanted:
            return {}
        found = self.journal.requested(list(wanted))
        self._expects_repeats = self._expects_repeats and bool(found)
        return found

    def _known(self, request: Ask, earlier: dict[Requested, list[Entry]]) -> Answers | None:
        """Return what an earlier request with the same key got. Raises a Refusal if there can be no decision."""
        experiment = find(self.fold, request.name)
        if request.key is not None and (made := earlier.get((experiment.seq, request.key))):
            return self._answer_again(request, made)
        find_running(self.fold, request.name)
        return None

    def _answer_again(self, request: Ask, earlier: list[Entry]) -> Answers:
        if len(earlier) != request.size:
            used = f"the Idempotency-Key {request.key!r} was used for {len(earlier)} decisions, not {request.size}"
            raise Refusal("invalid", f"{used}. Use a new key.")
        known = len(self.fold.by_name[request.name].arms)
        if any((entry.arm or 0) >= known for entry in earlier):  # another server has added arms
            self._reach(max(entry.seen or 0 for entry in earlier))
        return Answers([self._decided(entry) for entry in earlier], replayed=True)

    def _replay_twins(
        self, asked: list[tuple[int, Ask]], drawn: list[DrawnBatch], written: list[Entry], results: list[Result]
    ) -> None:
        """Give requests whose key came twice in one group what the first one got."""
        twins = [(index, request) for index, request in asked if results[index] is None]
        if twins:
            requests = dict(asked)
            firsts = {index: (requests[index].name, requests[index].key) for index, _, _ in drawn}
            made = {firsts[index]: written[first : first + size] for index, first, size in drawn}
            for index, request in twins:
                results[index] = self._guarded(self._answer_again, request, made[request.name, request.key])

    def _decided(self, entry: Entry) -> Decided:
        experiment = self.fold.experiments[entry.experiment]
        id = ids.encode(entry.at, entry.seq, entry.nonce or 0)
        arm = experiment.arms[entry.arm or 0]
        return Decided(id, experiment, arm, entry.probability or 0.0, entry.round or 0, entry.at)

    def _judge(
        self, told: list[tuple[int, Tell]], entries: list[Entry]
    ) -> list[tuple[int, list[ReportStatus | Refusal]]]:
        """Judge every report, and append an entry for each that says something new."""
        if not told:
            return []
        at, judged = self.now(), []
        found = iter(look_up([report.decision_id for _, request in told for report in request.reports], self.journal))
        news: dict[int, Entry] = {}  # by decision: its newest outcome in this group
        for index, request in told:
            statuses: list[ReportStatus | Refusal] = []
            for report, one in zip(request.reports, islice(found, len(request.reports)), strict=True):
                try:
                    status, entry = self._judge_one(report, one, request.only, news, at)
                except Refusal as refusal:
                    statuses.append(refusal)
                    continue
                statuses.append(status)
                if entry is not None:
                    entries.append(entry)
                    news[entry.decision or 0] = entry
            judged.append((index, statuses))
        return judged

    def _judge_one(
        self, report: OutcomeReport, found: Found | None, only: str | None, news: dict[int, Entry], at: int
    ) -> tuple[ReportStatus, Entry | None]:
        if found is not None:
            self._reach(found.decision.experiment)
        if found is None or not is_of(only, found.decision, self.fold):
            raise Refusal("not_found", f"there is no decision {report.decision_id!r}")
        latest = news.get(found.decision.seq, found.outcome)
        return judge(report, Found(found.decision, latest), self.fold, at)

    # -- what happens without a request ---------------------------------------------------------------------------

    def expire(self) -> int:
        """End the waits that are over. Returns how many decisions it looked at."""
        try:
            ends, looked = self._expiry.entries(self.fold.experiments.values(), self.now(), self.fold.seq)
            self._append(ends)
        except Conflict:  # another server, or a report, was faster
            self._expiry = Expiry(self.journal)
        except StoreError:
            self._expiry = Expiry(self.journal)  # forget its progress, because nothing was written
            raise
        return looked

    @property
    def _waiting_share(self) -> int:
        """A part of the open decisions. A snapshot must be worth more entries than this, because it has all of them."""
        return sum(experiment.counts.outstanding for experiment in self.fold.experiments.values()) // OPEN_SHARE

    def is_snapshot_due(self) -> bool:
        """Whether a start would take long without a new snapshot. Other servers may have made one."""
        due = max(SNAPSHOT_EVERY, self._waiting_share)
        if self.unsnapshotted >= due:
            self._snapshot_seq = self.journal.snapshot_seq()
        return self.unsnapshotted >= due

    def is_last_snapshot_due(self) -> bool:
        """Whether a snapshot at the end is worth its time."""
        self._snapshot_seq = self.journal.snapshot_seq()
        return self.unsnapshotted > self._waiting_share

    def snapshot(self) -> None:
        """Save the state. This takes long if many decisions are open."""
        self.confirm_history()
        with self.lock:
            snapshot = self.fold.snapshot()
        self._snapshot_seq = snapshot.seq  # also if it cannot be saved, so that the next try comes later
        self.journal.save(snapshot)
        log.info("snapshot", extra={"entry": snapshot.seq, "bytes": len(snapshot.state)})
