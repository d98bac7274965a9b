"""What somebody sees who looks at the evidence: the leader, differences and means, with intervals.

All of it holds at every moment together, whatever the delays, and while the learner adapts (docs/theory/verdicts.md).
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from belated.arrays import Floats, Integers
from belated.errors import InvalidInput
from belated.scalars import as_float
from belated.verdicts.mixture import Powers, excesses, log_evidence

if TYPE_CHECKING:
    from belated.verdicts.evidence import Evidence


LITTLE = 4  # first blocks are few if they have less than one in so many decisions


class MeanInterval(NamedTuple):
    """The mean outcome of an arm over all decisions that chose it, between low and high."""

    mean: float  # of the outcomes that are known
    low: float
    high: float
    known: int
    open: int  # decisions without an outcome. Each may still be anything


class Comparison(NamedTuple):
    """How much worse an arm is than the leader: its mean loss less that of the leader, between low and high."""

    arm: int
    difference: float
    low: float
    high: float
    sure: float  # that the leader is better than this arm. At least the confidence if, and only if, low >= 0
    swing: float  # by so much the open decisions can still move the difference, between their two extremes


@dataclass(frozen=True, slots=True)
class Verdict:
    """Which arm is the best, and how sure that is."""

    leader: int | None  # None while no outcome is known, or if there are no two arms
    sure: float  # that the leader is better than each other active arm, from 0 to 1
    confidence: float
    known: int  # outcomes
    open: int  # decisions without an outcome
    left_out: int  # decisions that count for means, but not for differences
    comparisons: tuple[Comparison, ...]  # the other active arms against the leader

    @property
    def is_decided(self) -> bool:
        """Whether the leader is the best, at this confidence."""
        return self.sure >= self.confidence


class Pairs(NamedTuple):
    """One arm against each of the others, at the worst ends of all open decisions."""

    lead: Powers  # of terms whose mean is > 0 if the arm is better than the other
    lag: Powers  # and if it is worse
    sizes: Floats  # H: the sum of the weights of the differences
    differences: Floats  # of the weighted means of known outcomes


class Table(NamedTuple):
    """The blocks of an Evidence as arrays, with a row for each block and a column for each active arm."""

    reference: Floats
    weights: Floats
    sums: Floats
    squares: Floats
    cubes: Floats
    open_weights: Floats
    open_squares: Floats
    open_cubes: Floats
    lowest: Floats
    centre: Floats  # a single column, as the next one
    counted: Floats


def verdict(evidence: "Evidence", confidence: float) -> Verdict:
    """Find the leader and compare the others with it.

    The evidence is the best of all first blocks, so that young decisions, which are mostly open, do not hide what older
    ones have shown.
    """
    level, arms = _as_confidence(confidence), np.array(evidence.active, np.int64)
    n_open = sum(sum(block.open) for block in evidence.blocks)
    counts = evidence.reports, n_open, evidence.decisions - evidence.counted
    if len(arms) < 2 or evidence.reports == 0:
        return Verdict(None, 0.0, level, *counts, ())
    table, best = tabulate(evidence, arms), _best_mean(evidence, arms)
    first = _first(table, _settled(evidence))
    place = _leader(first, best)[0]
    found = _compared(table, arms, place, evidence.n_arms, level)
    is_chance = evidence.assumed is not None and LITTLE * first.counted.sum() < table.counted.sum()
    if is_chance and place != best and not _least_sure(found):  # silence says more than so few decisions
        place, found = best, _compared(table, arms, best, evidence.n_arms, level)
    return Verdict(int(arms[place]), _least_sure(found), level, *counts, tuple(found))


def _compared(table: Table, arms: Integers, place: int, n_arms: int, level: float) -> list[Comparison]:
    return _comparisons(arms, place, against_all(table, place), _best_prefix(table, place), n_arms, level)


def _least_sure(found: list[Comparison]) -> float:
    return min(one.sure for one in found)


def _first(table: Table, n_blocks: int) -> Table:
    return Table(*(column[:n_blocks] for column in table))


def _settled(evidence: "Evidence") -> int:
    """The most first blocks in which at most a quarter of the decisions are open, or all."""
    counted = np.cumsum([block.counted for block in evidence.blocks])
    is_settled = 4 * np.cumsum([sum(block.open) for block in evidence.blocks]) <= counted
    return int(np.flatnonzero(is_settled)[-1]) + 1 if is_settled.any() else counted.size


def _best_prefix(table: Table, i: int) -> Pairs:
    """For each arm, the first blocks that have the most evidence that arm i is better."""
    pairs = against_all(table, i, so_far=True)
    shape = pairs.sizes.shape
    found = log_evidence(Powers(*(column.ravel() for column in pairs.lead))).reshape(shape)
    chosen = found.argmax(axis=0), np.arange(shape[1])
    lead, lag = (Powers(*(column[chosen] for column in side)) for side in (pairs.lead, pairs.lag))
    return Pairs(lead, lag, pairs.sizes[chosen], pairs.differences)


def _as_confidence(confidence: float) -> float:
    level = as_float(confidence)
    if not 0.5 <= level < 1:
        raise InvalidInput(f"confidence must be a number from 0.5 to below 1, such as 0.95, got {confidence!r}")
    return level


def tabulate(evidence: "Evidence", arms: Integers) -> Table:
    """All blocks, for these arms."""
    columns = [[getattr(block, field) for field in Table._fields[9:]] for block in evidence.blocks]
    narrow = np.array(columns, float).reshape(-1, 2, 1).transpose(1, 0, 2)
    return Table(*(_rows(evidence, field, float(field == "lowest"))[:, arms] for field in Table._fields[:9]), *narrow)


def _best_mean(evidence: "Evidence", arms: Integers) -> int:
    """The arm with the lowest mean, by its place among the active arms. One without outcomes only if all are.

    An open decision counts as the assumed loss, if there is one. Otherwise the outcomes that come first would decide.
    """
    known, totals, waiting = np.array(evidence.known)[arms], np.array(evidence.totals)[arms], 0.0
    if evidence.assumed is not None:
        waiting = _rows(evidence, "open", 0)[:, arms].sum(0)
        totals = totals + evidence.assumed * waiting
    means = (totals + 0.5) / (known + waiting + 1)
    return int(np.argmin(np.where(known > 0, means, 2.0)))


def _leader(table: Table, start: int) -> tuple[int, Pairs]:
    """The arm that is ahead of all others, if there is one, by its place. Otherwise some arm.

    If i is ahead of j, j is not ahead of i. So going on to an arm that is ahead, never to one that was left before,
    ends at the arm that is ahead of all.
    """
    place, pairs = start, against_all(table, start)
    tried = np.zeros(len(pairs.sizes), bool)
    while True:
        tried[place] = True
        ahead = np.where(tried, -np.inf, pairs.lag.first)
        best = int(np.argmax(ahead))
        if ahead[best] <= 0:
            return place, pairs
        place, pairs = best, against_all(table, best)


def against_all(table: Table, i: int, *, so_far: bool = False) -> Pairs:
    """Arm i against each arm. Its own decisions count with h / r_i, and those of another arm j with h / r_j.

    With `so_far` there is a row for each block, which has the sums up to its end.
    """
    total, largest = (_sums_so_far, _largest_so_far) if so_far else (_sum, _largest)
    r, c = table.reference, table.centre
    both = r[:, [i]] + r
    own = np.divide(r, both, out=np.zeros_like(r), where=both > 0)
    other = np.divide(r[:, [i]], both, out=np.zeros_like(r), where=both > 0)
    is_pair = (r > 0) & (r[:, [i]] > 0)
    weights = np.maximum(own / table.lowest[:, [i]], other / table.lowest)  # the largest that were possible
    widest = largest(np.where(is_pair, weights * np.maximum(c, 1 - c), 0.0))
    bound = np.where(widest > 0, widest, 1.0)
    best, worst = _powers(table, -c), _powers(table, 1 - c)
    mine, theirs = _first_powers(own), _first_powers(other)
    sign = {1: -1.0, 2: 1.0, 3: -1.0}
    lead = [total(theirs[p] * best[p] + sign[p] * mine[p] * worst[p][:, [i]]) for p in (1, 2, 3)]
    lag = [total(mine[p] * best[p][:, [i]] + sign[p] * theirs[p] * worst[p]) for p in (1, 2, 3)]
    sizes = total(np.where(is_pair, own * r[:, [i]] * table.counted, 0.0))
    return Pairs(Powers(bound, *lead), Powers(bound, *lag), sizes, _differences(table, own, other, i))


def _first_powers(values: Floats) -> dict[int, Floats]:
    """The first three powers. Multiplying is ten times faster than raising to a power."""
    squares = values * values
    return {1: values, 2: squares, 3: squares * values}


def _sum(rows: Floats) -> Floats:
    return np.asarray(rows.sum(0))


def _largest(rows: Floats) -> Floats:
    return np.asarray(rows.max(0, initial=0.0))


def _sums_so_far(rows: Floats) -> Floats:
    return np.cumsum(rows, axis=0)


def _largest_so_far(rows: Floats) -> Floats:
    return np.maximum.accumulate(rows, axis=0)


def _powers(table: Table, centred: Floats) -> dict[int, Floats]:
    """The sums of the powers of weight (outcome - c), if each open decision has this outcome - c."""
    powers = _first_powers(centred)
    return {
        1: table.sums + powers[1] * table.open_weights,
        2: table.squares + powers[2] * table.open_squares,
        3: table.cubes + powers[3] * table.open_cubes,
    }


def _differences(table: Table, own: Floats, other: Floats, i: int) -> Floats:
    """The weighted mean of each arm's known outcomes less that of arm i. NaN if one of the two has none."""
    outcomes = table.sums + table.centre * table.weights
    with np.errstate(invalid="ignore", divide="ignore"):
        theirs = (other * outcomes).sum(0) / (other * table.weights).sum(0)
        mine = (own * outcomes[:, [i]]).sum(0) / (own * table.weights[:, [i]]).sum(0)
    return np.asarray(theirs - mine)


