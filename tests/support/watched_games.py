"""Whole games of a learner with a look after every report, compiled. Delays may depend on the arm and the outcome.

The sums of pairs are updated with every decision and report here. The library adds blocks up when somebody looks.
So this is a second way to the same numbers, and tests compare the two.
"""

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from belated import kernels
from belated.arrays import Floats, Integers
from belated.kernels import compiled
from belated.learner.state import blank, blank_bets
from belated.tunings import AdaptiveExp3, Simple, Tsallis, Tuning, proper_patience
from belated.verdicts import blocks
from belated.verdicts.mixture import LOG_WEIGHTS, RATES, STEEPEST

MOST_BLOCKS = 4096
KEEP = False  # late feedback is used
EAGER, LEAST, LEARNED, A_FEW = blocks.EAGER, blocks.LEAST, blocks.LEARNED, blocks.A_FEW
BLOCK = np.dtype([("centre", "f8"), ("known", "i8"), ("counted", "i8"), ("is_paused", "i8")])
FIRST, SECOND, THIRD, BOUND, TRUTH = range(5)  # the sums of a pair or of one side of a mean


class Found(NamedTuple):
    """What somebody who always looks has seen."""

    named: int  # the first report after which a best arm was named, 0 if none was
    winner: int  # that arm
    missed_differences: int  # 1 if the interval of a difference was ever wrong
    missed_means: int
    plain: int  # 1 if the intervals of plain averages ever named a best arm
    n_blocks: int


class Game(NamedTuple):
    """What happened, and what was found."""

    found: Found
    arms: Integers
    probabilities: Floats
    distributions: Floats
    reports: Integers  # rounds in the order of their reports, after each round. -1 ends those of a round
    pairs: Floats  # by i, j: the sums of "i is better than j"


@compiled
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


@compiled
def _change(sums: Floats, term: float, sign: float) -> None:
    sums[FIRST] += sign * term
    sums[SECOND] += sign * term**2
    sums[THIRD] += sign * term**3


@compiled
def _change_pairs(pairs: Floats, arm: int, weight: float, low: float, high: float, sign: float, r: Floats) -> None:
    """Add a decision whose outcome - centre is `low` when it speaks for its arm, and `high` when against it."""
    for other in range(r.shape[0]):
        if other != arm:
            share = r[other] / (r[arm] + r[other]) * weight
            _change(pairs[other, arm], share * low, sign)
            _change(pairs[arm, other], -share * high, sign)


@compiled
def _change_means(sides: Floats, low: float, high: float, sign: float) -> None:
    _change(sides[0], low, sign)
    _change(sides[1], -high, sign)


@compiled
def _widen(pairs: Floats, centre: float, r: Floats, x: Floats, means: Floats) -> None:
    """Note the bounds of a counted decision, and add the true differences."""
    furthest = max(centre, 1 - centre)
    for i in range(r.shape[0]):
        for j in range(r.shape[0]):
            if i != j:
                h = r[i] * r[j] / (r[i] + r[j])
                pairs[i, j, BOUND] = max(pairs[i, j, BOUND], h / min(x[i], x[j]) * furthest)
                pairs[i, j, TRUTH] += h * (means[j] - means[i])


@compiled
def _named(pairs: Floats, level: float) -> int:
    """The arm with enough evidence against every other, or -1."""
    k = pairs.shape[0]
    for i in range(k):
        is_best = True
        for j in range(k):
            if i != j and (pairs[i, j, FIRST] <= 0 or mixture(pairs[i, j], 0.0) < level):
                is_best = False
                break
        if is_best:
            return i
    return -1


@compiled
def _is_difference_missed(pairs: Floats, level: float) -> bool:
    for i in range(pairs.shape[0]):
        for j in range(pairs.shape[0]):
            if i != j and mixture(pairs[i, j], pairs[i, j, TRUTH]) > level:
                return True
    return False


@compiled
def _is_mean_missed(sides: Floats, level: float) -> bool:
    for i in range(sides.shape[0]):
        for side in range(2):
            if mixture(sides[i, side], sides[i, side, TRUTH]) > level:
                return True
    return False


@compiled
def _limit(sums: Floats, level: float) -> float:
    """By how much the first power exceeds what the level needs."""
    low, high = 0.0, 1e6
    for _ in range(45):
        middle = (low + high) / 2
        if mixture(sums, sums[FIRST] - middle) >= level:
            high = middle
        else:
            low = middle
    return float(sums[FIRST] - high)


@compiled
def _is_plain_named(sides: Floats, centres: Floats, counts: Floats, level: float) -> bool:
    """Whether the interval of one arm's plain average lies below that of every other."""
    k = sides.shape[0]
    lows, highs = np.zeros(k), np.ones(k)
    for i in range(k):
        if counts[i] > 0:
            lows[i] = (_limit(sides[i, 0], level) + centres[i]) / counts[i]
            highs[i] = (centres[i] - _limit(sides[i, 1], level)) / counts[i]
    best = np.argmin(highs)
    lows[best] = np.inf
    return bool(lows.min() > highs[best])


