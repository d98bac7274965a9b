"""The stratified test of dependence, compared with all permutations, closed forms and exact tails."""

import itertools
import math

import mpmath
import numpy as np
import pytest

from belated.arrays import Floats, Integers
from belated.replay import dependence as module
from belated.replay.dependence import chi_square_tail, dependence


def sums_of_all_orders(scores: Floats, groups: Integers, strata: Integers, n_groups: int) -> Floats:
    """T of every order of the scores within their strata."""
    parts = [np.flatnonzero(strata == stratum) for stratum in range(strata.max() + 1)]
    sums = []
    for orders in itertools.product(*(itertools.permutations(part) for part in parts)):
        shuffled = np.empty(scores.size)
        for part, order in zip(parts, orders, strict=True):
            shuffled[part] = scores[list(order)]
        sums.append(np.bincount(groups, shuffled, n_groups))
    return np.array(sums)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("is_binary", [True, False])
def test_the_moments_are_those_of_all_orders(seed: int, is_binary: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LEAST_VARIANCE", 1e-9)
    generator = np.random.default_rng(seed)
    strata = np.array([0, 0, 0, 0, 1, 1, 1, 2, 2, 3])
    groups = generator.integers(0, 3, 10)
    scores = generator.integers(0, 2, 10).astype(float) if is_binary else generator.random(10)
    sums = sums_of_all_orders(scores, groups, strata, 3)
    found = dependence(scores, groups, strata, 3)
    observed = np.bincount(groups, scores, 3)
    np.testing.assert_allclose(found.excess, observed - sums.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(found.variance, sums.var(axis=0), atol=1e-12)
    covariance = np.cov(sums.T, bias=True)
    expected = found.excess @ np.linalg.pinv(covariance, rcond=1e-9, hermitian=True) @ found.excess
    assert found.chi_square == pytest.approx(expected, abs=1e-9)
    assert found.degrees == np.linalg.matrix_rank(covariance, tol=1e-9, hermitian=True)


def test_two_groups_in_one_stratum_are_the_known_formula() -> None:
    a, b, c, d = 30, 70, 10, 90  # of each group, with score 1 and with score 0
    scores = np.repeat([1.0, 0.0, 1.0, 0.0], [a, b, c, d])
    groups = np.repeat([0, 0, 1, 1], [a, b, c, d])
    found = dependence(scores, groups, np.zeros(200, np.int64), 2)
    assert found.chi_square == pytest.approx(199 * (a * d - b * c) ** 2 / (100 * 100 * 40 * 160))
    assert found.degrees == 1
    assert found.excess / found.weight == pytest.approx([0.2, -0.2])  # the difference of the shares
    assert found.p_value == pytest.approx(math.erfc(math.sqrt(found.chi_square / 2)))


def test_ranks_in_one_stratum_are_kruskal_and_wallis() -> None:
    generator = np.random.default_rng(1)
    ranks, groups = generator.permutation(np.arange(1.0, 301.0)), generator.integers(0, 4, 300)
    found = dependence(ranks, groups, np.zeros(300, np.int64), 4)
    sums, counts = np.bincount(groups, ranks), np.bincount(groups)
    assert found.chi_square == pytest.approx(12 / (300 * 301) * (sums**2 / counts).sum() - 3 * 301)
    assert found.degrees == 3


@pytest.mark.parametrize("seed", range(4))
def test_the_p_value_is_that_of_random_orders(seed: int) -> None:
    generator = np.random.default_rng(seed)
    strata, groups = np.repeat(np.arange(8), 50), generator.integers(0, 3, 400)
    scores = (generator.random(400) < 0.3 + 0.05 * groups + 0.05 * strata).astype(float)
    found, n_orders = dependence(scores, groups, strata, 3), 1500
    larger = 0
    for _ in range(n_orders):
        shuffled = generator.permuted(scores.reshape(8, 50), axis=1).ravel()
        larger += dependence(shuffled, groups, strata, 3).chi_square >= found.chi_square - 1e-9
    share = larger / n_orders
    assert found.p_value == pytest.approx(share, abs=0.015 + 3 * math.sqrt(share * (1 - share) / n_orders))


def test_only_rows_of_a_stratum_are_compared() -> None:
    """Both the share of group 1 and the score rise with the stratum, but not within one."""
    generator = np.random.default_rng(2)
    strata = np.repeat(np.arange(40), 50)
    groups = (generator.random(2000) < 0.1 + strata / 50).astype(np.int64)
    scores = (generator.random(2000) < 0.05 + strata / 45).astype(float)
    assert dependence(scores, groups, strata, 2).p_value > 0.01
    assert dependence(scores, groups, np.zeros(2000, np.int64), 2).p_value < 1e-20


def test_small_groups_count_together_and_alone() -> None:
    """A group of three rows, two of them blank, is no proof. Forty such groups are, or one of thirty blanks."""
    generator = np.random.default_rng(3)
    large = (generator.random(3000) < 0.02).astype(float)

    def tried(n_small: int, small: list[float]) -> float:
        groups = np.append(np.arange(3000) % 2, np.repeat(np.arange(n_small) + 2, len(small)))
        scores = np.append(large, np.tile(small, n_small))
        strata = generator.permutation(scores.size) // 50
        return dependence(scores, groups, strata, n_small + 2).p_value

    assert tried(1, [1, 1, 0]) > 0.001
    assert tried(40, [1, 1, 0]) < 1e-9
    assert tried(1, [1] * 30) < 1e-4


@pytest.mark.parametrize(("seed", "rate"), [(1, 0.5), (2, 0.1), (3, 0.9)])
def test_the_inequality_for_small_groups_holds(seed: int, rate: float) -> None:
    """A bound is never too small. All orders of 12 scores show how often |U| is at least as large."""
    generator = np.random.default_rng(seed)
    scores = (generator.random(12) < rate).astype(float)
    scores[0] = 1 - scores[1]  # not all equal
    groups, strata = np.repeat([0, 1, 2], 4), np.zeros(12, np.int64)
    subsets = np.array([scores[list(chosen)].sum() for chosen in itertools.combinations(range(12), 4)])
    for _ in range(20):
        found = dependence(generator.permutation(scores), groups, strata, 3)
        assert found.degrees == 0
        for excess, strength in zip(found.excess, found.strength, strict=True):
            share = (np.abs(subsets - subsets.mean()) >= abs(excess) - 1e-12).mean()
            assert share <= 2 * math.exp(-(strength**2) / 2)


def test_a_hundred_thousand_groups_fit_into_memory() -> None:
    groups = np.arange(100_000)
    found = dependence((groups % 3 == 0).astype(float), groups, groups // 50, 100_000)
    assert found.degrees == 0  # one row says nothing about a group


def test_of_many_large_groups_the_largest_are_tested() -> None:
    """The others are taken together. So the degrees of freedom are 50 and not 59."""
    generator = np.random.default_rng(5)
    groups, strata = generator.integers(0, 60, 6000), np.repeat(np.arange(120), 50)
    found = dependence((generator.random(6000) < 0.4).astype(float), groups, strata, 60)
    assert (found.variance >= module.LEAST_VARIANCE).sum() > module.MOST_GROUPS
    assert found.degrees == 50


def test_each_group_alone_pays_for_the_number_of_groups() -> None:
    generator = np.random.default_rng(6)
    groups, strata = generator.integers(0, 4, 4000), np.repeat(np.arange(80), 50)
    groups[:3] = 4
    found = dependence((generator.random(4000) < 0.3 + 0.03 * (groups == 1)).astype(float), groups, strata, 6)
    for group in range(4):
        assert found.p_values[group] == pytest.approx(min(1, 5 * math.erfc(abs(found.strength[group]) / math.sqrt(2))))
    assert found.p_values[4] == pytest.approx(min(1, 10 * math.exp(-(found.strength[4] ** 2) / 2)))
    assert found.p_values[5] == 1


@pytest.mark.parametrize("scores", [np.zeros(100), np.ones(100), np.empty(0)])
def test_nothing_to_test(scores: Floats) -> None:
    found = dependence(scores, np.arange(scores.size) % 2, np.zeros(scores.size, np.int64), 2)
    assert math.isnan(found.p_value)
    assert (found.chi_square, found.degrees) == (0, 0)


def test_groups_that_never_meet_are_not_compared() -> None:
    groups = np.repeat([0, 1], 500)
    scores = np.append(np.arange(500) % 2, np.zeros(500)).astype(float)
    assert math.isnan(dependence(scores, groups, groups, 2).p_value)


@pytest.mark.parametrize("degrees", [1, 2, 3, 4, 7, 10, 49, 50])
@pytest.mark.parametrize("x", [0.0, 1e-6, 0.3, 2.0, 17.5, 80.0, 900.0])
def test_the_tail_is_the_incomplete_gamma_function(x: float, degrees: int) -> None:
    exact = mpmath.gammainc(mpmath.mpf(degrees) / 2, mpmath.mpf(x) / 2, regularized=True)
    assert chi_square_tail(x, degrees) == pytest.approx(float(exact), rel=1e-9, abs=1e-300)
