"""The theorems as functions, against brute force and closed forms."""

import itertools
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from belated import bounds, lab
from belated.errors import InvalidInput
from belated.tunings import Advanced, Simple, outstanding_counts, schedule

SHORT = st.lists(st.integers(0, 9), min_size=1, max_size=9)


def test_theorem_1() -> None:
    assert bounds.theorem_1(4, [0] * 25) == 4 * 10
    assert bounds.theorem_1(4, [1, 1, 0]) == pytest.approx(4 * math.sqrt(12) + math.sqrt(8 * 2 * math.log(4)))
    assert bounds.theorem_1(4, [99, 99, 99]) == bounds.theorem_1(4, [2, 1, 0])  # nothing arrives after the game


@settings(max_examples=100, deadline=None)
@given(st.integers(2, 50), SHORT)
def test_best_skipping_is_the_minimum_over_all_sets(k: int, delays: list[int]) -> None:
    waits = bounds.clip(delays)
    every_set = itertools.chain.from_iterable(itertools.combinations(waits, r) for r in range(len(waits) + 1))
    brute = min(len(waits) - len(kept) + math.sqrt(sum(kept) * math.log(k)) for kept in every_set)
    best = bounds.best_skipping(k, delays)
    assert best.value == pytest.approx(brute, abs=1e-12)
    rest = np.sort(waits)[: len(waits) - best.rounds].sum()
    assert best.value == pytest.approx(best.rounds + math.sqrt(rest * math.log(k)))


def test_theorem_2_takes_the_larger_of_its_two_terms() -> None:
    assert bounds.theorem_2(9, [0, 0, 0, 0]) == pytest.approx(4 * 6 + 20 * math.log(9))
    m = bounds.best_skipping(3, [500] * 1000).value
    assert bounds.theorem_2(3, [500] * 1000) == pytest.approx(4 * math.sqrt(3000) + 10 * m)
    assert bounds.theorem_2_sharp(3, [500] * 1000) == pytest.approx(4 * math.sqrt(3000) + 3 * m + 3 * math.log(3))


@settings(max_examples=100, deadline=None)
@given(st.integers(2, 50), SHORT, st.data())
def test_theorem_3_by_its_definition(k: int, delays: list[int], data: st.DataObject) -> None:
    n, beta = len(delays), schedule(Simple(), k, delays).beta
    skipped = data.draw(st.sets(st.integers(1, n)))
    total = 4 * math.sqrt(k * n) + beta[-1] * math.log(k) + len(skipped)
    for t in set(range(1, n + 1)) - skipped:
        missing = [s for s in range(1, t) if s + delays[s - 1] >= t and s not in skipped]
        total += len(missing) / beta[t - 1] if missing else 0.0
    assert bounds.theorem_3(k, delays, beta, skipped) == pytest.approx(total)


@settings(max_examples=100, deadline=None)
@given(st.integers(2, 50), SHORT)
def test_theorem_1_is_theorem_3_with_the_simple_rule(k: int, delays: list[int]) -> None:
    assert bounds.theorem_3(k, delays, schedule(Simple(), k, delays).beta) <= bounds.theorem_1(k, delays) + 1e-9


def test_theorem_3_without_entropy_under_delay_promises_nothing() -> None:
    assert bounds.theorem_3(3, [1, 0], [0.0, 0.0]) == math.inf
    assert bounds.theorem_3(3, [0, 0], [0.0, 0.0]) == 4 * math.sqrt(6)


def test_theorem_3_checks_its_input() -> None:
    with pytest.raises(InvalidInput, match="one beta for each of the 2 delays"):
        bounds.theorem_3(3, [1, 0], [1.0])
    with pytest.raises(InvalidInput, match="a skipped round must be a whole number from 1 to 2, got 3"):
        bounds.theorem_3(3, [1, 0], [1.0, 1.0], [3])
    for beta in ([2.0, 1.0], [-1.0, 1.0], [1.0, math.nan]):
        with pytest.raises(InvalidInput, match="beta must be non-negative and never decrease"):
            bounds.theorem_3(3, [1, 0], beta)