def _comparisons(
    arms: Integers, place: int, whole: Pairs, best: Pairs, n_arms: int, confidence: float
) -> list[Comparison]:
    """Compare each arm with the leader.

    For k arms the low end of a pair fails with a chance of at most (1 - confidence) / k, for all prefixes together. The
    high end takes k - 1 times less. So the interval of an arm holds with the confidence, whoever leads.
    """
    log_arms = math.log(n_arms)
    log_level = log_arms - math.log1p(-confidence)
    high_level = log_level + math.log(n_arms - 1)
    sure = 1 - np.exp(np.minimum(0.0, log_arms - log_evidence(best.lead)))
    with np.errstate(divide="ignore"):
        low = np.maximum(-1.0, (best.lead.first - excesses(best.lead, log_level)) / best.sizes)
        highs = [(excesses(one.lag, high_level) - one.lag.first) / one.sizes for one in (whole, best)]
    high = np.maximum(low, np.minimum(1.0, np.minimum(*highs)))  # they may cross if a difference changes
    swing = -(whole.lead.first + whole.lag.first) / np.where(whole.sizes > 0, whole.sizes, 1.0)
    middle = np.where(np.isnan(whole.differences), (low + high) / 2, whole.differences)
    columns = arms, np.clip(middle, low, high), low, high, sure, np.clip(swing, 0.0, 2.0)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [Comparison(*row) for at, row in enumerate(rows) if at != place]


