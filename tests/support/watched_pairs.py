"""The evidence about each pair of arms in a compiled game, block by block, and what a look at it says.

The library keeps sums for each arm and combines them when somebody looks. Here each pair has its own sums. So this is
a second way to the same numbers.
"""

import math
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numpy as np

from belated import verdicts
from belated.arrays import Floats
from belated.kernels import compiled_first
from belated.verdicts.mixture import LOG_WEIGHTS, RATES, STEEPEST

FIRST, SECOND, THIRD, BOUND, TRUTH = range(5)  # the sums of a pair or of one side of a mean
LEAST_SQUARE = 1.2  # see `is_within_reach`
P = ParamSpec("P")
R = TypeVar("R")

# Numba's cache does not notice edits in these files, so a digest of them becomes part of each name (as in kernels/).
SOURCES = (*Path(__file__).parent.glob("watched_*.py"), *Path(verdicts.__file__).parent.glob("*.py"))
DIGEST = sha256(b"".join(path.read_bytes() for path in sorted(SOURCES))).hexdigest()[:12]


def watched(function: Callable[P, R]) -> Callable[P, R]:
    """Compile with the settings of the kernels."""
    function.__qualname__ += f"-{DIGEST}"
    return compiled_first(function)


@watched
def mixture(sums: Floats, shift: float) -> float:
    """The logarithm of the evidence at first - shift."""
    bound, first = sums[BOUND], sums[FIRST] - shift
    if first <= 0:
        return 0.0  # or less. Nobody asks
    most, total = -np.inf, 0.0
    for m in range(RATES.shape[0]):
        g = RATES[m] * bound
        if g <= STEEPEST:
            square, cube = 0.5 * math.log1p(-g * g) / bound**2, (math.atanh(g) - g) / bound**3
            exponent = LOG_WEIGHTS[m] + RATES[m] * first + square * sums[SECOND] + cube * sums[THIRD]
            if exponent > most:
                total = total * math.exp(most - exponent) + 1.0
                most = exponent
            else:
                total += math.exp(exponent - most)
    return most + math.log(total) if total > 0 else -np.inf


@watched
def is_within_reach(sums: Floats, shift: float, level: float) -> bool:
    """Whether the evidence may be as high as the level. If not, there is no need to compute it.

    The third power is at most the second times B. So the exponent of a rate l with g = l B <= 0.95 is at most
    l S - (g - ln(1 + g)) V / B^2 <= l S - 0.3127 l^2 V <= S^2 / (1.25 V). 1.2 leaves room for rounding.
    """
    first = sums[FIRST] - shift
    return bool(first > 0 and first**2 >= LEAST_SQUARE * sums[SECOND] * level)


@watched
def is_reached(blocks: Floats, n_blocks: int, level: float, part: float) -> bool:
    """Whether the first blocks, for any number of them, have this evidence beyond this part of the true sum."""
    sums = np.zeros(5)
    for b in range(n_blocks):
        for which in (FIRST, SECOND, THIRD, TRUTH):
            sums[which] += blocks[b, which]
        sums[BOUND] = max(sums[BOUND], blocks[b, BOUND])
        shift = part * sums[TRUTH]
        if is_within_reach(sums, shift, level) and mixture(sums, shift) >= level:
            return True
    return False


@watched
def change(sums: Floats, term: float, sign: float) -> None:
    """Add the powers of a term, or take them off."""
    sums[FIRST] += sign * term
    sums[SECOND] += sign * term**2
    sums[THIRD] += sign * term**3


@watched
def change_pairs(
    pairs: Floats, at: int, arm: int, weight: float, low: float, high: float, sign: float, r: Floats
) -> None:
    """Add a decision of block `at` whose outcome - centre is `low` when it speaks for its arm, and else `high`."""
    for other in range(r.shape[0]):
        if other != arm:
            share = r[other] / (r[arm] + r[other]) * weight
            change(pairs[other, arm, at], share * low, sign)
            change(pairs[arm, other, at], -share * high, sign)


@watched
def widen(pairs: Floats, at: int, centre: float, r: Floats, x: Floats, means: Floats) -> None:
    """Note the bounds of a counted decision, and add the true differences."""
    furthest = max(centre, 1 - centre)
    for i in range(r.shape[0]):
        for j in range(r.shape[0]):
            if i != j:
                h = r[i] * r[j] / (r[i] + r[j])
                pairs[i, j, at, BOUND] = max(pairs[i, j, at, BOUND], h / min(x[i], x[j]) * furthest)
                pairs[i, j, at, TRUTH] += h * (means[j] - means[i])


@watched
def n_settled(stages: Any, n_blocks: int) -> int:
    """The most first blocks in which at most a quarter of the decisions are open, or all."""
    found, n_open, counted = 0, 0, 0
    for b in range(n_blocks):
        n_open += stages[b].open
        counted += stages[b].counted
        if 4 * n_open <= counted:
            found = b + 1
    return found if found > 0 else n_blocks


@watched
def leader(pairs: Floats, stages: Any, n_blocks: int, known: Floats, totals: Floats) -> int:
    """The arm that the page calls the leader.

    From the arm with the best mean, go on to the arm that is the furthest ahead, until no new one is ahead.
    """
    means = np.where(known > 0, (totals + 0.5) / (known + 1), 2.0)  # an arm without outcomes leads only if all are
    place, k, settled = int(np.argmin(means)), pairs.shape[0], n_settled(stages, n_blocks)
    is_tried = np.zeros(k, np.bool_)
    while True:
        is_tried[place] = True
        best, furthest = -1, 0.0
        for other in range(k):
            ahead = 0.0 if is_tried[other] else pairs[other, place, :settled, FIRST].sum()
            if ahead > furthest:
                best, furthest = other, ahead
        if best < 0:
            return place
        place = best


@watched
def is_best(pairs: Floats, n_blocks: int, arm: int, level: float) -> bool:
    """Whether this arm has enough evidence against every other, each in the first blocks that are the best for that."""
    for other in range(pairs.shape[0]):
        if other != arm and not is_reached(pairs[arm, other], n_blocks, level, 0.0):
            return False
    return True


@watched
def is_difference_missed(pairs: Floats, n_blocks: int, level: float) -> bool:
    """Whether any end of an interval is on the wrong side of the true difference of its first blocks."""
    for i in range(pairs.shape[0]):
        for j in range(pairs.shape[0]):
            if i != j and is_reached(pairs[i, j], n_blocks, level, 1.0):
                return True
    return False


def whole(pairs: Floats, n_blocks: int) -> Floats:
    """By i, j: the bound of all blocks, and the sums of the three powers."""
    blocks = pairs[:, :, :n_blocks]
    sums = blocks[..., [FIRST, SECOND, THIRD]].sum(2)
    return np.concatenate([blocks[..., [BOUND]].max(2, initial=0.0), sums], axis=-1)


def blank_pairs(k: int, n_blocks: int) -> Floats:
    """Nothing yet, with room for these many blocks."""
    return np.zeros((k, k, n_blocks, 5))
