"""Statistics of an experiment. Times are sorted into their buckets, and memory is bounded."""

import numpy as np
import pytest

from belated.serve.domain.observations import (
    BUCKET,
    EDGES,
    MOST_BUCKETS,
    MOST_POINTS,
    Ages,
    History,
    bucket_of,
    in_order,
)
from belated.serve.domain.timestamps import MICROSECONDS


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
    generator, ages, waiting, now = np.random.default_rng(4), Ages([], [], []), list[int](), 10**15
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
    ages = Ages([], [], [])
    for at in (0, BUCKET - 1, BUCKET, 2 * BUCKET - 1):
        ages.opened(at)
    assert (ages.starts, ages.counts) == ([0, BUCKET], [2, 2])
    ages.closed(BUCKET - 1)
    ages.closed(2 * BUCKET - 1)
    assert ages.counts == [1, 1]


def test_ages_of_a_crowd_take_bounded_memory_and_stay_sharp_for_the_young() -> None:
    generator, ages, waiting, now = np.random.default_rng(5), Ages([], [], []), list[int](), 10**15
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


def test_ages_bear_times_in_any_order() -> None:
    """A wrong clock dates decisions far ahead or long ago. The others stay where they are."""
    generator, ages, waiting, now = np.random.default_rng(6), Ages([], [], []), list[int](), 10**15
    year = 365 * 86400 * MICROSECONDS
    for step in range(5 * MOST_BUCKETS):
        now += int(generator.exponential(3 * BUCKET))
        late = -int(generator.exponential(1000 * BUCKET))
        at = now + int(generator.choice([0, 0, 0, 0, year, -year, late, -5 * BUCKET, 5 * BUCKET]))
        ages.opened(at)
        waiting.append(at)
        while len(waiting) > (300 if step < MOST_BUCKETS else 900):
            ages.closed(waiting.pop(generator.integers(len(waiting))))
        assert ages.starts == sorted(set(ages.starts))
        assert min(ages.counts) >= 0
        assert sum(ages.counts) == len(waiting)
        if step % 100 == 0 and len(ages.starts) < MOST_BUCKETS // 2:  # never merged
            expected = brute_force([min(at, now) for at in waiting], now)
            assert sum(abs(one - two) for one, two in zip(ages.histogram(now), expected, strict=True)) <= 20
    for at in waiting:
        ages.closed(at)
    assert not any(ages.counts)


def test_one_decision_dated_ahead_does_not_hide_the_age_of_those_after_it() -> None:
    ages, minute = Ages([], [], []), 60 * MICROSECONDS
    for at in (0, 10**15, *range(minute, 61 * minute, minute)):
        ages.opened(at)
    assert ages.histogram(60 * minute) == brute_force(
        [0, *range(minute, 61 * minute, minute), 60 * minute], 60 * minute
    )


@pytest.mark.parametrize(
    ("given", "ordered"),
    [
        ([], []),
        ([5], [5]),
        ([1, 2, 2, 3], [1, 2, 2, 3]),
        ([1, 2, 99, 3, 4], [1, 2, 3, 3, 4]),
        ([1, 2, 99, 98, 3, 4, 5], [1, 2, 3, 3, 3, 4, 5]),
        ([5, 6, 1, 7], [5, 6, 7, 7]),
        ([5, 6, 1], [5, 6, 6]),
        ([99, 1, 2], [1, 1, 2]),
        ([1, 2, 99], [1, 2, 99]),
        ([1, 99, 2, 100, 3], [1, 2, 2, 3, 3]),
    ],
)
def test_times_that_contradict_the_others_are_replaced(given: list[int], ordered: list[int]) -> None:
    assert in_order(given) == ordered


def test_a_history_keeps_the_times_it_was_given() -> None:
    history = History(1, 1, [], [], [])
    for round, at in enumerate((10, 99, 20), 1):
        history.add(round, at, [1.0])
    assert history.times == [10, 99, 20]
