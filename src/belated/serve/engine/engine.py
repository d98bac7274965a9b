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
from belated.serve.domain import ids
from belated.serve.domain.entries import Entry, Found, with_seq
from belated.serve.domain.experiment import Experiment
from belated.serve.domain.failures import undecided
from belated.serve.domain.history import Place, place_of
from belated.serve.domain.messages import Decided, OutcomeReport, ReportStatus
from belated.serve.domain.quotas import KEY_LIFETIME, MAX_OPEN, Ahead, Room
from belated.serve.domain.refusals import Refusal, behind, internal, try_later
from belated.serve.engine import administration
from belated.serve.engine.administration import find, find_running
from belated.serve.engine.clock import timekeeper
from belated.serve.engine.drawing import DrawnBatch, draw
from belated.serve.engine.expiry import Expiry
from belated.serve.engine.feedback import Judged, is_of, judge, look_up, removed_from, unknown
from belated.serve.engine.forgetting import Forgetting
from belated.serve.engine.recent import RecentDecisions, Removed
from belated.serve.engine.requests import Answers, Ask, ChangeArms, Close, Create, Hidden, Request, Result, Tell
from belated.serve.store.journal import PAGE, Conflict, Journal, Rejected, Requested
from belated.serve.store.loading import load_to_serve, log_failures

SNAPSHOT_EVERY: Final = 50_000  # entries, or more if so many decisions are open that a snapshot takes long to write
OPEN_SHARE: Final = 10  # then a tenth of the open decisions
SUM_PAUSE: Final = 50.0  # times as long as a check of the history took, until the next one that sums all entries
MAX_OVERTAKEN: Final = 50  # times that other servers are faster, before a request gives up
log = logging.getLogger("belated.engine")


def _unexpected(error: Exception) -> Refusal:
    log.error("a request failed unexpectedly, and the others go on", exc_info=error)
    return internal()


