"""Statistics of an experiment. Estimates are unbiased, intervals honest, and memory bounded."""

import numpy as np
import pytest

from belated.serve.domain.observations import (
    BUCKET,
    EDGES,
    MOST_BUCKETS,
    MOST_POINTS,
    Ages,
    Earnings,
    History,
    bucket_of,
    estimate,
    new_earnings,
)
from belated.serve.domain.timestamps import MICROSECONDS

MEANS = (0.3, 0.6, 0.5)


def played(outcomes: int, generator: np.random.Generator) -> Earnings:
    """A policy that gives nine tenths to the arm that seems best, so the others are drawn rarely."""
    earnings = new_earnings(len(MEANS))
    lost, seen = np.ones(len(MEANS)) / 2, np.ones(len(MEANS))
    uniforms = generator.random((outcomes, 2))
    for number in range(outcomes):
        x = np.full(len(MEANS), 0.05)
        x[int(np.argmin(lost / seen))] = 0.9
        arm = int(np.searchsorted(np.cumsum(x), uniforms[number, 0] * x.sum()))
        loss = float(uniforms[number, 1] < MEANS[arm])
        earnings.add(arm, loss, float(x[arm]))
        lost[arm] += loss
        seen[arm] += 1
    return earnings


def test_the_sums_are_those_of_the_formula() -> None:
    """Recompute the sums from all outcomes, each with the centre of its time."""
    generator, earnings = np.random.default_rng(3), new_earnings(2)
    psi: list[list[float]] = [[], []]
    for _ in range(300):
        arm, loss, probability = int(generator.integers(2)), float(generator.random()), float(generator.uniform(0.2, 1))
        for i, c in enumerate(earnings.centre):
            psi[i].append(c + (loss - c) / probability if i == arm else c)
        earnings.add(arm, loss, probability)
    for i in range(2):
        n, total, squares, _ = earnings.sums(i)
        assert n == 300
        assert total == pytest.approx(sum(psi[i]), rel=1e-12)
        assert squares == pytest.approx(sum(one * one for one in psi[i]), rel=1e-12)


def test_an_amendment_moves_the_estimate_by_the_difference() -> None:
    earnings = new_earnings(2)
    for number in range(50):
        earnings.add(number % 2, 0.5, 0.5)
    before = earnings.sums(0).total, earnings.sums(1)
    earnings.amend(0, 0.5, 1.0, 0.25)
    assert earnings.sums(0).total == pytest.approx(before[0] + 0.5 / 0.25)
    assert earnings.sums(1) == before[1]
    assert earnings.outcomes == 50


def test_an_interval_allows_for_what_has_not_happened_yet() -> None:
    """If one visitor in a hundred converts, fifty visitors may show no conversion. 0 would claim too much."""
    missed = 0
    for seed in range(300):
        generator, earnings = np.random.default_rng(seed), new_earnings(2)
        for _ in range(50):
            earnings.add(int(generator.random() < 0.5), float(generator.random() >= 0.01), 0.5)
        missed += not estimate([earnings.sums(0)]).low <= 0.99 <= estimate([earnings.sums(0)]).high
    assert missed <= 15


def test_a_time_has_its_place_between_the_edges() -> None:
    assert [bucket_of(t) for t in (-5, 0, 99_999, 100_000, 199_999, 200_000)] == [0, 0, 0, 1, 1, 2]
    for number, edge in enumerate(EDGES):
        assert bucket_of(round(edge * MICROSECONDS)) == number
        assert bucket_of(round(edge * MICROSECONDS) - 1) == max(0, number - 1)
    assert bucket_of(10**18) == len(EDGES) - 1
    assert list(EDGES) == sorted(set(EDGES))


def brute_force(waiting: list[int], now: int) -> list[int]:
    counts = [0] * len(EDGES)
    for at in waiting:
        counts[max(i for i, edge in enumerate(EDGES) if (now - at) / MICROSECONDS >= edge)] += 1
    return counts


def test_ages_are_those_of_the_open_decisions() -> None:
    generator, ages, waiting, now = np.random.default_rng(4), Ages([], []), list[int](), 10**15
    for _ in range(MOST_BUCKETS - 1):
        now += BUCKET + int(generator.exponential(100 * MICROSECONDS))
        number = int(generator.integers(1, 4))
        ages.opened(now, number)
        waiting += [now] * number
        if generator.random() < 0.8:
            ages.closed(waiting.pop(generator.integers(len(waiting))))
        if len(waiting) % 10 == 0:
            assert ages.histogram(now) == brute_force(waiting, now)


def test_decisions_made_at_nearly_the_same_time_share_a_bucket() -> None:
    ages = Ages([], [])
    for at in (0, BUCKET - 1, BUCKET, 2 * BUCKET - 1):
        ages.opened(at)
    assert (ages.starts, ages.counts) == ([0, BUCKET], [2, 2])
    ages.closed(BUCKET - 1)
    ages.closed(2 * BUCKET - 1)
    assert ages.counts == [1, 1]


def test_ages_of_a_crowd_take_bounded_memory_and_stay_sharp_for_the_young() -> None:
    generator, ages, waiting, now = np.random.default_rng(5), Ages([], []), list[int](), 10**15
    for step in range(6 * MOST_BUCKETS):
        now += BUCKET + int(generator.exponential(MICROSECONDS))
        ages.opened(now)
        waiting.append(now)
        if generator.random() < 0.6:
            ages.closed(waiting.pop(generator.integers(len(waiting))))
        assert len(ages.starts) <= MOST_BUCKETS
        assert min(ages.counts) >= 0
        if step % 50 == 0 and len(waiting) > 200:
            found, expected = ages.histogram(now), brute_force(waiting, now)
            assert sum(found) == len(waiting)
            sharp = bucket_of(now - waiting[-200])  # buckets younger than this are exact
            assert found[:sharp] == expected[:sharp]


def test_a_history_is_bounded_and_even() -> None:
    history = History(1, 1, [], [], [])
    for round in range(1, 50_001):
        if round >= history.next:
            history.add(round, round * MICROSECONDS, [round / 50_000, None])
        assert len(history.rounds) == len(history.times) == len(history.points) <= MOST_POINTS
    assert history.rounds[0] == 1
    assert set(np.diff(history.rounds)) == {history.stride} == {128}
    assert history.rounds[-1] > 50_000 - 128
    assert all(point[0] == round / 50_000 for round, point in zip(history.rounds, history.points, strict=True))
