"""Statistics of an experiment: how many outcomes there are, how late they are, and how the probabilities moved.

They depend only on the journal and take a fixed amount of memory.
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Final

import msgspec

from belated.serve.domain.entries import Entry, EntryKind
from belated.serve.domain.timestamps import MICROSECONDS

MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0
EDGES: Final = (  # seconds
    *(0.0, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 30 * MINUTE),
    *(HOUR, 2 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 4 * DAY, 7 * DAY, 14 * DAY, 30 * DAY),
)
MOST_BUCKETS: Final = 1024
BUCKET: Final = MICROSECONDS // 10
MOST_POINTS: Final = 400
_COUNTED: Final = {
    EntryKind.DECIDED: "decisions",
    EntryKind.REPORTED: "reported",
    EntryKind.EXPIRED: "expired",
    EntryKind.LATE: "late",
    EntryKind.AMENDED: "amended",
}
_FIELDS: Final = ["", *(_COUNTED.get(kind, "") for kind in sorted(EntryKind))]  # by kind


class Counts(msgspec.Struct):
    """How many outcomes of each kind there were. An expired one may also be counted as late."""

    decisions: int = 0
    reported: int = 0
    expired: int = 0
    late: int = 0
    amended: int = 0

    @property
    def outstanding(self) -> int:
        return self.decisions - self.reported - self.expired

    def add(self, entries: Sequence[Entry]) -> None:
        """Count entries of one kind. An index is faster than comparing kinds."""
        if field := _FIELDS[entries[0].kind]:
            setattr(self, field, getattr(self, field) + len(entries))


class Ages(msgspec.Struct):
    """Open decisions by the time they were made. Buckets of old decisions are coarser."""

    starts: list[int]
    counts: list[int]

    def opened(self, at: int, number: int = 1) -> None:
        """Add new decisions. They may be slightly out of order, because servers' clocks differ."""
        if len(self.starts) == MOST_BUCKETS:
            self._merge()
        if not self.starts or at >= self.starts[-1] + BUCKET:
            self.starts.append(at)
            self.counts.append(0)
        self.counts[self._bucket(at)] += number

    def closed(self, decided_at: int) -> None:
        """Remove a decision that was made at this time."""
        self.counts[self._bucket(decided_at)] -= 1

    def _bucket(self, at: int) -> int:
        return max(0, bisect_right(self.starts, at) - 1)

    def _merge(self) -> None:
        """Drop empty buckets. If too many are left, merge pairs in the older half."""
        kept = [(s, c) for s, c in zip(self.starts, self.counts, strict=True) if c]
        if len(kept) > MOST_BUCKETS // 2:
            old = kept[: MOST_BUCKETS // 2]
            kept[: len(old)] = [(one[0], one[1] + two[1]) for one, two in zip(old[::2], old[1::2], strict=True)]
        self.starts, self.counts = [start for start, _ in kept], [count for _, count in kept]

    def histogram(self, now: int) -> list[int]:
        """Count open decisions by how long they have waited, in the buckets of EDGES."""
        counts = [0] * len(EDGES)
        for start, count in zip(self.starts, self.counts, strict=True):
            counts[bucket_of(now - start)] += count
        return counts


def bucket_of(microseconds: int) -> int:
    """Return the bucket of a time: the index of the largest edge that is not above it."""
    return max(0, bisect_right(EDGES, microseconds / MICROSECONDS) - 1)


class History(msgspec.Struct):
    """The arms' probabilities over time, thinned out to at most MOST_POINTS points."""

    stride: int
    next: int  # the first round that may add a point
    rounds: list[int]
    times: list[int]
    points: list[list[float | None]]  # by arm, None where it did not take part

    def add(self, round: int, at: int, point: list[float | None]) -> None:
        """Add a point for this round."""
        self.rounds.append(round)
        self.times.append(max([at, *self.times[-1:]]))
        self.points.append(point)
        if len(self.rounds) > MOST_POINTS:
            self.rounds, self.times, self.points = self.rounds[::2], self.times[::2], self.points[::2]
            self.stride *= 2
        self.next = round + self.stride
