"""Says what of an experiment has left the store, so that its page can tell."""

import time
from contextlib import suppress
from typing import Final, NamedTuple, final

from belated.errors import StoreError
from belated.serve.domain.experiment import Experiment
from belated.serve.domain.refusals import Refusal
from belated.serve.domain.timestamps import MICROSECONDS, iso
from belated.serve.engine.recent import Removed
from belated.serve.service.descriptions import ArchiveView
from belated.serve.service.reading import Reader

LOOK_EVERY: Final = 2.0  # seconds between two looks at the oldest decision of an experiment
MOST_LOOKS: Final = 1_800  # after a base. A removal takes a while and writes no entry, so a page must look again


def looks(removed: Removed, now: int) -> int:
    """Return a number that changes from time to time after entries were allowed to go."""
    age = (now - removed.at) / MICROSECONDS
    return min(MOST_LOOKS, int(age / LOOK_EVERY)) if removed.until else 0


class Known(NamedTuple):
    """What was found at the last look, or None if the store could not be read."""

    view: ArchiveView | None
    removed_at: int
    use_until: float


@final
class Archived:
    """Looks up the oldest decision that is left of each experiment, now and then. Only one thread may use it."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._known: dict[int, Known] = {}  # by experiment

    def view(self, experiment: Experiment, removed: Removed) -> ArchiveView | None:
        """Describe what is missing of an experiment. If the store cannot be read now, returns what it knows.

        Then it does not ask again at once, because each question may wait long for a silent database.
        """
        if removed.until <= experiment.seq or not experiment.counts.decisions:
            return None
        known = self._known.get(experiment.seq)
        if known is None or time.monotonic() > known.use_until or known.removed_at != removed.at:
            found = None if known is None else known.view
            with suppress(Refusal, StoreError):
                found = self._look(experiment, removed)
            known = self._known[experiment.seq] = Known(found, removed.at, time.monotonic() + LOOK_EVERY)
        return known.view

    def _look(self, experiment: Experiment, removed: Removed) -> ArchiveView:
        made = experiment.counts.decisions  # before the look, so that a new decision is not taken for a missing one
        left = self._reader.ask(lambda journal: journal.decisions(experiment.seq, 0, 1))
        if not left:
            return ArchiveView(iso(removed.at), made, None)
        oldest = left[0].decision
        return ArchiveView(iso(removed.at), max(0, (oldest.round or 1) - 1), iso(oldest.at))
