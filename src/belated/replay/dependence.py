"""Tests whether a score depends on the group of its row. Only rows of the same stratum are compared.

If it does not, every order of a stratum's scores over its rows is equally likely. With y the scores of a stratum,
n its rows, n_a those of group a, and T_a the sum of the scores of group a,

    E[T_a] = n_a mean(y),  Cov[T_a, T_b] = s^2 (n_a [a = b] - n_a n_b / n),  s^2 = sum (y - mean(y))^2 / (n - 1)

Sums over all strata give U = T - E[T] and V. Then U' V^+ U has a chi-square distribution with rank(V) degrees of
freedom in the limit. For scores 0 and 1 the covariance is that of the hypergeometric distribution, and this is the test
of Mantel and Haenszel (1959), for several groups by Mantel (1963). For ranks it is the test of van Elteren (1960).

A small group is far from normal. For scores in [0, 1] Bernstein's inequality holds for it, also without replacement
(Hoeffding 1963, Theorem 4): P(|U_a| >= u) <= 2 exp(-z^2 / 2) with z^2 = u^2 / (W_a + u / 3), W_a the sum of s^2 n_a.
"""

import math
from typing import NamedTuple

import numpy as np

from belated.arrays import Floats, Integers

LEAST_VARIANCE = 5.0  # of T_a. With less, T_a is far from normal, and its group is a small one
MOST_GROUPS = 50  # the largest are tested one by one. The covariance of thousands would not fit into memory


class Dependence(NamedTuple):
    """The result of a test. The arrays have an entry for each group."""

    excess: Floats  # U_a
    variance: Floats  # V_aa
    strength: Floats  # U_a in standard deviations, or z of Bernstein's inequality for a small group
    weight: Floats  # sum of n_a (n - n_a) / n. U_a / weight is the mean difference from the other groups
    chi_square: float
    degrees: int
    p_value: float  # of the chi-square, or of the small groups if theirs is smaller. NaN if there is nothing to test
    p_values: Floats  # of each group alone, times the number of groups that can differ


class _Cells(NamedTuple):
    """The rows of a group in a stratum, for all pairs that occur."""

    stratum: Integers
    group: Integers
    rows: Integers


def dependence(scores: Floats, groups: Integers, strata: Integers, n_groups: int) -> Dependence:
    """Test whether the scores depend on the group within strata. Strata are numbered from 0 without gaps."""
    sizes = np.bincount(strata)
    centred = scores - (np.bincount(strata, scores) / sizes)[strata]
    spread = np.bincount(strata, centred**2) / np.maximum(sizes - 1, 1)  # s^2 of each stratum
    pairs, counts = np.unique(strata * n_groups + groups, return_counts=True)
    cells = _Cells(*np.divmod(pairs, n_groups), counts)
    mixed = cells.rows * (1 - cells.rows / sizes[cells.stratum])
    excess = np.asarray(np.bincount(groups, centred, n_groups), np.float64)
    variance = np.asarray(np.bincount(cells.group, spread[cells.stratum] * mixed, n_groups), np.float64)
    weight = np.asarray(np.bincount(cells.group, mixed, n_groups), np.float64)
    largest = np.argsort(-variance, kind="stable")[:MOST_GROUPS]
    tested = largest[variance[largest] >= LEAST_VARIANCE]
    bound = np.bincount(cells.group, spread[cells.stratum] * cells.rows, n_groups) + np.abs(excess) / 3
    strength = excess / np.sqrt(np.where(bound > 0, bound, 1.0))
    strength[tested] = excess[tested] / np.sqrt(variance[tested])
    chi_square, degrees = _chi_square(excess, tested, cells, spread, sizes)
    small = np.abs(np.delete(strength, tested)[np.delete(variance, tested) > 0])
    p_value = _p_value(chi_square, degrees, small)
    own = 2 * np.exp(-(strength**2) / 2)
    own[tested] = [math.erfc(abs(z) / math.sqrt(2)) for z in strength[tested].tolist()]
    p_values = np.minimum(1.0, own * (variance > 0).sum())
    p_values[variance <= 0] = 1.0
    return Dependence(excess, variance, strength, weight, chi_square, degrees, p_value, p_values)


def _p_value(chi_square: float, degrees: int, small: Floats) -> float:
    """The p-value of the chi-square and the small groups together. Each of them pays for the number of tests."""
    normal = chi_square_tail(chi_square, degrees) if degrees else math.nan
    if not small.size:
        return normal
    bernstein = 2 * math.exp(-(float(small.max()) ** 2) / 2) * small.size
    return min(1.0, 2 * min(bernstein, normal)) if degrees else min(1.0, bernstein)


def _chi_square(excess: Floats, tested: Integers, cells: _Cells, spread: Floats, sizes: Integers) -> tuple[float, int]:
    """U' V^+ U and the rank of V. All other groups are taken together as one more."""
    label = np.full(excess.size, tested.size)
    label[tested] = np.arange(tested.size)
    counts = np.zeros((sizes.size, tested.size + 1))
    np.add.at(counts, (cells.stratum, label[cells.group]), cells.rows)
    covariance = np.diag(spread @ counts) - counts.T @ (counts * (spread / sizes)[:, None])
    together = np.bincount(label, excess, tested.size + 1)
    values, vectors = np.linalg.eigh(covariance)
    is_large = values >= LEAST_VARIANCE  # others are 0 up to rounding, or belong to small groups
    along = vectors.T @ together
    return float((along[is_large] ** 2 / values[is_large]).sum()), int(is_large.sum())


def chi_square_tail(x: float, degrees: int) -> float:
    """The probability that a chi-square variable exceeds x, as a finite sum (Abramowitz & Stegun 26.4.4 and 26.4.5).

    >>> round(chi_square_tail(3.841, 1), 4), round(chi_square_tail(13.816, 2), 4)
    (0.05, 0.001)
    """
    if x <= 0:
        return 1.0
    is_odd, half = degrees % 2, x / 2
    powers = [is_odd / 2 + number for number in range(degrees // 2)]
    terms = [math.exp(power * math.log(half) - half - math.lgamma(power + 1)) for power in powers]
    return min(1.0, (math.erfc(math.sqrt(half)) if is_odd else 0.0) + math.fsum(terms))