class Kept(NamedTuple):
    """All that is kept of a game, in arrays."""

    stages: Any
    reference: Floats  # by block
    centres: Floats  # by block: the means of the arms
    stage_of: Integers  # by round
    is_counted: Integers
    arms: Integers
    chances: Floats
    known: Floats  # by arm
    totals: Floats
    drawn: Floats
    shifts: Floats  # the sums of centres
    sides: Floats  # by arm: the two sides of its mean
    pairs: Floats
    levels: Floats  # of a mean, and of a pair


@compiled
def _begin_block(kept: Kept, at: int, x: Floats) -> None:
    stage, told = kept.stages[at], kept.known.sum()
    stage.centre = (0.5 + kept.totals.sum()) / (1 + told)
    stage.known = told
    kept.reference[at] = x
    kept.centres[at] = (0.5 + kept.totals) / (1 + kept.known)
    for i in range(x.shape[0]):
        m = kept.centres[at, i]
        kept.sides[i, :, BOUND] = max(kept.sides[i, 0, BOUND], m, 1 - m)


@compiled
def _next_block(kept: Kept, at: int, x: Floats, allowed: float, piece: float) -> int:
    """The block of the next decision, which has at most `piece` decisions."""
    lowest, highest = np.inf, 0.0
    for i in range(x.shape[0] if at >= 0 else 0):
        lowest, highest = min(lowest, x[i] / kept.reference[at, i]), max(highest, x[i] / kept.reference[at, i])
    share, stage = (at + 2) / allowed, kept.stages[at]
    least = max(LEAST, EAGER ** (1 / (1 - share))) if share < 1 else 0.0
    is_due = stage.is_paused > 0 or lowest < least or highest * least**2 > 1
    is_due = is_due or kept.known.sum() >= LEARNED * stage.known + A_FEW or stage.counted >= piece
    if at < 0 or (is_due and share < 1):
        _begin_block(kept, at + 1, x)
        return at + 1
    if lowest < LEAST:
        stage.is_paused = 1
    return at


@compiled
def _enter(kept: Kept, t: int, at: int, x: Floats, means: Floats) -> None:
    arm, stage, r = kept.arms[t], kept.stages[at], kept.reference[at]
    kept.stage_of[t], kept.is_counted[t] = at, 1 - stage.is_paused
    if kept.is_counted[t]:
        stage.counted += 1
        _widen(kept.pairs, stage.centre, r, x, means)
        _change_pairs(kept.pairs, arm, r[arm] / kept.chances[t], -stage.centre, 1 - stage.centre, 1.0, r)
    m = kept.centres[at, arm]
    _change_means(kept.sides[arm], -m, 1 - m, 1.0)
    kept.drawn[arm] += 1
    kept.shifts[arm] += m
    kept.sides[arm, 0, TRUTH] += means[arm] - m
    kept.sides[arm, 1, TRUTH] += m - means[arm]


@compiled
def _take_report(kept: Kept, s: int, y: float) -> None:
    arm, at = kept.arms[s], kept.stage_of[s]
    if kept.is_counted[s]:
        weight, c, r = kept.reference[at, arm] / kept.chances[s], kept.stages[at].centre, kept.reference[at]
        _change_pairs(kept.pairs, arm, weight, -c, 1 - c, -1.0, r)
        _change_pairs(kept.pairs, arm, weight, y - c, y - c, 1.0, r)
    m = kept.centres[at, arm]
    _change_means(kept.sides[arm], -m, 1 - m, -1.0)
    _change_means(kept.sides[arm], y - m, y - m, 1.0)
    kept.known[arm] += 1
    kept.totals[arm] += y


@compiled
def _look(kept: Kept, found: Integers, told: int, every: Integers) -> None:
    """Note in `found`, which has the fields of Found, what is seen after so many reports."""
    if found[0] == 0:
        winner = _named(kept.pairs, kept.levels[1])
        if winner >= 0:
            found[0], found[1] = told, winner
    if every[0] > 0 and told % every[0] == 0:
        found[2] |= _is_difference_missed(kept.pairs, kept.levels[1])
        found[3] |= _is_mean_missed(kept.sides, kept.levels[0])
    if every[1] > 0 and told % every[1] == 0:
        found[4] |= _is_plain_named(kept.sides, kept.shifts, kept.drawn, kept.levels[0])


