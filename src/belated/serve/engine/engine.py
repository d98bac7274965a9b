"""The engine turns requests into journal entries, applies them once they are on disk, and only then answers.

Any number of engines may share one journal. Each applies what all of them write, in the journal's order, and draws from
its newest state. The store enforces uniqueness. After a Conflict the engine reads the journal and tries again.

The engine is synchronous and knows no HTTP. One thread calls it. Other threads may read experiments while they hold
`lock`.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Final, final

import numpy as np

from belated.errors import HistoryLost, StoreError
from belated.serve.domain.entries import Entry
from belated.serve.domain.experiment import Experiment
from belated.serve.domain.history import Place
from belated.serve.domain.quotas import KEY_LIFETIME, MAX_OPEN, MAX_TOTAL_ARMS
from belated.serve.domain.refusals import behind, try_later
from belated.serve.engine import administration
from belated.serve.engine.applied import Applied
from belated.serve.engine.asking import Asking
from belated.serve.engine.clock import timekeeper
from belated.serve.engine.expiry import Expiry
from belated.serve.engine.forgetting import Forgetting
from belated.serve.engine.guarding import guarded, unexpected
from belated.serve.engine.recent import Removed
from belated.serve.engine.requests import Ask, Change, Create, Hidden, Request, Result, Tell
from belated.serve.engine.telling import judge_group
from belated.serve.store.journal import Conflict, Journal

SNAPSHOT_EVERY: Final = 50_000  # entries, or more if so many decisions are open that a snapshot takes long to write
OPEN_SHARE: Final = 10  # then a tenth of the open decisions
MAX_OVERTAKEN: Final = 50  # times that other servers are faster, before a request gives up
log = logging.getLogger("belated.engine")


@final
class Engine:
    """Carries out requests, and what is to be done without one."""

    def __init__(
        self,
        journal: Journal,
        *,
        clock: Callable[[], int] | None = None,
        generator: np.random.Generator | None = None,
        max_open: int = MAX_OPEN,
        key_lifetime: int = KEY_LIFETIME,
        max_total_arms: int = MAX_TOTAL_ARMS,
    ) -> None:
        self.applied = applied = Applied(journal)
        self.journal, self.fold, self.lock, self.recent = journal, applied.fold, applied.lock, applied.recent
        self.clock = timekeeper(clock, journal, self.fold)
        generator = np.random.default_rng() if generator is None else generator
        self.asking = Asking(applied, self.now, generator, max_open)
        self._max_total_arms = max_total_arms
        self._snapshot_seq = self.fold.restored
        self._expiry = Expiry(journal, self.fold.seq)
        self._forgetting = Forgetting(journal, key_lifetime)

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

    def catch_up(self) -> None:
        """Apply all readable entries from every server."""
        self.applied.catch_up()

    def confirm_history(self, *, is_whole: bool = False) -> None:
        """Raise HistoryLost if the journal has lost entries that were applied here."""
        self.applied.confirm_history(is_whole=is_whole)

    def process(self, requests: Sequence[Request], *, may_wait: bool = True) -> list[Result]:
        """Carry out and answer each request, without waiting for entries that are hidden.

        The result of a request that needs one is Hidden. `resume` it later. If it may not wait, it is refused.
        A request that meets a bug gets a Refusal, and the others go on. Raises a StoreError if it is not certain that
        they are on disk.
        """
        self.applied.begin_group(may_wait=may_wait)
        results: list[Result] = [None] * len(requests)
        hot: list[int] = []
        for index, request in enumerate(requests):
            if isinstance(request, Ask | Tell):
                hot.append(index)
            else:
                self._process_hot(requests, hot, results)
                hot = []
                results[index] = request.context.copy().run(guarded, self._administer, request)
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

    def _administer(self, request: Change) -> tuple[Experiment, bool]:
        """Return the experiment, and whether the request has changed anything."""
        name = request.settings.name if isinstance(request, Create) else request.name
        for _ in range(MAX_OVERTAKEN):
            self.applied.meet(name)
            entry = administration.entry_of(request, self.fold, self.now())
            if entry is None:  # it is there already, if it was not lost
                self.confirm_history()
                self.journal.settle()
                return self.fold.by_name[name], False
            administration.check_room(request, self.fold, self._max_total_arms)
            try:
                [written] = self.applied.append([entry])
            except Conflict:  # another server was faster, so look at what it did
                self.applied.look_again(self.journal.last())
                continue
            log.info(entry.kind.name.lower(), extra={"experiment": name, "entry": written.seq})
            self.applied.note(name, written.seq)
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
                results[indices[0]] = unexpected(error)
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
            drawn = self.asking.draw(asked, entries, results)
            judged = judge_group(told, self.applied, self.now(), entries, also, None if attempt else self.recent)
            try:
                written = self.applied.append(entries, sorted(also))
            except Conflict:  # a key was used before, or another server got the same report. Look at all of them.
                self.asking.expect()
                continue
            if not entries:
                self.journal.settle()
            for index, first, size in drawn:
                results[index] = guarded(self.asking.new_answers, written[first : first + size])
            for index, statuses in judged:
                results[index] = statuses
            self.asking.replay_twins(asked, drawn, written, results)
            return
        for index in indices:
            results[index] = try_later("this could not be written because other servers were always faster")

    # -- what happens without a request ---------------------------------------------------------------------------

    def expire(self) -> int:
        """End the waits that are over. Returns how many decisions it looked at."""
        try:
            self.clock.check()
            moment = self.clock.moment()
            if moment is None:
                return 0
            ends, looked = self._expiry.entries(self.fold.experiments.values(), moment, self.fold.seq)
            self.applied.append(ends)
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
        return sum(experiment.waiting for experiment in self.fold.experiments.values()) // OPEN_SHARE

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
