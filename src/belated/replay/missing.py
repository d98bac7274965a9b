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
from belated.replay.dependence import dependence
from belated.replay.waiting import quantiles

Mask = NDArray[np.bool_]
BLOCK = 50  # rows in a stratum, in order of time. Few, so that nothing drifts within one
MOST_KINDS = 50  # of outcomes. More distinct values are put into so many classes. With 10, unequal ones share one


class Comparison(NamedTuple):
    """One property of the arms, each against the others. The arrays have an entry for each arm."""

    n_rows: int
    p_value: float  # the chance of such a difference between like arms. NaN if there is too little to compare
    strength: Floats  # in standard deviations, or a cautious substitute for an arm with few rows
    effect: Floats  # of report_rates a ratio of rates, of delays the chance to come later than one of the others

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
    """The time within which 99 in 100 of the outcomes came, NaN if none did."""
    return quantiles((log.outcome_times - log.times)[came(log)]).all_but_one_in_a_hundred


def is_old(log: Log, wait: float) -> Mask:
    """Which rows were decided at least `wait` before the end of the log."""
    return np.asarray(end_of(log) - log.times >= wait)


def report_rates(log: Log, rows: Mask) -> Comparison:
    """How often the rows of each arm have an outcome. The effect is the rate over that of the others."""
    arms, reported = log.arms[rows], came(log)[rows].astype(float)
    strata = blocks(np.zeros(arms.size, np.int64))
    found = dependence(reported, arms, strata, log.n_arms)
    pairs = strata * log.n_arms + arms
    _, pair, counts = np.unique(pairs, return_inverse=True, return_counts=True)
    others = 1 - counts[pair] / np.bincount(strata)[strata]
    own = np.asarray(np.bincount(arms, reported * others, log.n_arms), np.float64)
    effect = _ratio(own, own - found.excess)  # of Mantel and Haenszel, sum of r_a n_o / n over sum of r_o n_a / n
    return Comparison(arms.size, found.p_value, found.strength, effect)


def delays(log: Log) -> Comparison:
    """How late the outcomes of each arm come. The effect is the chance to come later than an equal one of another."""
    rows = came(log)
    arms, strata = log.arms[rows], blocks(kinds_of(log.outcomes[rows]))
    waits = (log.outcome_times - log.times)[rows].astype(np.float32)  # equal waits differ by rounding
    ranks = midranks(waits.astype(float), strata) / np.bincount(strata)[strata]
    found = dependence(ranks, arms, strata, log.n_arms)
    return Comparison(arms.size, found.p_value, found.strength, 0.5 + _ratio(found.excess, found.weight))


def _ratio(numerator: Floats, denominator: Floats) -> Floats:
    """NaN or infinite where there is nothing to divide by."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(numerator / np.where(denominator > 1e-9, denominator, 0.0))


def kinds_of(outcomes: Floats) -> Integers:
    """Each outcome's class. A few distinct values are classes of their own, many are put into classes of equal size."""
    values, kinds = np.unique(outcomes, return_inverse=True)
    if values.size <= MOST_KINDS:
        return np.asarray(kinds, np.int64)
    limits = np.quantile(outcomes, np.arange(1, MOST_KINDS) / MOST_KINDS)
    return np.asarray(np.searchsorted(limits, outcomes, side="right"), np.int64)


def blocks(kinds: Integers) -> Integers:
    """Strata of at most BLOCK rows of one kind that follow each other."""
    order = np.argsort(kinds, kind="stable")
    ordered = kinds[order]
    place = np.arange(kinds.size) - np.searchsorted(ordered, ordered)
    strata = np.empty(kinds.size, np.int64)
    strata[order] = np.cumsum(place % BLOCK == 0) - 1
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
