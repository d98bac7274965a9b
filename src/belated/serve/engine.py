"""The engine: requests become journal entries, are folded once they are on disk, and only then answered.

Synchronous and without HTTP, so that a test can drive it. One thread calls `process` and `expire`; others may read
the experiments while they hold `lock`.
"""

import logging
import secrets
import time
from collections.abc import Callable, Sequence
from threading import RLock
from typing import Final, final

import msgspec
import numpy as np

from belated.errors import InvalidInput, StoreError
from belated.serve import administration, fold, ids
from belated.serve.administration import find, find_running
from belated.serve.entries import MICROSECONDS, Entry, Kind
from belated.serve.experiments import Experiment
from belated.serve.expiry import Expiry
from belated.serve.journal import Conflict, Found, Journal
from belated.serve.problems import Problem
from belated.serve.reports import judge, look_up
from belated.serve.requests import Answers, ChangeArms, Close, Create, Decide, Decided, Report, Request, Result

SNAPSHOT_EVERY: Final = 50_000  # entries; more if so many decisions are open that a snapshot takes long to write
OPEN_SHARE: Final = 10  # then a tenth of them


log = logging.getLogger("belated.engine")


def microseconds() -> int:
    """Now."""
    return time.time_ns() // 1000


@final
class Engine:
    """The state of all experiments, kept in step with the journal."""

    def __init__(
        self, journal: Journal, *, clock: Callable[[], int] = microseconds, generator: np.random.Generator | None = None
    ) -> None:
        self.journal, self.lock, self._clock = journal, RLock(), clock
        self._generator = np.random.default_rng() if generator is None else generator
        self.fold = fold.load(journal)
        self._snapshot_seq = self.fold.restored
        self._expiry = Expiry(journal)
        self.commit_seconds = 0.0
        self._behind: int | None = None  # by how much the clock is behind the journal, if it is

    @property
    def unsnapshotted(self) -> int:
        """Entries that a restart would have to fold."""
        return self.fold.seq - self._snapshot_seq

    def now(self) -> int:
        """The time of a new entry: never before that of the last one, whatever the machine's clock does.

        If the clock is behind the journal, because it once was ahead, time goes on from there.
        """
        now = self._clock()
        if now >= self.fold.at:
            self._behind = None
            return now
        if self._behind is None:
            self._behind = self.fold.at - now
            log.warning("the clock is behind the journal", extra={"seconds": self._behind / MICROSECONDS})
        return max(now + self._behind, self.fold.at)

    def process(self, requests: Sequence[Request]) -> list[Result]:
        """Do all of it and answer each request; a StoreError if it is not certain to be on disk."""
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
        except Problem as problem:
            return problem
        except InvalidInput as error:
            return Problem(422, str(error))

    def _commit(self, entries: Sequence[Entry]) -> list[Entry]:
        """Append, then fold."""
        started = time.perf_counter()
        try:
            seqs = self.journal.append(entries)
        except Conflict:
            seqs = []
        self.commit_seconds = time.perf_counter() - started
        if seqs != list(range(self.fold.seq + 1, self.fold.seq + 1 + len(entries))):
            raise StoreError("another process has written to the store: nothing more is written until a restart")
        written = [with_seq(entry, seq) for seq, entry in enumerate(entries, self.fold.seq + 1)]
        with self.lock:
            self.fold.apply(written)
        return written

    def _administer(self, request: Create | ChangeArms | Close) -> tuple[Experiment, bool]:
        """The experiment, and whether the request has changed anything."""
        name = request.settings.name if isinstance(request, Create) else request.name
        entry = administration.entry_of(request, self.fold, self.now())
        if entry is not None:
            self._commit([entry])
            log.info(entry.kind.name.lower(), extra={"experiment": name, "entry": self.fold.seq})
        return self.fold.by_name[name], entry is not None

    # -- decisions and reports ------------------------------------------------------------------------------------

    def _process_hot(self, requests: Sequence[Request], places: list[int], results: list[Result]) -> None:
        """Decisions first, then reports: so what is drawn together knows nothing of what is reported with it."""
        asked = [(place, request) for place in places if isinstance(request := requests[place], Decide)]
        told = [(place, request) for place in places if isinstance(request := requests[place], Report)]
        entries: list[Entry] = []
        drawn = self._draw(asked, entries, results)
        heard = self._hear(told, entries)
        written = self._commit(entries) if entries else []
        for place, first, size in drawn:
            decided = map(self._decided, written[first : first + size])
            results[place] = Answers(list(decided), replayed=False)
        for place, statuses in heard:
            results[place] = statuses
        self._replay_twins(asked, results)

    def _draw(
        self, asked: list[tuple[int, Decide]], entries: list[Entry], results: list[Result]
    ) -> list[tuple[int, int, int]]:
        """Append an entry for each decision; returns (place, first entry, size) of each request."""
        by_experiment: dict[int, list[tuple[int, Decide]]] = {}
        keys: set[tuple[int, str]] = set()
        for place, request in asked:
            result = self._guarded(self._known, request)
            if result is None:
                experiment = self.fold.by_name[request.name]
                if request.key is None or (experiment.seq, request.key) not in keys:
                    by_experiment.setdefault(experiment.seq, []).append((place, request))
                    keys.add((experiment.seq, request.key or ""))
                continue
            results[place] = result
        drawn = []
        at, seen = self.now(), self.fold.seq
        for number, waiting in by_experiment.items():
            experiment = self.fold.experiments[number]
            arms, chances = self._sample(experiment, sum(request.size for _, request in waiting))
            nonces = self._nonces(len(arms))
            round, taken = experiment.counts.decisions, 0
            for place, request in waiting:
                drawn.append((place, len(entries), request.size))
                for position in range(request.size):
                    round += 1
                    chosen = experiment.era.arms[arms[taken]], chances[taken], nonces[taken], seen
                    where = (request.key, position) if request.key is not None else (None, None)
                    entries.append(Entry(at, Kind.DECIDED, number, 0, round, *chosen, *where))
                    taken += 1
        return drawn

    @staticmethod
    def _nonces(size: int) -> list[int]:
        """Random numbers that nobody can guess."""
        words = np.frombuffer(secrets.token_bytes(8 * size), np.uint64)
        return (words >> np.uint64(64 - ids.NONCE_BITS)).tolist()  # type: ignore[no-any-return]

    def _known(self, request: Decide) -> Answers | None:
        """What an earlier request with the same key got; a Problem if there can be no decision."""
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
            raise Problem(
                422, f"the Idempotency-Key {request.key!r} was used for {len(earlier)} decisions, not {request.size}"
            )
        return Answers([self._decided(entry) for entry in earlier], replayed=True)

    def _replay_twins(self, asked: list[tuple[int, Decide]], results: list[Result]) -> None:
        """Requests whose key came twice in one group get what the first one got."""
        for place, request in asked:
            if results[place] is None:
                results[place] = self._guarded(self._replay, request)

    def _sample(self, experiment: Experiment, size: int) -> tuple[list[int], list[float]]:
        """Arms (by their place in the era) drawn from the distribution in force, and their probabilities."""
        x = experiment.distribution()
        cdf = np.cumsum(x)
        places = np.searchsorted(cdf, self._generator.random(size) * cdf[-1], side="right")
        arms = np.minimum(places, np.flatnonzero(x)[-1])
        return arms.tolist(), x[arms].tolist()

    def _decided(self, entry: Entry) -> Decided:
        experiment = self.fold.experiments[entry.experiment]
        id = ids.encode(entry.at, entry.seq, entry.nonce or 0)
        return Decided(
            id, experiment, experiment.arms[entry.arm or 0], entry.probability or 0.0, entry.round or 0, entry.at
        )

    def _hear(self, told: list[tuple[int, Report]], entries: list[Entry]) -> list[tuple[int, list[str | Problem]]]:
        """Judge every report and append an entry for each that says something new."""
        at, heard = self.now(), []
        news: dict[int, Entry] = {}  # by decision: what this very group says of it
        for place, request in told:
            statuses: list[str | Problem] = []
            found = look_up([item.decision_id for item in request.items], self.journal, self.fold, request.only)
            for item, one in zip(request.items, found, strict=True):
                try:
                    if one is None:
                        raise Problem(404, f"there is no decision {item.decision_id!r}")
                    latest = news.get(one.decision.seq, one.outcome)
                    status, entry = judge(item, Found(one.decision, latest), self.fold, at)
                except Problem as problem:
                    statuses.append(problem)
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
        ends, looked = self._expiry.entries(self.fold.experiments.values(), self.now())
        if ends:
            self._commit(ends)
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


def with_seq(entry: Entry, seq: int) -> Entry:
    """The entry as it stands in the journal."""
    return msgspec.structs.replace(entry, seq=seq, experiment=entry.experiment or seq)
