"""Whole games of a learner with a look after every report, compiled. Delays may depend on the arm and the outcome.

A look says what the service's page would say then. The sums are kept in another way than in the library
(watched_pairs.py), and tests compare the two.
"""

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from belated import kernels
from belated.arrays import Floats, Integers
from belated.learner.state import blank, blank_bets
from belated.proper import proper_patience
from belated.tunings import AdaptiveExp3, Exp3, Simple, Tsallis, Tuning
from belated.verdicts import blocks
from tests.support.watched_pairs import (
    BOUND,
    FIRST,
    TRUTH,
    blank_pairs,
    change,
    change_pairs,
    is_best,
    is_difference_missed,
    leader,
    mixture,
    watched,
    widen,
)

KEEP = False  # late feedback is used
EAGER, LEAST, LEARNED, A_FEW = blocks.EAGER, blocks.LEAST, blocks.LEARNED, blocks.A_FEW
BLOCK = np.dtype([("centre", "f8"), ("known", "i8"), ("counted", "i8"), ("is_paused", "i8"), ("open", "i8")])


class Found(NamedTuple):
    """What somebody who always looks has seen."""

    named: int  # the first report after which a best arm was named, 0 if none was
    winner: int  # that arm
    missed_differences: int  # 1 if the interval of a difference was ever wrong
    missed_means: int
    plain: int  # 1 if the intervals of plain averages ever named a best arm
    n_blocks: int
    leader: int  # at the end


class Game(NamedTuple):
    """What happened, and what was found."""

    found: Found
    arms: Integers
    probabilities: Floats
    distributions: Floats
    reports: Integers  # rounds in the order of their reports, after each round. -1 ends those of a round
    pairs: Floats  # by i, j and block: the sums of "i is better than j"


@watched
def _change_means(sides: Floats, low: float, high: float, sign: float) -> None:
    change(sides[0], low, sign)
    change(sides[1], -high, sign)


@watched
def _is_mean_missed(sides: Floats, level: float) -> bool:
    for i in range(sides.shape[0]):
        for side in range(2):
            if mixture(sides[i, side], sides[i, side, TRUTH]) > level:
                return True
    return False


@watched
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


@watched
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


@watched
def _begin_block(kept: Kept, at: int, x: Floats) -> None:
    stage, told = kept.stages[at], kept.known.sum()
    stage.centre = (0.5 + kept.totals.sum()) / (1 + told)
    stage.known = told
    kept.reference[at] = x
    kept.centres[at] = (0.5 + kept.totals) / (1 + kept.known)
    for i in range(x.shape[0]):
        m = kept.centres[at, i]
        kept.sides[i, :, BOUND] = max(kept.sides[i, 0, BOUND], m, 1 - m)


@watched
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


@watched
def _enter(kept: Kept, t: int, at: int, x: Floats, means: Floats) -> None:
    arm, stage, r = kept.arms[t], kept.stages[at], kept.reference[at]
    kept.stage_of[t], kept.is_counted[t] = at, 1 - stage.is_paused
    stage.open += 1
    if kept.is_counted[t]:
        stage.counted += 1
        widen(kept.pairs, at, stage.centre, r, x, means)
        change_pairs(kept.pairs, at, arm, r[arm] / kept.chances[t], -stage.centre, 1 - stage.centre, 1.0, r)
    m = kept.centres[at, arm]
    _change_means(kept.sides[arm], -m, 1 - m, 1.0)
    kept.drawn[arm] += 1
    kept.shifts[arm] += m
    kept.sides[arm, 0, TRUTH] += means[arm] - m
    kept.sides[arm, 1, TRUTH] += m - means[arm]


@watched
def _take_report(kept: Kept, s: int, y: float) -> None:
    arm, at = kept.arms[s], kept.stage_of[s]
    kept.stages[at].open -= 1
    if kept.is_counted[s]:
        weight, c, r = kept.reference[at, arm] / kept.chances[s], kept.stages[at].centre, kept.reference[at]
        change_pairs(kept.pairs, at, arm, weight, -c, 1 - c, -1.0, r)
        change_pairs(kept.pairs, at, arm, weight, y - c, y - c, 1.0, r)
    m = kept.centres[at, arm]
    _change_means(kept.sides[arm], -m, 1 - m, -1.0)
    _change_means(kept.sides[arm], y - m, y - m, 1.0)
    kept.known[arm] += 1
    kept.totals[arm] += y


