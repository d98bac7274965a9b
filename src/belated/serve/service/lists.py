"""Lists and exports of an experiment's entries, page by page. Each says where to go on, also when there is no more."""

import time
from collections.abc import Callable, Generator
from threading import BoundedSemaphore
from typing import Final, Generic, NamedTuple, TypeVar, final

from belated.serve.domain.entries import Entry, Found
from belated.serve.domain.experiment import Experiment
from belated.serve.domain.quotas import exhausted
from belated.serve.domain.refusals import Refusal
from belated.serve.domain.timestamps import shown
from belated.serve.engine.engine import Engine
from belated.serve.service.reading import Reader
from belated.serve.store.journal import Journal

T = TypeVar("T")
EVENTS_AT_ONCE: Final = 50
MOST_BYTES: Final = 2**20  # of the events in a page, before the last one
EXPORT_PAGE: Final = 1_000
MOST_EXPORTS: Final = 8  # at a time
EXPORT_RETRY: Final = 5  # seconds
STEP_BACK: Final = 4.0  # times as long as a page took, an export pauses while the service writes
LONGEST_PAGE: Final = 0.05  # seconds that count, because a page also takes long if its caller is slow


class ListPage(NamedTuple, Generic[T]):
    """Part of a list."""

    items: list[T]
    next: str | None  # the cursor of the next part, None on the last page
    resume: str  # the cursor from which to go on later, also after the last page


class Wanted(NamedTuple):
    """Which decisions an export has."""

    after: int = 0  # only decisions after this entry
    cursor: int = 0  # decisions made after this entry, and those that got an outcome after it. 0 for all
    limit: int = 2**62
    begin: int = 0  # only decisions made at this time or later
    end: int = 2**62  # and before this time

    def takes(self, found: Found) -> bool:
        """Whether the decision was made in the range of time."""
        return self.begin <= found.decision.at < self.end


