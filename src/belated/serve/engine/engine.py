"""The engine: requests become journal entries, are folded once they are on disk, and only then answered.

Any number of engines may work on one journal. Each folds what all of them write, in the order of the journal, and draws
from the newest state it has. What must happen once is the store's to enforce: after a Conflict the engine looks again.

Synchronous and without HTTP, so that a test can drive it. One thread calls everything here; others may read the
experiments while they hold `lock`.
"""

import logging
import time
from collections.abc import Callable, Sequence
from threading import RLock
from typing import Final, final

import numpy as np

from belated.errors import InvalidInput, StoreError
from belated.serve.domain import ids
from belated.serve.domain.entries import MICROSECONDS, Entry, Found, with_seq
from belated.serve.domain.experiment import Experiment
from belated.serve.domain.refusals import Refusal, behind, try_later
from belated.serve.engine import administration
from belated.serve.engine.administration import find, find_running
from belated.serve.engine.drawing import Asked, Drawn, draw
from belated.serve.engine.expiry import Expiry
from belated.serve.engine.feedback import is_of, judge, look_up
from belated.serve.engine.requests import Answers, ChangeArms, Close, Create, Decide, Decided, Report, Request, Result
from belated.serve.store.journal import PAGE, Conflict, Journal
from belated.serve.store.loading import load

SNAPSHOT_EVERY: Final = 50_000  # entries; more if so many decisions are open that a snapshot takes long to write
OPEN_SHARE: Final = 10  # then a tenth of them
PATIENCE: Final = 2.0  # seconds of a group of requests for the journal to become readable up to a place
TRIES: Final = 50  # against other servers that are always faster
log = logging.getLogger("belated.engine")


def microseconds() -> int:
    """Now."""
    return time.time_ns() // 1000


