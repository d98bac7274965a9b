"""Ends the waits of decisions whose time is over, with the default outcome if there is one."""

from collections.abc import Iterable, Iterator
from typing import Final, final

from belated.serve.domain.entries import Entry, EntryKind, Found
from belated.serve.domain.experiment import Experiment
from belated.serve.engine.feedback import new_outcome
from belated.serve.store.journal import Journal

EXPIRED_AT_ONCE: Final = 2_000
LOOKED_AT_ONCE: Final = 100


@final
class Expiry:
    """Looks at each decision once, in order, when its wait is over."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._scanned: dict[int, int] = {}  # by experiment, the last decision it has looked at
        self._not_before: dict[int, int] = {}  # by experiment, when the next wait ends

    def entries(self, experiments: Iterable[Experiment], at: int, until: int) -> tuple[list[Entry], int]:
        """Return entries that end waits, up to EXPIRED_AT_ONCE, and how many decisions up to `until` it looked at."""
        ends: list[Entry] = []
        looked = 0
        for experiment in experiments:
            for decision, outcome in self._due(experiment, at, until, EXPIRED_AT_ONCE - looked):
                looked += 1
                if outcome is None:
                    default = experiment.settings.default_outcome
                    ends.append(new_outcome(decision, None, EntryKind.EXPIRED, at, default))
        return ends, looked

    def _due(self, experiment: Experiment, at: int, until: int, most: int) -> Iterator[Found]:
        """Yield the next decisions whose wait is over, with or without an outcome.

        The first decision that is not due ends the search. If servers' clocks differ, a due decision behind it waits
        a little longer. After `until` the order is not final, so the search stops there.
        """
        wait, number = experiment.expires_at(0), experiment.seq
        if wait is None or not experiment.counts.outstanding or at < self._not_before.get(number, 0):
            return
        after = max(self._scanned.get(number, 0), experiment.last_expired)
        while most > 0:
            page = self._journal.decisions(number, after, min(most, LOOKED_AT_ONCE))
            for found in page:
                if found.decision.seq > until:
                    return
                if found.decision.at + wait > at:
                    self._not_before[number] = found.decision.at + wait
                    return
                after = self._scanned[number] = found.decision.seq
                yield found
            most -= len(page)
            if len(page) < LOOKED_AT_ONCE:
                return
