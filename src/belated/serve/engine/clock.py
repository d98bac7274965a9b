"""The time of a server. It does not follow a clock that jumps, and says when a wait may end.

A machine's clock can be wrong. It may be set by hand, or not set yet after a start, or follow a wrong server. Then
waits would end early, and entries would have wrong times. So a server compares three clocks:

    wall       the clock of its machine
    steady     a clock that only counts, from the last time that was trusted
    reference  the database's clock, which all servers of a database share. A file has none

While wall and steady agree, the wall clock is followed. Otherwise two of the three decide, and without a reference the
steady one does. A wait ends only when it is over by every clock.
"""

import logging
import time
from collections.abc import Callable
from statistics import median_low
from typing import Final, NamedTuple, final

from belated.serve.domain import timestamps
from belated.serve.domain.fold import Fold
from belated.serve.domain.history import Place
from belated.serve.domain.timestamps import MICROSECONDS
from belated.serve.store.journal import Journal

MAX_STEP: Final = 60 * MICROSECONDS  # a larger difference between two clocks is a jump
MAX_PAUSE: Final = 24 * 3600 * MICROSECONDS  # if the journal's newest entry is older at a start, the clock is doubted
PROBATION: Final = 3600 * MICROSECONDS  # for so long
CHECK_EVERY: Final = MICROSECONDS  # between two looks at the reference
log = logging.getLogger("belated.clock")


class Anchor(NamedTuple):
    """A time that was trusted, and what the steady clock said then."""

    at: int
    steady: int


def steady() -> int:
    """Return microseconds since some moment, by a clock that nobody sets. It also counts while the machine sleeps."""
    kind = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime_ns(kind) // 1000


class Moment(NamedTuple):
    """A moment by several clocks."""

    now: int  # the date of a new entry
    earliest: int  # a time that has come by every clock. It jumps if the machine's clock does
    steady: int  # since some moment. It never jumps
    set_right: int | None = None  # when a clock that was behind at the start was set, by the steady clock


@final
class Timekeeper:
    """Tells the time in microseconds. `newest` is the time of the newest entry that counts, or 0."""

    def __init__(
        self,
        wall: Callable[[], int],
        steady: Callable[[], int],
        *,
        newest: int = 0,
        reference: Callable[[], int | None] = lambda: None,
    ) -> None:
        self._wall, self._steady, self._ask_reference, self._newest = wall, steady, reference, newest
        self._reference = self._asked()
        self._is_off = False  # whether the log says that the wall clock is wrong
        self._on_probation_until: int | None = None
        self._set_right: int | None = None
        now, ticks = wall(), steady()
        if self._reference is None:
            self._anchor = Anchor(now, ticks)
            self._doubt(self._anchor)
        else:
            self._anchor = Anchor(self._continued(self._reference, ticks), ticks)

    def __call__(self) -> int:
        """Return the present time."""
        wall, ticks, anchor = self._wall(), self._steady(), self._anchor
        expected = self._continued(anchor, ticks)
        if abs(wall - expected) <= MAX_STEP:
            self._follow(Anchor(wall, ticks))
            return wall
        if self._is_doubted(ticks):  # maybe it is being set right
            self._set_right = ticks if wall > expected else self._set_right
            self._anchor = Anchor(wall, ticks)
            self._doubt(self._anchor)
            return wall
        now = expected
        if self._reference is not None:
            now = median_low([wall, expected, self._continued(self._reference, ticks)])
            self._anchor = Anchor(now, ticks)
        self._complain(wall, now)
        return now

    def check(self) -> None:
        """Look at the reference, if there is one and the last look was a while ago. May raise StoreUnreachable."""
        if self._reference is not None and self._steady() >= self._reference.steady + CHECK_EVERY:
            self._reference = self._asked()

    def _asked(self) -> Anchor | None:
        at = self._ask_reference()
        return None if at is None else Anchor(at, self._steady())

    def earliest(self) -> int | None:
        """Return a time that has come by every clock, or None if the clock is doubted because it is far ahead."""
        now, wall, ticks = self(), self._wall(), self._steady()
        if self._is_doubted(ticks) and now > self._newest:
            return None
        return min(now, wall, now if self._reference is None else self._continued(self._reference, ticks))

    def moment(self) -> Moment | None:
        """Return the present moment, or None if the clock is doubted because it is far ahead."""
        earliest = self.earliest()
        return None if earliest is None else Moment(self(), earliest, self._steady(), self._set_right)

    def offset(self) -> float:
        """Return by how many seconds the wall clock is ahead of the time that this server uses."""
        return (self._wall() - self()) / MICROSECONDS

    @staticmethod
    def _continued(anchor: Anchor, ticks: int) -> int:
        return anchor.at + ticks - anchor.steady

    def _follow(self, anchor: Anchor) -> None:
        self._anchor = anchor
        if self._is_off:
            self._is_off = False
            log.warning("the clock of this machine is right again")

    def _complain(self, wall: int, now: int) -> None:
        if not self._is_off:
            self._is_off = True
            ahead = (wall - now) / MICROSECONDS
            log.error(
                "the clock of this machine is wrong, so its time is not used. "
                "If it was set right, restart the service.",
                extra={"seconds_ahead": ahead},
            )

    def _is_doubted(self, ticks: int) -> bool:
        return self._on_probation_until is not None and ticks < self._on_probation_until

    def _doubt(self, first: Anchor) -> None:
        """Doubt a clock that the journal contradicts. It may be right, if the service was down for long."""
        ahead = first.at - self._newest
        if not self._newest or -MAX_STEP <= ahead <= MAX_PAUSE:
            self._on_probation_until = None
            return
        self._on_probation_until = first.steady + PROBATION
        log.warning(
            "the clock is far from the newest entry of the journal. No wait ends for an hour if it is ahead.",
            extra={"seconds_ahead": ahead / MICROSECONDS},
        )


def timekeeper(clock: Callable[[], int] | None, journal: Journal, fold: Fold) -> Timekeeper:
    """Return the clock of a server. A clock that a caller gives is trusted, and compared with no other."""
    if isinstance(clock, Timekeeper):
        return clock
    if clock is not None:
        return Timekeeper(clock, clock, newest=fold.at)
    newest = settled(journal, fold.tail.newest) if fold.tail.newest.seq and journal.clock() is None else fold.at
    return Timekeeper(timestamps.now, steady, newest=newest, reference=journal.clock)


def settled(journal: Journal, newest: Place) -> int:
    """Return the time of the newest entry that says something about the clock at a start.

    That is the newest entry, unless all of the last hour come after a pause of more than a day. Then the clock may be
    wrong since that pause, and it would agree with itself. So the last entry before the pause counts.
    """

    def at(seq: int) -> int:
        found = journal.left(seq - 1, newest.seq, 1)  # the next one that was not removed
        return found[0].at if found else newest.at

    def is_recent(seq: int) -> bool:
        return abs(at(seq) - newest.at) < PROBATION

    step = 1
    while step < newest.seq and is_recent(newest.seq - step):
        step *= 2
    older, recent = max(0, newest.seq - step), newest.seq - step // 2
    while recent - older > 1:  # the last entry that is not recent is between them, or there is none
        middle = (older + recent) // 2
        older, recent = (older, middle) if is_recent(middle) else (middle, recent)
    before = at(older) if older else newest.at
    return before if before < newest.at - MAX_PAUSE else newest.at