@final
class Engine:
    """The state of all experiments, as far as this server has folded the journal."""

    def __init__(
        self, journal: Journal, *, clock: Callable[[], int] = microseconds, generator: np.random.Generator | None = None
    ) -> None:
        self.journal, self.lock, self._clock = journal, RLock(), clock
        self._generator = np.random.default_rng() if generator is None else generator
        self.fold = load(journal)
        self._snapshot_seq = self.fold.restored
        self._expiry = Expiry(journal)
        self.commit_seconds, self.entries, self.written = 0.0, 0, 0  # of this server: last append, number, last place
        self._behind: int | None = None  # by how much the clock is behind the journal, if it is
        self._deadline = 0.0  # of the group of requests that is worked on: until then the journal is waited for

    @property
    def unsnapshotted(self) -> int:
        """Entries that a restart would have to fold."""
        return self.fold.seq - self._snapshot_seq

    def now(self) -> int:
        """The time of a new entry: never before that of the last one folded, whatever the machine's clock does.

        If the clock is behind the journal, because it or another server's is or was ahead, time goes on from there.
        """
        # each is read once: views ask for the time from their thread
        now, at, behind = self._clock(), self.fold.at, self._behind
        if now >= at:
            self._behind = None
            return now
        if behind is None:
            self._behind = behind = at - now
            if behind > MICROSECONDS:
                log.warning("the clock is behind the journal", extra={"seconds": behind / MICROSECONDS})
        return max(now + behind, at)

    @property
    def is_behind(self) -> bool:
        """Whether this server has not even folded what it has written itself."""
        return self.fold.seq < self.written

    def catch_up(self) -> None:
        """Fold what has been written, by whomever, as far as it can be read."""
        while page := self.journal.read(self.fold.seq, PAGE):
            with self.lock:
                self.fold.apply(page)
            if len(page) < PAGE:
                return

    def _reach(self, seq: int) -> None:
        """Catch up to this place, or raise the Refusal 503: a transaction that does not end holds the journal up."""
        while self.fold.seq < seq:
            self.catch_up()
            if self.fold.seq < seq:
                if time.monotonic() > self._deadline:
                    raise behind(self.fold.seq, seq)
                time.sleep(0.002)

    def _meet(self, name: str) -> None:
        """Learn of an experiment that another server has just created."""
        if name not in self.fold.by_name and (seq := self.journal.named(name)) is not None:
            self._reach(seq)

    def process(self, requests: Sequence[Request]) -> list[Result]:
        """Do all of it and answer each request; a StoreError if it is not certain to be on disk."""
        self._deadline = time.monotonic() + PATIENCE
        results: list[Result] = [None] * len(requests)
        hot: list[int] = []
        for place, request in enumerate(requests):
            if isinstance(request, Decide | Report):
                hot.append(place)
            else:
                self._process_hot(requests, hot, results)
                hot = []
                results[place] = self._guarded(self._administer, request)
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
        """The entries as they stand in the journal now; folded at once if nothing can be before them."""
        if not entries:
            return []
        started = time.perf_counter()
        seqs = self.journal.append(entries)
        self.commit_seconds = time.perf_counter() - started
        self.entries, self.written = self.entries + len(entries), seqs[-1]
        written = [with_seq(entry, seq) for entry, seq in zip(entries, seqs, strict=True)]
        if seqs == list(range(self.fold.seq + 1, self.fold.seq + 1 + len(entries))):
            with self.lock:
                self.fold.apply(written)
        return written

    def _administer(self, request: Create | ChangeArms | Close) -> tuple[Experiment, bool]:
        """The experiment, and whether the request has changed anything."""
        name = request.settings.name if isinstance(request, Create) else request.name
        for _ in range(TRIES):
            self._meet(name)
            entry = administration.entry_of(request, self.fold, self.now())
            if entry is None:
                return self.fold.by_name[name], False
            try:
                [written] = self._append([entry])
            except Conflict:  # another server was faster: look at what it did
                self._reach(self.journal.last())
                continue
            log.info(entry.kind.name.lower(), extra={"experiment": name, "entry": written.seq})
            self._reach(written.seq)
            return self.fold.by_name[name], True
        raise try_later(f"{name!r} could not be changed: other servers change it all the time")

    # -- decisions and reports ------------------------------------------------------------------------------------

    def _process_hot(self, requests: Sequence[Request], places: list[int], results: list[Result]) -> None:
        """Decisions first, then reports: so what is drawn together knows nothing of what is reported with it."""
        asked = [Asked(place, request) for place in places if isinstance(request := requests[place], Decide)]
        told = [(place, request) for place in places if isinstance(request := requests[place], Report)]
        for _ in range(TRIES):
            entries: list[Entry] = []
            drawn = self._draw(asked, entries, results)
            heard = self._hear(told, entries)
            try:
                written = self._append(entries)
            except Conflict:  # another server got the same key or report: look again at all of them
                continue
            for place, first, size in drawn:
                results[place] = Answers(list(map(self._decided, written[first : first + size])), replayed=False)
            for place, statuses in heard:
                results[place] = statuses
            self._replay_twins(asked, results)
            return
        for place in places:
            results[place] = try_later("this could not be written: other servers were always faster")

    def _draw(self, asked: list[Asked], entries: list[Entry], results: list[Result]) -> list[Drawn]:
        """Answer what has been answered before, and append entries for the rest."""
        waiting: dict[int, list[Asked]] = {}
        keys: set[tuple[int, str]] = set()
        for one in asked:
            results[one.place] = self._guarded(self._known, one.request)
            if results[one.place] is None:
                number, key = self.fold.by_name[one.request.name].seq, one.request.key
                if key is None or (number, key) not in keys:
                    waiting.setdefault(number, []).append(one)
                    keys.add((number, key or ""))
        drawn, at = list[Drawn](), self.now()
        for number, ones in waiting.items():
            drawn += draw(self.fold.experiments[number], ones, entries, at, self.fold.seq, self._generator)
        return drawn

    def _known(self, request: Decide) -> Answers | None:
        """What an earlier request with the same key got; a Refusal if there can be no decision."""
        self._meet(request.name)
        experiment = find(self.fold, request.name)
        if request.key is not None and (earlier := self.journal.requested(experiment.seq, request.key)):
            return self._answer_again(request, earlier)
        find_running(self.fold, request.name)
        return None

    def _replay(self, request: Decide) -> Answers:
        experiment = find(self.fold, request.name)
        return self._answer_again(request, self.journal.requested(experiment.seq, request.key or ""))

    def _answer_again(self, request: Decide, earlier: list[Entry]) -> Answers:
        if len(earlier) != request.size:
            used = f"the Idempotency-Key {request.key!r} was used for {len(earlier)} decisions, not {request.size}"
            raise Refusal("invalid", f"{used}. Use a new key.")
        known = len(self.fold.by_name[request.name].arms)
        if any((entry.arm or 0) >= known for entry in earlier):  # another server has added arms
            self._reach(max(entry.seen or 0 for entry in earlier))
        return Answers([self._decided(entry) for entry in earlier], replayed=True)

    def _replay_twins(self, asked: list[Asked], results: list[Result]) -> None:
        """Requests whose key came twice in one group get what the first one got."""
        for place, request in asked:
            if results[place] is None:
                results[place] = self._guarded(self._replay, request)

    def _decided(self, entry: Entry) -> Decided:
        experiment = self.fold.experiments[entry.experiment]
        id = ids.encode(entry.at, entry.seq, entry.nonce or 0)
        return Decided(
            id, experiment, experiment.arms[entry.arm or 0], entry.probability or 0.0, entry.round or 0, entry.at
        )

    def _hear(self, told: list[tuple[int, Report]], entries: list[Entry]) -> list[tuple[int, list[str | Refusal]]]:
        """Judge every report and append an entry for each that says something new."""
        at, heard = self.now(), []
        news: dict[int, Entry] = {}  # by decision: what this very group says of it
        for place, request in told:
            statuses: list[str | Refusal] = []
            found = look_up([item.decision_id for item in request.items], self.journal)
            for item, one in zip(request.items, found, strict=True):
                try:
                    if one is not None:
                        self._reach(one.decision.experiment)
                    if one is None or not is_of(request.only, one.decision, self.fold):
                        raise Refusal("not_found", f"there is no decision {item.decision_id!r}")
                    latest = news.get(one.decision.seq, one.outcome)
                    status, entry = judge(item, Found(one.decision, latest), self.fold, at)
                except Refusal as refusal:
                    statuses.append(refusal)
                    continue
                statuses.append(status)
                if entry is not None:
                    entries.append(entry)
                    news[one.decision.seq] = entry
            heard.append((place, statuses))
        return heard

    # -- what happens by itself -----------------------------------------------------------------------------------

    def expire(self) -> int:
        """End the waits that are over; returns at how many decisions it looked."""
        try:
            ends, looked = self._expiry.entries(self.fold.experiments.values(), self.now(), self.fold.seq)
            self._append(ends)
        except Conflict:  # another server, or a report, was faster
            self._expiry = Expiry(self.journal)
        except StoreError:
            self._expiry = Expiry(self.journal)  # it has not ended the waits that it has seen
            raise
        return looked

    def snapshot_if_due(self) -> None:
        """Keep start-up fast."""
        waiting = sum(experiment.counts.outstanding for experiment in self.fold.experiments.values())
        if self.unsnapshotted >= max(SNAPSHOT_EVERY, waiting // OPEN_SHARE):
            self.snapshot()

    def snapshot(self) -> None:
        """Save the state."""
        with self.lock:
            snapshot = self.fold.snapshot()
        self._snapshot_seq = snapshot.seq  # also if it cannot be saved: then another try is due later, not at once
        self.journal.save(snapshot)
        log.info("snapshot", extra={"entry": snapshot.seq, "bytes": len(snapshot.state)})
