"""Whether all arms report equally often.

Young decisions have fewer reports than old ones, and the share of an arm changes with time. So each arm is compared
with the others in the same block of consecutive decisions, and a block is judged only when it is old enough.
"""

import math
from bisect import bisect_right
from operator import mul
from typing import Final, NamedTuple, Self

import msgspec
import numpy as np

from belated.arrays import Floats
from belated.serve.domain.observations import EDGES, in_order
from belated.serve.domain.timestamps import MICROSECONDS

MOST_BLOCKS: Final = 64
FEW_BLOCKS: Final = MOST_BLOCKS // 2  # remain when blocks are merged
SMALLEST_BLOCK: Final = 16
MOST_DELAYS: Final = 0.95  # of the delays of an arm count for how old a decision must be
SEVERAL: Final = 4.0  # times this long
FALSE_ALARMS: Final = 0.01  # the chance of a wrong warning during a whole experiment whose arms stay the same
LEAST: Final = 0.05  # an arm that reports less than this much less often is not worth a warning
TILTS: Final = tuple(2.0**-power for power in range(-1, 6))  # from 2 for an arm that never reports, to 1/32


class Block(msgspec.Struct):
    """Consecutive decisions and their reports, counted by arm."""

    first: int  # the entry of its first decision
    last_at: int  # the time of its newest decision
    chosen: list[int]
    reported: list[int]

    def join(self, later: "Block") -> "Block":
        """Return this block together with the next one."""
        chosen = [one + two for one, two in zip(self.chosen, later.chosen, strict=True)]
        reported = [one + two for one, two in zip(self.reported, later.reported, strict=True)]
        return Block(self.first, max(self.last_at, later.last_at), chosen, reported)

    def unlike(self, later: "Block") -> float:
        """Return how much is lost if this block is joined with the next one.

        k l / (k + l) (sum over arms of (p - q)^2 + (r - s)^2)     (Ward 1963)

        The blocks have k and l decisions, p and q are the shares of an arm, and r and s the shares with a report.
        Joining them shifts the reports that are expected of an arm by k l / (k + l) (p - q) (r - s). That is at most
        half of the cost, as 2 x y <= x^2 + y^2. Shares count even while reports are still to come. The quotient is one
        of exact integers, so every server gets the same.
        """
        k, l, m, o = sum(self.chosen), sum(later.chosen), sum(self.reported), sum(later.reported)  # noqa: E741
        own, both = sum(map(mul, self.chosen, self.chosen)), sum(map(mul, self.chosen, later.chosen))
        theirs = sum(map(mul, later.chosen, later.chosen))
        squares: int = own * l * l - 2 * both * k * l + theirs * k * k + (m * l - o * k) ** 2
        return squares / (k * l * (k + l))


class Comparison(NamedTuple):
    """How often an arm reports, of its decisions that are old enough to be judged."""

    decisions: int
    reports: int
    less: float | None  # the share by which it reports less often than the others, None if nothing can be compared
    evidence: float  # the logarithm of the evidence that this is no chance
    is_warned: bool


