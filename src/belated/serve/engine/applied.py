"""What this server has applied of the journal, how it comes to know of more, and how it writes.

Any number of servers may share one journal. Each applies what all of them write, in the journal's order.
"""

import time
from collections.abc import Sequence
from threading import RLock
from typing import Final, final

from belated.errors import HistoryLost, StoreError
from belated.serve.domain.entries import Entry, with_seq
from belated.serve.domain.history import Place
from belated.serve.domain.quotas import Ahead
from belated.serve.domain.refusals import behind
from belated.serve.engine.feedback import removed_from
from belated.serve.engine.recent import RecentDecisions
from belated.serve.engine.requests import Hidden
from belated.serve.store.journal import PAGE, Conflict, Journal, Rejected
from belated.serve.store.loading import load_to_serve, log_failures

SUM_PAUSE: Final = 50.0  # times as long as a check of the history took, until the next one that sums all entries


@final
class Applied:
    """The state of all experiments after the entries that this server has applied."""

    def __init__(self, journal: Journal) -> None:
        self.journal, self.lock = journal, RLock()
        self.fold = load_to_serve(journal)
        self.recent = RecentDecisions(removed_from(journal), is_far=journal.is_far)
        self.ahead = Ahead()  # decisions that are written, but not applied yet
        self.commit_seconds = 0.0  # of the last append
        self.entries, self.written = 0, 0  # how many entries this server has written, and the last of them
        self._next_sum = 0.0  # when all entries after the witness may be summed again
        # of the present group of requests: whether they may wait for hidden entries, whether it has looked for such
        # entries, and the experiments it has looked for, which are 0 if they do not exist
        self._may_wait, self._has_looked, self._named = False, False, dict[str, int]()

    def begin_group(self, *, may_wait: bool) -> None:
        """Forget what an earlier group of requests has looked for."""
        self._may_wait, self._has_looked, self._named = may_wait, False, {}

    @property
    def is_behind(self) -> bool:
        """Whether this server has not yet applied all it has written itself."""
        return self.fold.seq < self.written

    def look_again(self, seq: int) -> None:
        """Catch up to this entry, because another server was faster."""
        self._has_looked, self._named = False, {}
        self.reach(seq)

    def note(self, name: str, seq: int) -> None:
        """Note for later requests of the group that an experiment was written."""
        self._named[name] = seq

    def catch_up(self) -> None:
        """Apply all readable entries from every server."""
        while page := self.journal.read(self.fold.seq, PAGE):
            self._apply(page)
            if len(page) < PAGE:
                return

    def confirm_history(self, *, is_whole: bool = False) -> None:
        """Raise HistoryLost if the journal has lost entries that were applied here.

        All entries after the witness are summed only now and then, if there are so many that it takes long, or if it
        `is_whole`.
        """
        started = time.monotonic()
        mark = self.fold.tail.mark() if is_whole or started >= self._next_sum else self.fold.tail.short_mark()
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

    def reach(self, seq: int) -> None:
        """Catch up to this entry. Raises Hidden, or a Refusal if the request has waited long enough for it."""
        if self.fold.seq < seq and not self._has_looked:
            self._has_looked = True
            self.catch_up()
        if self.fold.seq < seq:
            raise Hidden(seq) if self._may_wait else behind(self.fold.seq, seq)

    def look_for(self, names: set[str]) -> None:
        """Look for experiments that this server has not read of yet, with one query for all."""
        unknown = [name for name in names if name not in self.fold.by_name and name not in self._named]
        if unknown:
            self._named |= {**dict.fromkeys(unknown, 0), **self.journal.named(unknown)}

    def meet(self, name: str) -> None:
        """Learn of an experiment that another server has just created."""
        self.look_for({name})
        if name not in self.fold.by_name:
            self.reach(self._named[name])

    def append(self, entries: Sequence[Entry], also: Sequence[Place] = ()) -> list[Entry]:
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
            self.ahead.add(written)
        return written