@final
class Engine:
    """The state of all experiments after the entries that this server has applied."""

    def __init__(
        self,
        journal: Journal,
        *,
        clock: Callable[[], int] | None = None,
        generator: np.random.Generator | None = None,
        max_open: int = MAX_OPEN,
        key_lifetime: int = KEY_LIFETIME,
    ) -> None:
        self.journal, self.lock = journal, RLock()
        self._generator = np.random.default_rng() if generator is None else generator
        self._max_open, self._ahead = max_open, Ahead()  # open decisions of an experiment
        self.fold = load_to_serve(journal)
        self.clock = timekeeper(clock, journal, self.fold.at)
        self._snapshot_seq = self.fold.restored
        self._expiry = Expiry(journal)
        self.recent = RecentDecisions(removed_from(journal), is_far=journal.is_far)
        self._forgetting = Forgetting(journal, key_lifetime)
        self.commit_seconds = 0.0  # of the last append
        self.entries, self.written = 0, 0  # how many entries this server has written, and the last of them
        self._next_sum = 0.0  # when all entries after the witness may be summed again
        self._expects_repeats = False  # whether the last group had an Idempotency-Key that was used before
        # of the present group of requests: whether they may wait for hidden entries, whether it has looked for such
        # entries, and the experiments it has looked for, which are 0 if they do not exist
        self._may_wait, self._has_looked, self._named = False, False, dict[str, int]()

    @property
    def unsnapshotted(self) -> int:
        """How many entries a restart would have to apply."""
        return self.fold.seq - self._snapshot_seq

    @property
    def removed(self) -> Removed:
        """Which decisions may have been archived or erased."""
        return self.recent.removed

    def now(self) -> int:
        """Return the time of a new entry. It may be before that of earlier entries, if some clock is or was wrong."""
        return self.clock()

    @property
    def is_behind(self) -> bool:
        """Whether this server has not yet applied all it has written itself."""
        return self.fold.seq < self.written

    def catch_up(self) -> None:
        """Apply all readable entries from every server."""
        while page := self.journal.read(self.fold.seq, PAGE):
            self._apply(page)
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

    def _apply(self, entries: list[Entry]) -> None:
        """Apply entries of the journal. Raises a StoreError if that fails, because the state is then in doubt."""
        with self.lock:
            try:
                self.fold.apply(entries)
            except StoreError:
                raise
            except Exception as error:
                raise StoreError(f"the journal cannot be applied: {type(error).__name__}: {error}") from error
            finally:
                log_failures(self.fold)
        self.recent.take(entries)

    def _reach(self, seq: int) -> None:
        """Catch up to this entry. Raises Hidden, or a Refusal if the request has waited long enough for it."""
        if self.fold.seq < seq and not self._has_looked:
            self._has_looked = True
            self.catch_up()
        if self.fold.seq < seq:
            raise Hidden(seq) if self._may_wait else behind(self.fold.seq, seq)

    def _look_for(self, names: set[str]) -> None:
        """Look for experiments that this server has not read of yet, with one query for all."""
        unknown = [name for name in names if name not in self.fold.by_name and name not in self._named]
        if unknown:
            self._named |= {**dict.fromkeys(unknown, 0), **self.journal.named(unknown)}

    def _meet(self, name: str) -> None:
        """Learn of an experiment that another server has just created."""
        self._look_for({name})
        if name not in self.fold.by_name:
            self._reach(self._named[name])

    def process(self, requests: Sequence[Request], *, may_wait: bool = True) -> list[Result]:
        """Carry out and answer each request, without waiting for entries that are hidden.

        The result of a request that needs one is Hidden. `resume` it later. If it may not wait, it is refused.
        A request that meets a bug gets a Refusal, and the others go on. Raises a StoreError if it is not certain that
        they are on disk.
        """
        self._may_wait, self._has_looked, self._named = may_wait, False, {}
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

    def resume(self, parked: Sequence[tuple[Request, Hidden]], *, may_wait: bool) -> list[Result]:
        """Go on with requests that had to wait."""
        results = [None if one.changed is None else self._changed(one.seq, one.changed) for _, one in parked]
        again = [index for index, (_, hidden) in enumerate(parked) if hidden.changed is None]
        for index, result in zip(again, self.process([parked[i][0] for i in again], may_wait=may_wait), strict=True):
            results[index] = result
        return results

    def _changed(self, seq: int, name: str) -> Result:
        """Return the answer to a request that has written the hidden entry itself."""
        return behind(self.fold.seq, seq) if self.fold.seq < seq else (self._written(name), True)

    @staticmethod
    def _guarded(step: Callable[..., Result], *arguments: object) -> Result:
        """Run a step for one request. Only a failure of the store may stop the others."""
        try:
            return step(*arguments)
        except (Refusal, Hidden) as refusal:
            return refusal
        except InvalidInput as error:
            return Refusal("invalid", str(error))
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001
            return _unexpected(error)

    def _append(self, entries: Sequence[Entry], also: Sequence[Place] = ()) -> list[Entry]:
        """Write entries and return them with their numbers. Applies them at once if no other entry can precede them.

        They build on all entries that were applied, and `also` on these.
        """
        if not entries:
            return []
        started = time.perf_counter()
        try:
            seqs = self.journal.append(entries, self.fold.tail.short_mark()._replace(also=tuple(also)))
        except (StoreError, Conflict, Rejected):
            raise
        except Exception as error:  # whether anything was written is not known
            raise StoreError(f"an append failed unexpectedly: {type(error).__name__}: {error}") from error
        self.commit_seconds = time.perf_counter() - started
        self.entries, self.written = self.entries + len(entries), seqs[-1]
        written = [with_seq(entry, seq) for entry, seq in zip(entries, seqs, strict=True)]
        if seqs == list(range(self.fold.seq + 1, self.fold.seq + 1 + len(entries))):
            self._apply(written)
        else:
            self._ahead.add(written)
        return written

    def _administer(self, request: Create | ChangeArms | Close) -> tuple[Experiment, bool]:
        """Return the experiment, and whether the request has changed anything."""
        name = request.settings.name if isinstance(request, Create) else request.name
        for _ in range(MAX_OVERTAKEN):
            self._meet(name)
            entry = administration.entry_of(request, self.fold, self.now())
            if entry is None:  # it is there already, if it was not lost
                self.confirm_history()
                self.journal.settle()
                return self.fold.by_name[name], False
            try:
                [written] = self._append([entry])
            except Conflict:  # another server was faster, so look at what it did
                self._has_looked, self._named = False, {}
                self._reach(self.journal.last())
                continue
            log.info(entry.kind.name.lower(), extra={"experiment": name, "entry": written.seq})
            self._named[name] = written.seq  # for later requests of the group
            if self.fold.seq < written.seq:
                self.catch_up()
            if self.fold.seq < written.seq:
                raise Hidden(written.seq, name)
            return self._written(name), True
        raise try_later(f"{name!r} could not be changed because other servers keep changing it")

    def _written(self, name: str) -> Experiment:
        """Return an experiment that was written before the newest applied entry, so that only a loss can hide it."""
        if name not in self.fold.by_name:
            raise HistoryLost(
                f"the journal has lost the experiment {name!r}. Restart the service, and run `belated verify`."
            )
        return self.fold.by_name[name]

    # -- decisions and reports ------------------------------------------------------------------------------------

    def _process_hot(self, requests: Sequence[Request], indices: list[int], results: list[Result]) -> None:
        """Carry out decisions and reports together. If that fails before anything is written, carry out halves."""
        if not indices:
            return
        try:
            self._write_hot(requests, indices, results)
            return
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001
            if len(indices) == 1:
                results[indices[0]] = _unexpected(error)
                return
        half = len(indices) // 2
        self._process_hot(requests, indices[:half], results)
        self._process_hot(requests, indices[half:], results)

    def _write_hot(self, requests: Sequence[Request], indices: list[int], results: list[Result]) -> None:
        """Draw decisions first, then judge reports. So no draw knows of a report in the same group."""
        asked = [(index, request) for index in indices if isinstance(request := requests[index], Ask)]
        told = [(index, request) for index in indices if isinstance(request := requests[index], Tell)]
        for attempt in range(MAX_OVERTAKEN):
            entries, also = list[Entry](), set[Place]()
            drawn = self._draw(asked, entries, results)
            judged = self._judge(told, entries, also, None if attempt else self.recent)
            try:
                written = self._append(entries, sorted(also))
            except Conflict:  # a key was used before, or another server got the same report. Look at all of them.
                self._expects_repeats = True
                continue
            if not entries:
                self.journal.settle()
            for index, first, size in drawn:
                results[index] = self._guarded(self._new_answers, written[first : first + size])
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
        self._look_for({request.name for _, request in asked})
        room, ahead = Room(self._max_open), self._ahead.count(self.fold.seq)
        full: list[tuple[int, Ask]] = []  # refused because too many decisions are open
        for index, request in asked:
            results[index] = self._guarded(self._introduce, request.name)
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
            experiment, before = self.fold.experiments[number], len(entries)
            try:
                drawn += draw(experiment, ones, entries, at, self.fold.seq, self._generator)
            except Exception as error:  # a failure of the learner, which is the experiment's own
                log.critical("an experiment cannot decide", exc_info=error, extra={"experiment": experiment.name})
                del entries[before:]
                for index, _ in ones:
                    results[index] = undecided(experiment.name)
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

    def _introduce(self, name: str) -> None:
        """Raise a Refusal if there is no experiment of this name, or Hidden if this server cannot read of it yet."""
        self._meet(name)
        find(self.fold, name)

    def _earlier(self, requests: list[Ask]) -> dict[Requested, list[Entry]]:
        """Return what earlier requests with the same keys got, where that has to be known before the append.

        A new key needs no look-up, because the append of a used one is a Conflict, after which all keys are looked up.
        They are also looked up beforehand while repeats come, and if the experiment makes no more decisions.
        """
        keyed = [(self.fold.by_name[one.name], one.key) for one in requests if one.key is not None]
        wanted = {(one.seq, key) for one, key in keyed if self._expects_repeats or not one.is_deciding}
        if not wanted:
            return {}
        found = self.journal.requested(list(wanted))
        self._expects_repeats = self._expects_repeats and bool(found)
        return found

    def _new_answers(self, written: list[Entry]) -> Answers:
        return Answers(list(map(self._decided, written)), replayed=False)

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
                if (first := made.get((request.name, request.key))) is None:
                    results[index] = undecided(request.name)  # as the first one
                else:
                    results[index] = self._guarded(self._answer_again, request, first)

    def _decided(self, entry: Entry) -> Decided:
        experiment = self.fold.experiments[entry.experiment]
        id = ids.encode(entry.at, entry.seq, entry.nonce or 0)
        arm = experiment.arms[entry.arm or 0]
        return Decided(id, experiment, arm, entry.probability or 0.0, entry.round or 0, entry.at)

    def _judge(
        self, told: list[tuple[int, Tell]], entries: list[Entry], also: set[Place], recent: RecentDecisions | None
    ) -> list[tuple[int, Result]]:
        """Judge every report, and append an entry for each that says something new.

        Adds to `also` what was found of decisions but is not applied yet.
        """
        if not told:
            return []
        at, judged = self.now(), list[tuple[int, Result]]()
        named = [report.decision_id for _, request in told for report in request.reports]
        all = look_up(named, self.journal, recent)
        known = (entry for one in all if one is not None for entry in one if entry is not None)
        also |= {place_of(entry) for entry in known if entry.seq > self.fold.seq}
        found = iter(all)
        news: dict[int, Entry] = {}  # by decision: its newest outcome in this group
        for index, request in told:
            own = list(islice(found, len(request.reports)))
            result = self._guarded(self._judge_all, request, own, news, at)
            if isinstance(result, Judged):
                entries += result.entries
                news |= result.news
                result = result.statuses
            judged.append((index, result))
        return judged

    def _judge_all(self, request: Tell, found: list[Found | None], news: dict[int, Entry], at: int) -> Judged:
        """Judge the reports of one request. If one has to wait, all of them do, so that each is judged once."""
        judged = Judged([], [], {})
        for report, one in zip(request.reports, found, strict=True):
            try:
                status, entry = self._judge_one(report, one, request.only, (judged.news, news), at)
            except Refusal as refusal:
                judged.statuses.append(refusal)
                continue
            judged.statuses.append(status)
            if entry is not None:
                judged.entries.append(entry)
                judged.news[entry.decision or 0] = entry
        return judged

    def _judge_one(
        self, report: OutcomeReport, found: Found | None, only: str | None, news: tuple[dict[int, Entry], ...], at: int
    ) -> tuple[ReportStatus, Entry | None]:
        if found is not None:
            self._reach(found.decision.experiment)
        if found is None or not is_of(only, found.decision, self.fold):
            raise unknown(report.decision_id, self.removed)
        seq = found.decision.seq
        latest = next((newer[seq] for newer in news if seq in newer), found.outcome)
        return judge(report, Found(found.decision, latest), self.fold, at)

    # -- what happens without a request ---------------------------------------------------------------------------

    def expire(self) -> int:
        """End the waits that are over. Returns how many decisions it looked at."""
        try:
            self.clock.check()
            moment = self.clock.moment()
            if moment is None:
                return 0
            ends, looked = self._expiry.entries(self.fold.experiments.values(), moment, self.fold.seq)
            self._append(ends)
        except Conflict:  # another server, or a report, was faster
            self._expiry.begin_again()
        except StoreError:
            self._expiry.begin_again()  # because nothing was written
            raise
        return looked

    def forget_keys(self) -> None:
        """Forget a few Idempotency-Keys whose time is over, if any. `request` is no part of the state."""
        earliest = self.clock.earliest()
        if earliest is not None:
            self._forgetting.work(earliest, self.fold.seq)

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