def means(evidence: "Evidence", confidence: float) -> list[MeanInterval | None]:
    """The interval of each arm that ever took part."""
    log_level = math.log(2) - math.log1p(-_as_confidence(confidence))
    centres, n_open = _rows(evidence, "means", 0.5), _rows(evidence, "open", 0)
    known, totals, zero = np.array(evidence.known), np.array(evidence.totals), np.zeros(evidence.n_arms)
    squares, cubes, waiting = np.array(evidence.squares), np.array(evidence.cubes), n_open.sum(0).astype(np.int64)
    bound = np.maximum(centres, 1 - centres).max(0, initial=0.5)
    lowest, highest = -centres, 1 - centres  # the terms of open decisions
    (_, low2, low3), (_, high2, high3) = _first_powers(lowest).values(), _first_powers(highest).values()
    below = Powers(bound, zero, squares + (n_open * low2).sum(0), cubes + (n_open * low3).sum(0))
    above = Powers(bound, zero, squares + (n_open * high2).sum(0), -cubes - (n_open * high3).sum(0))
    sizes = np.maximum(1, known + waiting)
    low = np.maximum(0.0, (totals - excesses(below, log_level)) / sizes)
    high = np.minimum(1.0, (totals + waiting + excesses(above, log_level)) / sizes)
    columns = totals / np.maximum(1, known), low, high, known, waiting
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [MeanInterval(*row) if row[3] else None for row in rows]


def _rows(evidence: "Evidence", field: str, missing: float) -> Floats:
    """A field of all blocks as an array with a column for each arm. Arms that came later have the value `missing`."""
    found = np.full((len(evidence.blocks), evidence.n_arms), missing)
    for place, block in enumerate(evidence.blocks):  # one by one, so that other threads get their turn in between
        row = getattr(block, field)
        found[place, : len(row)] = row
    return found
