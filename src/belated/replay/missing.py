"""Compares the arms of a log. Is an outcome of one arm missing more often, or later, than one of the others?

Like is compared with like. Rows are compared only with rows decided at about the same time, because young rows lack
their outcome more often and the arms' shares change. Delays are compared only between equal outcomes. Otherwise an arm
with more quick successes would seem to report sooner.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from belated.arrays import Floats, Integers
from belated.replay.decision_log import Log
from belated.replay.dependence import Dependence, dependence
from belated.replay.waiting import quantiles

Mask = NDArray[np.bool_]
BLOCK = 50  # rows in a stratum, in order of time. Few, so that nothing drifts within one
LEAST_BLOCK = 4  # for delays, whose strata must be alike in time and in outcome
PERIODS = 20  # blocks of each class of outcomes, if there are rows enough
LEAST_KINDS, MOST_KINDS = 10, 50  # classes of outcomes if there are many distinct values
ENOUGH_OUTCOMES = 20  # of an arm. With fewer, its waits say little
LATE = 0.01  # of the outcomes come after the usual wait
SEED = 1  # of the order of rows with equal times


class Comparison(NamedTuple):
    """One property of the arms, each against the others. The arrays have an entry for each arm."""

    n_rows: int
    p_value: float  # the chance of such a difference between like arms. NaN if there is too little to compare
    strength: Floats  # in standard deviations, or a cautious substitute for an arm with few rows
    effect: Floats  # of report_rates a ratio of rates, of delays the chance to come later than one of the others
    p_values: Floats  # of each arm alone, corrected for the number of arms
    weight: Floats  # sum of n_a (n - n_a) / n over the strata, 0 for an arm that is never beside another
    n_came: Integers  # outcomes

    @property
    def strongest(self) -> int:
        """The arm that differs most clearly from the others."""
        return int(np.abs(self.strength).argmax())


def came(log: Log) -> Mask:
    """Which rows have an outcome."""
    return np.isfinite(log.outcomes)


def end_of(log: Log) -> float:
    """The last time the log knows of."""
    return float(max(log.times[-1], log.outcome_times[came(log)].max(initial=-math.inf)))


def usual_wait(log: Log) -> float:
    """The time within which 99 in 100 of the outcomes came, also those of each slower arm. NaN if none did.

    An arm is slower if, beyond chance, more of its outcomes come after the time that holds for all. Chernoff's
    inequality bounds chance. If arms are many, the largest of all their own times would be that of the latest outcome.
    """
    rows = came(log)
    waits, arms = (log.outcome_times - log.times)[rows], log.arms[rows]
    usual = quantiles(waits).all_but_one_in_a_hundred
    counts = np.bincount(arms, minlength=log.n_arms)
    shares = np.bincount(arms, waits > usual, log.n_arms) / np.maximum(counts, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        on_time = np.where(shares < 1, (1 - shares) * np.log((1 - shares) / (1 - LATE)), 0.0)
        late = np.where(shares > 0, shares * np.log(shares / LATE), 0.0)
    is_slower = (shares > LATE) & (counts >= ENOUGH_OUTCOMES)
    is_slower &= counts * (late + on_time) > math.log(1000 * log.n_arms)  # 1 in 1,000 logs whose arms are alike
    own = [quantiles(waits[arms == arm]).all_but_one_in_a_hundred for arm in np.flatnonzero(is_slower).tolist()]
    return max([usual, *own])


def is_old(log: Log, wait: float) -> Mask:
    """Which rows were decided at least `wait` before the end of the log."""
    return np.asarray(end_of(log) - log.times >= wait)


def within_wait(log: Log) -> Mask:
    """Which rows may still be within their wait, if the log says that some are. Their outcomes are not final.

    It does not matter whether such a row has an outcome. Those that come first may be the good ones.
    """
    if log.is_open is None or log.expires is None or not (log.is_open & np.isfinite(log.expires)).any():
        return np.zeros(log.times.size, np.bool_)
    return np.asarray((log.expires > end_of(log)) & np.isfinite(log.expires))


def report_rates(log: Log, rows: Mask) -> Comparison:
    """How often the rows of each arm have an outcome. The effect is the rate over that of the others."""
    arms, reported = log.arms[rows], came(log)[rows].astype(float)
    strata = blocks(np.zeros(arms.size, np.int64), log.times[rows], BLOCK)
    found = dependence(reported, arms, strata, log.n_arms)
    pairs = strata * log.n_arms + arms
    _, pair, counts = np.unique(pairs, return_inverse=True, return_counts=True)
    others = 1 - counts[pair] / np.bincount(strata)[strata]
    own = np.asarray(np.bincount(arms, reported * others, log.n_arms), np.float64)
    effect = _ratio(own, own - found.excess)  # of Mantel and Haenszel, sum of r_a n_o / n over sum of r_o n_a / n
    return _comparison(found, arms[reported > 0], arms.size, effect)


def delays(log: Log) -> Comparison:
    """How late the outcomes of each arm come. The effect is the chance to come later than an equal one of another."""
    rows = came(log)
    arms, kinds = log.arms[rows], kinds_of(log.outcomes[rows])
    size = arms.size // (PERIODS * max(np.unique(kinds).size, 1))
    strata = blocks(kinds, log.times[rows], min(max(size, LEAST_BLOCK), BLOCK))
    waits = (log.outcome_times - log.times)[rows].astype(np.float32)  # equal waits differ by rounding
    ranks = midranks(waits.astype(float), strata) / np.bincount(strata)[strata]
    found = dependence(ranks, arms, strata, log.n_arms)
    return _comparison(found, arms, arms.size, 0.5 + _ratio(found.excess, found.weight))


def _comparison(found: Dependence, reporting: Integers, n_rows: int, effect: Floats) -> Comparison:
    n_came = np.asarray(np.bincount(reporting, minlength=effect.size), np.int64)
    return Comparison(n_rows, found.p_value, found.strength, effect, found.p_values, found.weight, n_came)


def _ratio(numerator: Floats, denominator: Floats) -> Floats:
    """NaN or infinite where there is nothing to divide by."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(numerator / np.where(denominator > 1e-9, denominator, 0.0))