@pytest.mark.parametrize("n_arms", [0, -1, 1.5, None])
def test_every_bound_checks_the_number_of_arms(n_arms: Any) -> None:
    calls: list[Callable[[], Any]] = [
        *(partial(bound, n_arms, [1, 0]) for bound in (bounds.theorem_1, bounds.theorem_2, bounds.theorem_2_sharp)),
        *(partial(bound, n_arms, [1, 0]) for bound in (bounds.best_skipping, bounds.certificate)),
        partial(bounds.theorem_3, n_arms, [1, 0], [1.0, 1.0]),
        partial(bounds.lower_bound, n_arms, 10),
        partial(bounds.lower_bound_uniform_delay, n_arms, 10, 2),
        partial(bounds.lower_bound_of_delays, n_arms, [1, 0]),
    ]
    for call in calls:
        with pytest.raises(InvalidInput, match="n_arms must be a whole number"):
            call()


def test_endless_delays_mean_never() -> None:
    endless = np.array([2**63, 0, 2**64 - 1], np.uint64)
    assert bounds.best_skipping(3, endless) == bounds.best_skipping(3, [2, 0, 0])
    assert bounds.certificate(3, endless) == bounds.certificate(3, [10**9, 0, 10**9])
    with pytest.raises(InvalidInput, match=r"tuning must be a belated\.tunings\.Tuning"):
        bounds.certificate(3, [1, 0], "advanced")  # type: ignore[arg-type]


@pytest.mark.parametrize("n", [7, 8])
@pytest.mark.parametrize("k", [2, 3, 10])
def test_certificates_on_every_delay_sequence_of_a_short_game(n: int, k: int) -> None:
    """The n! sequences with d_t <= n - t, every 13th for n = 7 and every 101st for n = 8."""
    log_k = math.log(k)
    sequences = itertools.product(*(range(n - t + 1) for t in range(1, n + 1)))
    for delays in itertools.islice(sequences, 0, None, 101 if n == 8 else 13):
        advanced = bounds.uncapped_certificate(k, np.array(delays), Advanced())
        u = math.sqrt(schedule(Advanced(), k, delays).backlog[-1] * log_k)
        m = bounds.best_skipping(k, delays).value
        assert advanced <= 4 * math.sqrt(k * n) + 3 * u + 1e-9
        assert u <= m / 2 + math.sqrt(m * m / 4 + m * log_k) + 1e-9
        simple = bounds.uncapped_certificate(k, np.array(delays), Simple())
        assert simple <= bounds.theorem_1(k, delays) + 1e-9


def test_outstanding_counts_by_their_definition() -> None:
    delays = np.random.default_rng(1).integers(0, 30, 40)
    brute = [sum(s + delays[s - 1] >= t for s in range(1, t)) for t in range(1, 41)]
    assert outstanding_counts(delays).tolist() == brute


def test_the_block_coin_lower_bound_against_enumeration() -> None:
    for k, n_coins in [(2, 1), (2, 5), (3, 4)]:
        outcomes = list(itertools.product(range(2), repeat=n_coins))
        heads = [sum(outcome) for outcome in outcomes]
        leads = [n_coins / 2 - min(drawn) for drawn in itertools.product(heads, repeat=k)]
        exact = float(np.mean(leads))
        assert bounds.lower_bound_uniform_delay(k, n_coins, 0) == pytest.approx(exact)
        assert bounds.lower_bound_uniform_delay(k, 7 * n_coins + 3, 6) == pytest.approx(7 * exact)


def test_the_block_coin_lower_bound_grows_like_the_square_root() -> None:
    """The expected maximum of k normals gives 0.5642 sqrt(N) / 2 for k = 2."""
    assert bounds.lower_bound_uniform_delay(2, 10**6, 0) == pytest.approx(0.5642 / 2 * 1000, rel=1e-3)
    assert bounds.lower_bound_uniform_delay(2, 10**6, 99) == pytest.approx(0.5642 / 2 * 10_000, rel=1e-2)
    assert bounds.lower_bound_uniform_delay(5, 10, 20) == 0.0


