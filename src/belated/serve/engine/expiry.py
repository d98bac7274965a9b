"""Ends the waits of decisions whose time is over, with the default outcome if there is one."""

import logging
from collections.abc import Iterable, Iterator
from typing import Final, final

import msgspec

from belated.errors import StoreError
from belated.serve.domain.entries import Entry, EntryKind, Found
from belated.serve.domain.experiment import Experiment
from belated.serve.domain.parts import ended, is_open
from belated.serve.engine.clock import Moment
from belated.serve.engine.feedback import new_outcome
from belated.serve.store.journal import Journal

EXPIRED_AT_ONCE: Final = 2_000
LOOKED_AT_ONCE: Final = 100
log = logging.getLogger("belated.expiry")


def end_of(experiment: Experiment, found: Found, at: int) -> Entry:
    """Return the entry that ends the wait of an open decision, with the default outcome if there is one."""
    declared, settings = experiment.settings.declared_parts, experiment.settings
    if not declared:
        return new_outcome(found.decision, None, EntryKind.EXPIRED, at, settings.default_outcome)
    value, parts = ended(declared, found.outcome)
    entry = new_outcome(found.decision, found.outcome, EntryKind.EXPIRED, at, value)
    return msgspec.structs.replace(entry, parts=parts)


@final
class Expiry:
    """Looks at each decision once, in order, when its wait is over."""

    def __init__(self, journal: Journal, began: int = 0) -> None:
        self._journal = journal
        # the newest entry at the start. Those after it are dated too early, up to the second one, if the clock was set
        self._began, self._early_until, self._set_right = began, 0, 0
        self._scanned: dict[int, int] = {}  # by experiment, the last decision it has looked at
        self._not_before: dict[int, int] = {}  # by experiment, when the next wait ends
        self._waits: dict[int, int] = {}  # by experiment, the wait that all of this is about
        # all by experiment, for decisions that a wrong clock dated ahead
        self._over: dict[int, int] = {}  # up to which decision all waits are over
        self._probed: dict[int, int] = {}  # the last decision that was looked at to find that out
        # when such a decision was met first, by the steady clock, and the newest entry then
        self._met: dict[int, tuple[int, int]] = {}

    def begin_again(self) -> None:
        """Forget what it has looked at."""
        self._scanned.clear()
        self._not_before.clear()

    def entries(self, experiments: Iterable[Experiment], moment: Moment, until: int) -> tuple[list[Entry], int]:
        """Return entries that end waits, up to EXPIRED_AT_ONCE, and how many decisions up to `until` it looked at."""
        ends: list[Entry] = []
        looked = 0
        if moment.set_right is not None and moment.set_right != self._set_right:
            self._set_right, self._early_until = moment.set_right, until
        for experiment in experiments:
            scanned = self._scanned.get(experiment.seq, 0)
            try:
                due = list(self._due(experiment, moment, until, EXPIRED_AT_ONCE - looked))
                ends += [end_of(experiment, one, moment.now) for one in due if is_open(one)]
            except StoreError:
                raise
            except Exception:  # a failure of one experiment must not keep the others waiting
                log.exception("waits of an experiment cannot be ended", extra={"experiment": experiment.name})
                self._scanned[experiment.seq] = scanned  # none of them was ended
                continue
            looked += len(due)
        return ends, looked

    def _due(self, experiment: Experiment, moment: Moment, until: int, most: int) -> Iterator[Found]:
        """Yield the next decisions whose wait is over, with or without an outcome.

        The first decision that is not due ends the search. If servers' clocks differ, a due decision behind it waits
        a little longer. After `until` nothing is final, so the search stops there. As the search keeps the order,
        a decision that a wrong clock dated too early waits as long as the one before it.

        The next search begins after `last_expired`, or later if it would find outcomes only. The end of a wait that is
        written now counts when it is applied, because it may be lost before that.
        """
        wait, number = experiment.expires_at(0), experiment.seq
        if wait is not None and self._waits.setdefault(number, wait) != wait:
            self._begin_anew(number, wait)
        if (
            experiment.failure is not None
            or wait is None
            or not experiment.counts.outstanding
            or moment.earliest < self._not_before.get(number, 0)
        ):
            return
        after = max(self._scanned.get(number, 0), experiment.last_expired)
        are_all_known = True
        while most > 0:
            page = self._journal.decisions(number, after, min(most, LOOKED_AT_ONCE))
            for found in page:
                if max(entry.seq for entry in found if entry is not None) > until:
                    return  # an outcome that is not applied yet may still be lost
                if not self._is_over(found.decision, wait, moment, until):
                    return
                after = found.decision.seq
                are_all_known = are_all_known and not is_open(found)
                if are_all_known:
                    self._scanned[number] = after
                yield found
            most -= len(page)
            if len(page) < LOOKED_AT_ONCE:
                return

    def _begin_anew(self, number: int, wait: int) -> None:
        """Forget what was found out with another wait. The new one is that of all open decisions."""
        self._waits[number] = wait
        for known in (self._not_before, self._over, self._probed):
            known.pop(number, None)
        self._met.pop(number, None)

    def _is_over(self, decision: Entry, wait: int, moment: Moment, until: int) -> bool:
        number, at = decision.experiment, moment.earliest
        if self._began < decision.seq <= self._early_until and (left := self._set_right + wait - moment.steady) > 0:
            self._not_before[number] = at + left
            return False
        if decision.at + wait <= at or decision.seq <= self._over.get(number, 0):
            return True
        if decision.at > at:
            return self._is_over_though_ahead(decision, wait, moment, until)
        self._not_before[number] = decision.at + wait
        return False

    def _is_over_though_ahead(self, decision: Entry, wait: int, moment: Moment, until: int) -> bool:
        """Whether the wait of a decision is over that a wrong clock dated ahead.

        It is, if the wait of a later decision is over, or if this server has known the decision for so long. Only the
        steady clock can tell that, because the decision also seems to be ahead while the machine's clock is behind.
        """
        number, at = decision.experiment, moment.earliest
        met_at, newest = self._met.setdefault(number, (moment.steady, until))
        left = met_at + wait - moment.steady
        if left <= 0:
            self._over[number] = newest
            del self._met[number]
            return decision.seq <= newest
        after = max(self._probed.get(number, 0), decision.seq)
        for later, _ in self._journal.decisions(number, after, LOOKED_AT_ONCE):
            if later.seq > until:
                break
            if later.at + wait <= at:
                self._over[number] = self._probed[number] = later.seq
                return True
            if later.at <= at:
                self._not_before[number] = min(later.at + wait, at + left)
                break
            self._probed[number] = later.seq
        return False