def kinds_of(outcomes: Floats) -> Integers:
    """Each outcome's class. A few distinct values are classes of their own, many are put into classes of like size.

    A small log has twice as many classes as blocks in each. So the rows of a block are alike in outcome and in time.
    """
    values, kinds, counts = np.unique(outcomes, return_inverse=True, return_counts=True)
    n_kinds = min(max(math.isqrt(2 * outcomes.size // LEAST_BLOCK), LEAST_KINDS), MOST_KINDS)
    if values.size <= n_kinds:
        return np.asarray(kinds, np.int64)
    middles = np.cumsum(counts) - counts / 2  # so a frequent value shares its class with hardly any other
    return np.asarray((middles * n_kinds / outcomes.size).astype(np.int64)[kinds], np.int64)


def blocks(kinds: Integers, times: Floats, size: int) -> Integers:
    """Strata of at most `size` rows of one kind that follow each other in time.

    Rows with equal times are taken in random order. The file may have sorted them by arm.
    """
    order = np.lexsort((np.random.default_rng(SEED).permutation(kinds.size), times, kinds))
    ordered = kinds[order]
    place = np.arange(kinds.size) - np.searchsorted(ordered, ordered)
    strata = np.empty(kinds.size, np.int64)
    strata[order] = np.cumsum(place % size == 0) - 1
    return strata


def midranks(values: Floats, strata: Integers) -> Floats:
    """The rank of each value in its stratum, from 1. Equal values share the mean of their ranks."""
    order = np.lexsort((values, strata))
    stratum, value = strata[order], values[order]
    is_new = np.concatenate([[True], (np.diff(stratum) != 0) | (np.diff(value) != 0)])[: order.size]
    tie = np.cumsum(is_new) - 1
    places = np.bincount(tie, np.arange(order.size)) / np.bincount(tie)
    ranks = np.empty(order.size)
    ranks[order] = places[tie] - np.searchsorted(stratum, stratum) + 1
    return ranks