class Reporting(msgspec.Struct):
    """The decisions and reports of an experiment in blocks. If there are too many blocks, similar ones are merged."""

    size: int  # decisions in a new block
    room: int  # decisions that still fit into the last block
    blocks: list[Block]
    delays: list[list[int]]  # by arm, in the buckets of EDGES
    late: list[int]  # reports after the wait, by arm

    @classmethod
    def new(cls, n_arms: int) -> Self:
        """Return an empty one. A block is not smaller than the number of arms, so a decision takes O(1) time."""
        return cls(max(SMALLEST_BLOCK, n_arms), 0, [], [[0] * len(EDGES) for _ in range(n_arms)], [0] * n_arms)

    def add_arm(self) -> None:
        """Add an arm after all others."""
        self.delays.append([0] * len(EDGES))
        self.late.append(0)
        self.size = max(self.size, len(self.delays))
        for block in self.blocks:
            block.chosen.append(0)
            block.reported.append(0)

    def decide(self, seq: int, at: int, arm: int) -> None:
        """Count the decision of this entry."""
        if self.room == 0:
            self._add_block(seq, at)
        block = self.blocks[-1]
        block.chosen[arm] += 1
        block.last_at = max(block.last_at, at)
        self.room -= 1

    def _add_block(self, seq: int, at: int) -> None:
        if len(self.blocks) == MOST_BLOCKS:
            self._merge()
        n_arms = len(self.delays)
        self.blocks.append(Block(seq, at, [0] * n_arms, [0] * n_arms))
        self.room = self.size

    def _merge(self) -> None:
        """Merge the neighbours that are most alike, until few blocks remain.

        So times that differ stay apart, even if they are short. No block gets more than a fraction of all decisions,
        because a block waits for its newest one. If more than FEW_BLOCKS remain, some pair is always small enough.
        """
        blocks = self.blocks
        most = sum(sum(one.chosen) for one in blocks) * 2 // FEW_BLOCKS

        def cost(index: int) -> float:
            one, two = blocks[index], blocks[index + 1]
            return one.unlike(two) if sum(one.chosen) + sum(two.chosen) <= most else math.inf

        costs = [cost(index) for index in range(len(blocks) - 1)]
        while len(blocks) > FEW_BLOCKS:
            best = costs.index(min(costs))
            blocks[best : best + 2] = [blocks[best].join(blocks[best + 1])]
            del costs[best]
            for index in range(max(best - 1, 0), min(best + 1, len(costs))):
                costs[index] = cost(index)

    def report(self, decision: int, arm: int, bucket: int, *, is_late: bool) -> None:
        """Count the report of a decision. Its delay lies in this bucket of EDGES. It is late if the wait was over."""
        block = self.blocks[bisect_right(self.blocks, decision, key=lambda one: one.first) - 1]
        block.reported[arm] += 1
        self.delays[arm][bucket] += 1
        self.late[arm] += is_late

    def judged_after(self, wait: float | None) -> float | None:
        """Return the seconds after which a missing report counts as missing, or None if no delay is known.

        It is the wait, if one is set and nearly all reports of each arm come within it. Otherwise it is several times
        as long as nearly all delays of the slowest arm.
        """
        totals = zip(self.late, map(sum, self.delays), strict=True)
        if wait is not None and all(late <= (1 - MOST_DELAYS) * total for late, total in totals):
            return wait
        slowest = max((longest(counts) for counts in self.delays if any(counts)), default=None)
        if slowest is None:
            return None
        return SEVERAL * (EDGES[slowest + 1] if slowest + 1 < len(EDGES) else 2 * EDGES[slowest])

    def compare(self, now: int, wait: float | None) -> list[Comparison]:
        """Compare each arm with the others, in the blocks that are old enough."""
        after = self.judged_after(wait)
        ends = zip(self.blocks, in_order([one.last_at for one in self.blocks]), strict=True)
        judged = [one for one, last_at in ends if after is not None and last_at + after * MICROSECONDS <= now]
        shape = len(judged), len(self.delays)
        chosen = np.array([one.chosen for one in judged], float).reshape(shape)
        return compare(chosen, np.array([one.reported for one in judged], float).reshape(shape))


def longest(counts: list[int]) -> int:
    """Return the bucket that ends the first MOST_DELAYS of the delays."""
    enough, total = MOST_DELAYS * sum(counts), 0
    for bucket, count in enumerate(counts):
        total += count
        if total >= enough:
            return bucket
    return len(counts) - 1


def compare(chosen: Floats, reported: Floats) -> list[Comparison]:
    """Compare each arm with the others in the same blocks. The arrays have a row for each block, a column for each arm.

    less = 1 - sum(o (n - c) / n) / sum((m - o) c / n)     (Mantel & Haenszel 1959)

    In a block, n decisions have m reports, of which c and o are those of the arm.
    """
    n, m = np.maximum(chosen.sum(axis=1, keepdims=True), 1), reported.sum(axis=1, keepdims=True)
    own, theirs = (reported * (n - chosen) / n).sum(axis=0), ((m - reported) * chosen / n).sum(axis=0)
    columns = chosen.sum(axis=0), reported.sum(axis=0), own, theirs, evidences(chosen, reported)
    limit, found = math.log(chosen.shape[1] / FALSE_ALARMS), []
    for decisions, reports, one, other, evidence in zip(*(column.tolist() for column in columns), strict=True):
        less = 1 - one / other if other else None
        is_warned = less is not None and less >= LEAST and evidence >= limit
        found.append(Comparison(int(decisions), int(reports), less, evidence, is_warned))
    return found


def evidences(chosen: Floats, reported: Floats) -> Floats:
    """Return the logarithm of each arm's evidence that it reports less often than the others.

    evidence = mean over t in TILTS of exp(t Z - (e^t - 1 - t) V),   Z = sum(c m / n - o),
    V = sum(c (n - c) m (n - m) / (n^2 (n - 1)))

    If all decisions of a block are equally likely to be reported, and its choices do not depend on its own reports, o
    is hypergeometric. So it is a sum of independent indicators (Vatutin & Mikhailov 1982), and by Bennett's inequality
    each block multiplies the evidence by at most 1 on average. Then the evidence ever exceeds k / a for one of k arms
    with a probability of at most a, no matter how often one looks (Ville 1939). An arm that is added as the k-th adds
    at most a / k. Merged blocks, late reports, and reports that come while their block is still filled are outside of
    this proof. The tests measure them.
    """
    n, m = np.maximum(chosen.sum(axis=1, keepdims=True), 1), reported.sum(axis=1, keepdims=True)
    missing = (chosen * m / n - reported).sum(axis=0)
    variance = (chosen * (n - chosen) * m * (n - m) / (n * n * np.maximum(n - 1, 1))).sum(axis=0)
    exponents = [tilt * missing - (math.expm1(tilt) - tilt) * variance for tilt in TILTS]
    return np.asarray(np.logaddexp.reduce(exponents, axis=0) - math.log(len(TILTS)))