@given(delays=st.lists(st.integers(0, 12), min_size=1, max_size=30))
def test_no_report_of_a_coin_group_comes_before_its_last_round_is_decided(delays: list[int]) -> None:
    groups, arrives = bounds.coin_groups(delays), np.arange(len(delays)) + delays
    for group in range(groups.max() + 1):
        rounds = np.flatnonzero(groups == group)
        assert rounds.max() <= arrives[rounds].min()
    outstanding = [sum(s <= t <= arrives[s] for s in range(len(delays))) for t in range(len(delays))]
    assert np.bincount(groups).max() == max(outstanding)  # the largest group that there is


def test_coin_groups_of_a_uniform_delay_are_blocks_and_skip_early_reports() -> None:
    assert bounds.coin_groups([3] * 10).tolist() == [0, 0, 0, 0, 1, 1, 1, 1, 2, 2]
    assert bounds.coin_groups([9, 0, 9, 0, 9, 0]).tolist() == [0, 1, 0, 2, 0, 0]
    assert sorted(np.bincount(bounds.coin_groups([0] * 4))) == [1, 1, 1, 1]


@pytest.mark.parametrize("delays", [[2, 0, 1, 1, 0], [5, 5, 0, 1, 0, 0], [0] * 3, [9] * 4])
def test_the_lower_bound_of_any_delays_against_enumeration(delays: list[int]) -> None:
    """Every coin of every group and arm. Means and ZS20 both suffer just that on average, like any algorithm."""
    k, groups = 2, bounds.coin_groups(delays)
    regrets: dict[str, list[float]] = {"means": [], "zs20-advanced": [], "best": []}
    for coins in itertools.product((0.0, 1.0), repeat=k * (groups.max() + 1)):
        losses = np.array(coins).reshape(-1, k)[groups]
        problem = lab.Problem(lab.GivenLosses(losses), lab.GivenDelays(np.array(delays)), k, len(delays))
        for name in ("means", "zs20-advanced"):
            regrets[name].append(lab.play(name, problem, [1], checkpoints=[len(delays)]).mean[-1])
        regrets["best"].append(len(delays) / 2 - losses.sum(axis=0).min())
    exact = np.mean(regrets["best"])
    assert bounds.lower_bound_of_delays(k, delays) == pytest.approx(exact)
    assert np.mean(regrets["zs20-advanced"]) == pytest.approx(exact)
    assert np.mean(regrets["means"]) == pytest.approx(exact)


def test_the_lower_bound_of_any_delays_against_what_is_known() -> None:
    for delay, n in [(0, 1000), (9, 1000), (99, 1000)]:
        closed = max(bounds.lower_bound(3, n), bounds.lower_bound_uniform_delay(3, n, delay))
        assert bounds.lower_bound_of_delays(3, [delay] * n) == pytest.approx(closed)
    delays = np.random.default_rng(1).geometric(0.02, 2000)
    sizes, samples = np.bincount(bounds.coin_groups(delays)), np.random.default_rng(2)
    leads = ((0.5 - samples.integers(0, 2, (4000, 5, sizes.size))) @ sizes).max(axis=1)
    error = leads.std() / np.sqrt(leads.size)
    assert abs(leads.mean() - bounds.lower_bound_of_delays(5, delays)) < 4 * error


def test_a_long_game_is_rounded_down_a_little() -> None:
    """Blocks of 10^4 + 1 rounds are 0.1% shorter in cells."""
    sizes = np.full(10**5, 10**4 + 1)
    rounded = bounds._expected_lead(3, sizes)
    exact = bounds._expected_lead(3, np.ones_like(sizes)) * sizes[0]
    assert 0.995 * exact < rounded <= exact


def test_the_lower_bound_without_delays() -> None:
    """About (1 - 1/k)^2 / 4 sqrt(kn) in a long game. With one round it is a guess between k arms, less a half."""
    for k in (2, 10, 100):
        assert bounds.lower_bound(k, 10**6) == pytest.approx((1 - 1 / k) ** 2 / 4 * math.sqrt(k * 10**6), rel=1e-3)
    assert bounds.lower_bound(1, 100) == bounds.lower_bound_of_delays(1, [3] * 100) == 0.0
    assert 0.2 < bounds.lower_bound(1000, 1) < 0.5
