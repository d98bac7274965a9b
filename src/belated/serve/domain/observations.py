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
    EntryKind.REMOVED: "removed",
}
_FIELDS: Final = ["", *(_COUNTED.get(kind, "") for kind in sorted(EntryKind))]  # by kind


class Counts(msgspec.Struct):
    """How many outcomes of each kind there were. An expired one may also be counted as late."""

    decisions: int = 0
    reported: int = 0
    expired: int = 0
    late: int = 0
    amended: int = 0
    removed: int = 0  # archived or erased before they had an outcome

    @property
    def outstanding(self) -> int:
        return self.decisions - self.reported - self.expired - self.removed

    def add(self, entries: Sequence[Entry]) -> None:
        """Count entries of one kind. An index is faster than comparing kinds."""
        if field := _FIELDS[entries[0].kind]:
            setattr(self, field, getattr(self, field) + len(entries))


class Ages(msgspec.Struct):
    """Open decisions by the time they were made. Buckets of old decisions are coarser.

    A bucket holds decisions from its start to its last one, and ends before the next bucket starts.
    """

    starts: list[int]
    counts: list[int]
    lasts: list[int]

    def opened(self, at: int, number: int = 1) -> None:
        """Add new decisions. They may be out of order, because servers' clocks differ or were wrong."""
        if len(self.starts) == MOST_BUCKETS:
            self._merge()
        index = bisect_right(self.starts, at) - 1
        if index < 0 or (at >= self.starts[index] + BUCKET and at > self.lasts[index]):
            index += 1
            self.starts.insert(index, at)
            self.counts.insert(index, 0)
            self.lasts.insert(index, at)
        self.counts[index] += number
        self.lasts[index] = max(self.lasts[index], at)

    def closed(self, decided_at: int) -> None:
        """Remove a decision that was made at this time."""
        self.counts[self._bucket(decided_at)] -= 1

    def _bucket(self, at: int) -> int:
        return max(0, bisect_right(self.starts, at) - 1)

    def _merge(self) -> None:
        """Drop empty buckets. If too many are left, merge pairs in the older half."""
        kept = [bucket for bucket in zip(self.starts, self.counts, self.lasts, strict=True) if bucket[1]]
        if len(kept) > MOST_BUCKETS // 2:
            old = kept[: MOST_BUCKETS // 2]
            pairs = zip(old[::2], old[1::2], strict=True)
            kept[: len(old)] = [(one[0], one[1] + two[1], two[2]) for one, two in pairs]
        self.starts, self.counts, self.lasts = (
            (list(column) for column in zip(*kept, strict=True)) if kept else ([], [], [])
        )

    def histogram(self, now: int) -> list[int]:
        """Count open decisions by how long they have waited, in the buckets of EDGES."""
        counts = [0] * len(EDGES)
        for start, count in zip(self.starts, self.counts, strict=True):
            counts[bucket_of(now - start)] += count
        return counts


def bucket_of(microseconds: int) -> int:
    """Return the bucket of a time: the index of the largest edge that is not above it."""
    return max(0, bisect_right(EDGES, microseconds / MICROSECONDS) - 1)


def in_order(times: list[int]) -> list[int]:
    """Return times that never fall. Those that contradict the most others are replaced by the next that does not.

    They come from a wrong clock. Those that are kept are a longest non-decreasing subsequence.
    """
    ends: list[int] = []  # of the subsequences of each length so far, the least last time
    indices: list[int] = []  # and its index
    before: list[int] = []  # for each time, the index of the one before it
    for index, at in enumerate(times):
        length = bisect_right(ends, at)
        before.append(indices[length - 1] if length else -1)
        ends[length : length + 1], indices[length : length + 1] = [at], [index]
    kept, index = set[int](), indices[-1] if indices else -1
    while index >= 0:
        kept.add(index)
        index = before[index]
    ordered, following = list(times), ends[-1] if ends else 0
    for index in range(len(times) - 1, -1, -1):
        following = ordered[index] = times[index] if index in kept else following
    return ordered


class History(msgspec.Struct):
    """The arms' probabilities over time, thinned out to at most MOST_POINTS points."""

    stride: int
    next: int  # the first round that may add a point
    rounds: list[int]
    times: list[int]  # as their servers said, which may be wrong
    points: list[list[float | None]]  # by arm, None where it did not take part

    def add(self, round: int, at: int, point: list[float | None]) -> None:
        """Add a point for this round."""
        self.rounds.append(round)
        self.times.append(at)
        self.points.append(point)
        if len(self.rounds) > MOST_POINTS:
            self.rounds, self.times, self.points = self.rounds[::2], self.times[::2], self.points[::2]
            self.stride *= 2
        self.next = round + self.stride