@watched
def _look(kept: Kept, n_blocks: int, found: Integers, told: int, every: Integers) -> None:
    """Note in `found`, which has the fields of Found, what is seen after so many reports."""
    if found[0] == 0:
        first = leader(kept.pairs, kept.stages, n_blocks, kept.known, kept.totals)
        if is_best(kept.pairs, n_blocks, first, kept.levels[1]):
            found[0], found[1] = told, first
    if every[0] > 0 and told % every[0] == 0:
        found[2] |= is_difference_missed(kept.pairs, n_blocks, kept.levels[1])
        found[3] |= _is_mean_missed(kept.sides, kept.levels[0])
    if every[1] > 0 and told % every[1] == 0:
        found[4] |= _is_plain_named(kept.sides, kept.shifts, kept.drawn, kept.levels[0])


@watched
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
        alpha, beta = slopes[0] * math.sqrt(t + 1), math.sqrt(slopes[1] * (t + 1) + slopes[2] * backlog + slopes[3])
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
            _look(kept, at + 1, found, told, every)
            s = following[s]
    found[5], found[6] = at + 1, leader(kept.pairs, kept.stages, at + 1, kept.known, kept.totals)


def slopes_of(tuning: Tuning, k: int) -> Floats:
    """a, b, c and d of alpha = a sqrt(t), beta = sqrt(b t + c D + d), checked against the tuning."""
    log_k, scale = math.log(k), float(getattr(tuning, "scale", 1.0))
    slopes = [1.0, 0.0, scale**2 / log_k, 0.0]
    if isinstance(tuning, Simple):
        slopes[2] *= 2
    elif isinstance(tuning, Tsallis):
        slopes[2] = 0.0
    elif isinstance(tuning, AdaptiveExp3):
        slopes = [0.0, scale**2 * k / log_k, 2 * scale**2 / log_k, 0.0]
    elif isinstance(tuning, Exp3):
        slopes = [0.0, 0.0, 0.0, 1 / tuning.eta**2]
    wanted = tuning.rates(k, 7, 3, 11)
    given = slopes[0] * math.sqrt(7), math.sqrt(7 * slopes[1] + 11 * slopes[2] + slopes[3])
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
    xs, reports, found = np.zeros((n, k)), np.full(2 * n, -1), np.zeros(7, np.int64)
    rules, uniforms = (slopes_of(tuning, k), _allowed(n, k)), np.asarray(np.random.default_rng(seed).random(n))
    learner, looks = (clock, ledger, policies, blank_bets(k), cdf), np.array([every, every_plain])
    _play(learner, proper_patience(tuning, k), *rules, uniforms, losses, delays, means, looks, kept, xs, reports, found)
    return Game(Found(*found.tolist()), kept.arms, kept.chances, xs, reports, kept.pairs)


@cache
def _allowed(n: int, k: int) -> Floats:
    """How many blocks there may be before each decision, and how many decisions each may have."""
    return np.array([[blocks.n_allowed(k, t) for t in range(n)], [blocks.piece(k, t) for t in range(n)]])


def _nothing(n: int, k: int, alpha: float) -> Kept:
    sides, room = np.zeros((k, 2, 5)), math.ceil(blocks.n_allowed(k, n)) + 1
    sides[:, :, BOUND] = 0.5
    by_block = np.zeros((room, k)), np.zeros((room, k))
    by_round = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64)
    by_arm = np.zeros(k), np.zeros(k), np.zeros(k), np.zeros(k)
    levels, pairs = np.log([2 / alpha, k / alpha]), blank_pairs(k, room)
    return Kept(np.zeros(room, BLOCK), *by_block, *by_round, np.zeros(n), *by_arm, sides, pairs, levels)