@final
class Lists:
    """Reads the journal for lists and exports. All of its methods block."""

    def __init__(self, engine: Engine, reader: Reader) -> None:
        self._engine, self._reader, self._exports = engine, reader, BoundedSemaphore(MOST_EXPORTS)

    @property
    def applied(self) -> int:
        """The last entry that this server has applied. No entry comes before it any more, so a cursor may be here."""
        return self._engine.fold.seq

    def decisions(self, experiment: Experiment, after: int, limit: int) -> ListPage[Found]:
        """List decisions, oldest first."""
        self._check(after)
        read = lambda journal: journal.decisions(experiment.seq, after, limit + 1)  # noqa: E731
        return self._page(after, limit, read, lambda one: one.decision.seq)

    def outcomes(self, experiment: Experiment, after: int, limit: int) -> ListPage[Entry]:
        """List outcomes, oldest first."""
        self._check(after)
        read = lambda journal: journal.outcomes(experiment.seq, after, limit + 1)  # noqa: E731
        return self._page(after, limit, read, lambda entry: entry.seq)

    def events(self, experiment: Experiment, after: int, limit: int) -> ListPage[Entry]:
        """List what happened to the experiment itself, oldest first. Events with many arms are long, so fewer fit."""
        applied = self.applied

        def read(journal: Journal) -> tuple[list[Entry], bool]:
            """Return what fits into a page, and whether there is more."""
            found, size, last = list[Entry](), 0, after
            while page := journal.events(experiment.seq, last, EVENTS_AT_ONCE):
                for entry in page:
                    if entry.seq > applied:
                        return found, False
                    if len(found) == limit or size >= MOST_BYTES:
                        return found, True
                    found.append(entry)
                    size += len(entry.body or b"")
                last = page[-1].seq
            return found, False

        found, is_more = self._reader.ask(read)
        resume = str(found[-1].seq if is_more else max(after, applied))
        return ListPage(found, resume if is_more else None, resume)

    def _page(self, after: int, limit: int, read: Callable[[Journal], list[T]], seq: Callable[[T], int]) -> ListPage[T]:
        """Keep only what this server had applied before it read. Later entries may still get others before them."""
        applied = self.applied
        found = [one for one in self._reader.ask(read) if seq(one) <= applied]
        if len(found) > limit:
            last = str(seq(found[limit - 1]))
            return ListPage(found[:limit], last, last)
        return ListPage(found, None, str(max(after, applied)))

    def _check(self, cursor: int) -> None:
        """Refuse to go on from a place behind which entries may have been archived or erased."""
        removed = self._engine.removed
        if 0 < cursor < removed.until:
            raise Refusal(
                "gone",
                f"the cursor {cursor} is too old. Of what came after it until {shown(removed.at)}, some may have been "
                "archived or erased, so that you would miss it. Read everything again without a cursor. What was "
                "archived is in the files of `belated archive`.",
            )

    def export(self, experiment: Experiment, wanted: Wanted) -> tuple[Generator[list[Found]], int]:
        """Return the decisions that are wanted, in pages, and the cursor from which a later export goes on.

        A page is empty if none of its decisions are wanted. So who reads can stop at any time.
        Each page is a query of its own, so that no old state of the store has to be kept for a slow caller.
        """
        self._check(wanted.cursor)
        last = self.applied
        return self._pages(experiment, wanted, last), max(last, wanted.cursor)

    def _pages(self, experiment: Experiment, wanted: Wanted, last: int) -> Generator[list[Found]]:
        if not self._exports.acquire(blocking=False):
            said = f"this server sends {MOST_EXPORTS} exports at a time, because each has a connection to the store"
            raise exhausted("exports", f"{said}. Try again when one has ended.", EXPORT_RETRY)
        try:
            yield from self._read(experiment, wanted, last)
        finally:
            self._exports.release()

    def _read(self, experiment: Experiment, wanted: Wanted, last: int) -> Generator[list[Found]]:
        journal, left = self._reader.open(), wanted.limit
        try:
            for page in self._made(journal, experiment, wanted, last):
                kept = [found for found in page if wanted.takes(found)][:left]
                yield kept
                left -= len(kept)
                if left <= 0:
                    return
            if wanted.cursor:
                for page in self._changed(journal, experiment, wanted.cursor, last):
                    yield [found for found in page if wanted.takes(found)]
        finally:
            journal.close()

    def _made(self, journal: Journal, experiment: Experiment, wanted: Wanted, last: int) -> Generator[list[Found]]:
        """Yield the decisions after an entry, oldest first."""
        after, decision = max(wanted.after, wanted.cursor), wanted.after
        while after < last:
            began, seq = time.monotonic(), self.applied
            page = journal.decisions(experiment.seq, after, EXPORT_PAGE)
            self._check_left(journal, decision)
            if not page:
                return
            after = decision = page[-1].decision.seq
            yield [found for found in page if found.decision.seq <= last]
            self._step_back(began, seq)

    def _check_left(self, journal: Journal, after: int) -> None:
        """Refuse to go on after a decision that has left the store. The oldest leave first, so later ones may be gone.

        Look after the page was read, because they may leave at any moment.
        """
        removed = self._engine.removed
        if 0 < after <= removed.until and not journal.find([after]):
            raise Refusal(
                "gone",
                "the decision to go on after was archived or erased, as others may have been until "
                f"{shown(removed.at)}, so that you would miss them. Export everything again without after. What was "
                "archived is in the files of `belated archive`.",
            )

    def _changed(self, journal: Journal, experiment: Experiment, cursor: int, last: int) -> Generator[list[Found]]:
        """Yield the decisions up to an entry that got an outcome after it. If one comes twice, the later counts."""
        after = cursor
        while after < last:
            began, seq = time.monotonic(), self.applied
            page = journal.outcomes(experiment.seq, after, EXPORT_PAGE)
            if not page:
                return
            after = page[-1].seq
            told = dict.fromkeys(one.decision or 0 for one in page if one.seq <= last and (one.decision or 0) <= cursor)
            known = journal.find(list(told))
            yield [known[decision] for decision in told if decision in known]  # others were erased meanwhile
            self._step_back(began, seq)

    def _step_back(self, began: float, seq: int) -> None:
        """Pause after a page if others write, so that they have most of the time."""
        if self.applied != seq:
            time.sleep(STEP_BACK * min(time.monotonic() - began, LONGEST_PAGE))
