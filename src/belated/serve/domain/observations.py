"""Statistics of an experiment: what each arm earns, how late reports are, and how the probabilities moved.

They depend only on the journal and take a fixed amount of memory.
"""

import math
from bisect import bisect_right
from typing import Final, NamedTuple

import msgspec

from belated.serve.domain.timestamps import MICROSECONDS

MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0
EDGES: Final = (  # seconds
    *(0.0, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 30 * MINUTE),
    *(HOUR, 2 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 4 * DAY, 7 * DAY, 14 * DAY, 30 * DAY),
)
RARE: Final = 3.0  # if n trials show nothing, it happens in less than 3 of n with 95% confidence
ENOUGH_REPORTS: Final = 20  # an interval from fewer would claim too much
MOST_BUCKETS: Final = 1024
BUCKET: Final = MICROSECONDS // 10
MOST_POINTS: Final = 400


class LossEstimate(NamedTuple):
    """A mean loss with its 95% interval."""

    mean: float
    low: float
    high: float


class Sums(NamedTuple):
    """The number of outcomes, the sums of psi and psi^2 (see Earnings), and the largest weight of an outcome."""

    outcomes: int
    total: float
    squares: float
    heaviest: float


class Earnings(msgspec.Struct):
    """Estimates each arm's mean loss without bias, from the outcomes of all arms.

    If there is a default outcome, every decision counts with it until its own outcome comes. Otherwise an arm whose
    successes are reported at once, and whose failures are never reported, would seem to have only successes.

    psi_s = c_i + 1{A_s = i} (loss_s - c_i) / x_s[i],     mean of psi_s over the outcomes s;  E[psi_s] = l_{s,i}

    This holds for any c_i that does not depend on A_s. Here c_i is the arm's plain mean when the number of outcomes
    last was a power of two. That removes most of the noise, and an outcome costs O(1). Robins, Rotnitzky & Zhao (1994)
    call such an estimator augmented.
    """

    outcomes: int
    centred: int  # outcomes that were summed with earlier centres
    own: list[int]  # outcomes of the arm itself
    lost: list[float]  # the plain sum of their losses
    centre: list[float]
    total: list[float]  # sum of psi, without c_i for each outcome since `centred`
    squares: list[float]  # sum of psi^2, likewise
    heaviest: list[float]  # the largest 1 / x_s[i] so far

    def add(self, arm: int, loss: float, probability: float) -> None:
        """Add an outcome."""
        c = self.centre[arm]
        change = (loss - c) / probability
        self.total[arm] += change
        self.squares[arm] += (c + change) ** 2 - c * c
        self.own[arm] += 1
        self.heaviest[arm] = max(self.heaviest[arm], 1 / probability)
        self.lost[arm] += loss
        self.outcomes += 1
        if self.outcomes & (self.outcomes - 1) == 0:
            self._centre_anew()

    def amend(self, arm: int, old: float, new: float, probability: float) -> None:
        """Correct an outcome. This is exact for the mean. The interval is approximate if the centre has moved."""
        c = self.centre[arm]
        before, after = c + (old - c) / probability, c + (new - c) / probability
        self.total[arm] += after - before
        self.squares[arm] += after * after - before * before
        self.lost[arm] += new - old

    def _centre_anew(self) -> None:
        since = self.outcomes - self.centred
        for i, c in enumerate(self.centre):
            self.total[i] += since * c
            self.squares[i] += since * c * c
            if self.own[i]:
                self.centre[i] = self.lost[i] / self.own[i]
        self.centred = self.outcomes

    def sums(self, arm: int) -> Sums:
        """Return the sums of one arm's estimate."""
        since, c = self.outcomes - self.centred, self.centre[arm]
        totals = self.total[arm] + since * c, self.squares[arm] + since * c * c
        return Sums(self.outcomes, *totals, self.heaviest[arm])


def new_earnings(n_arms: int) -> Earnings:
    """Return statistics without outcomes. The first centre is half the range."""
    zeros = [0.0] * n_arms
    return Earnings(0, 0, [0] * n_arms, zeros[:], [0.5] * n_arms, zeros[:], zeros[:], zeros[:])


def estimate(parts: list[Sums]) -> LossEstimate:
    """Estimate an arm's mean loss from the sums of all its eras.

    mean +- ( 1.96 sqrt(variance / n) + RARE w / n ),  where w is the largest 1 / x[i]

    The last term allows for rare outcomes that have not happened yet.
    """
    n, total, squares = (sum(column) for column in list(zip(*parts, strict=True))[:3])
    mean = total / n
    variance = max(0.0, squares / n - mean * mean)
    half = 1.96 * math.sqrt(variance / max(1, n - 1)) + RARE * max(one.heaviest for one in parts) / n
    return LossEstimate(*(min(1.0, max(0.0, value)) for value in (mean, mean - half, mean + half)))


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