@compiled
def _play(
    learner: Any,
    patience: float,
    slopes: Floats,
    allowed: Floats,
    uniforms: Floats,
    losses: Floats,
    delays: Integers,
    means: Floats,
    every: Integers,
    kept: Kept,
    xs: Floats,
    reports: Integers,
    found: Integers,
) -> None:
    clocks, ledger, policies, bets, cdf = learner
    n = losses.shape[0]
    first, following = np.full(n + 1, -1, np.int64), np.full(n, -1, np.int64)
    at, told = -1, 0
    for t in range(n):
        backlog = clocks[0].backlog + clocks[0].counted - clocks[0].late_counted
        alpha, beta = slopes[0] * math.sqrt(t + 1), math.sqrt(slopes[1] * (t + 1) + slopes[2] * backlog)
        drawn = kernels.solve_and_decide(clocks, ledger, policies, cdf, patience, uniforms[t], alpha, beta, 1)
        kept.arms[t], kept.chances[t] = drawn[1], drawn[2]
        xs[t] = policies[clocks[0].shadow.played, kernels.X]
        at = _next_block(kept, at, xs[t], allowed[0, t], allowed[1, t])
        _enter(kept, t, at, xs[t], means[t])
        due = min(n, t + delays[t, kept.arms[t]])
        following[t] = first[due]
        first[due] = t
        s = first[t]
        while s >= 0:
            y = losses[s, kept.arms[s]]
            kernels.report(clocks, ledger, policies, bets, KEEP, s + 1, y)
            _take_report(kept, s, y)
            reports[told + t] = s
            told += 1
            _look(kept, found, told, every)
            s = following[s]
    found[5] = at + 1


def slopes_of(tuning: Tuning, k: int) -> Floats:
    """a, b and c of alpha = a sqrt(t), beta = sqrt(b t + c D), checked against the tuning."""
    log_k, scale = math.log(k), float(getattr(tuning, "scale", 1.0))
    slopes = [1.0, 0.0, scale**2 / log_k]
    if isinstance(tuning, Simple):
        slopes[2] *= 2
    elif isinstance(tuning, Tsallis):
        slopes[2] = 0.0
    elif isinstance(tuning, AdaptiveExp3):
        slopes = [0.0, scale**2 * k / log_k, 2 * scale**2 / log_k]
    wanted = tuning.rates(k, 7, 3, 11)
    given = slopes[0] * math.sqrt(7), math.sqrt(7 * slopes[1] + 11 * slopes[2])
    if not np.allclose(wanted, given):
        raise ValueError(f"the rates of {tuning!r} have another form")
    return np.array(slopes)


def play(
    tuning: Tuning,
    losses: Floats,
    delays: Integers,
    means: Floats,
    seed: int,
    *,
    alpha: float = 0.05,
    every: int = 0,
    every_plain: int = 0,
) -> Game:
    """Play a game. losses, delays and means have a row for each round and a column for each arm.

    Intervals are checked after every so many reports, and those of plain averages compared. A delay of n or more
    means never.
    """
    n, k = losses.shape
    clock, policies = blank(k, tuning)
    ledger, cdf = np.zeros(n + 1, kernels.LEDGER), np.empty(-(-k // kernels.BLOCK))
    kernels.accumulate(policies[int(clock["shadow"]["played"][0]), kernels.X], cdf)
    kept = _nothing(n, k, alpha)
    xs, reports, found = np.zeros((n, k)), np.full(2 * n, -1), np.zeros(6, np.int64)
    rules, uniforms = (slopes_of(tuning, k), _allowed(n, k)), np.asarray(np.random.default_rng(seed).random(n))
    learner, looks = (clock, ledger, policies, blank_bets(k), cdf), np.array([every, every_plain])
    _play(learner, proper_patience(tuning, k), *rules, uniforms, losses, delays, means, looks, kept, xs, reports, found)
    return Game(Found(*found.tolist()), kept.arms, kept.chances, xs, reports, kept.pairs)


@cache
def _allowed(n: int, k: int) -> Floats:
    """How many blocks there may be before each decision, and how many decisions each may have."""
    return np.array([[blocks.n_allowed(k, t) for t in range(n)], [blocks.piece(k, t) for t in range(n)]])


def _nothing(n: int, k: int, alpha: float) -> Kept:
    pairs, sides = np.zeros((k, k, 5)), np.zeros((k, 2, 5))
    pairs[:, :, BOUND], sides[:, :, BOUND] = 1e-3, 0.5
    by_block = np.zeros((MOST_BLOCKS, k)), np.zeros((MOST_BLOCKS, k))
    by_round = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64)
    by_arm = np.zeros(k), np.zeros(k), np.zeros(k), np.zeros(k)
    levels = np.log([2 / alpha, k / alpha])
    return Kept(np.zeros(MOST_BLOCKS, BLOCK), *by_block, *by_round, np.zeros(n), *by_arm, sides, pairs, levels)
