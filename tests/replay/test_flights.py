"""The invariants and the digest of the shipped flights, and their landing times."""

import hashlib
import zoneinfo
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from belated.lab import NEVER
from belated.replay import delays_in_rounds, flights

DIGEST = "713ee2261284ba7c2d58f023d86a5ff96b6e3e143863a0cfbca07509cc311160"


def digest(arrays: dict[str, Any]) -> str:
    found = hashlib.sha256()
    for name in sorted(arrays):
        found.update(f"{name} {arrays[name].dtype} {arrays[name].shape}".encode() + arrays[name].tobytes())
    return found.hexdigest()


def shipped() -> dict[str, Any]:
    with np.load(flights.DATA, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def test_the_file_is_small_and_the_one_that_was_derived() -> None:
    assert flights.DATA.stat().st_size < 400_000
    assert digest(shipped()) == DIGEST


def test_invariants() -> None:
    data = flights.load()
    n = 22_305
    assert data.losses.shape == data.landed.shape == (n, 3)
    assert data.times.shape == data.destinations.shape == (n,)
    assert data.arm_names == ("EWR", "JFK", "LGA")
    assert ((data.losses >= 0) & (data.losses <= 1)).all()
    never = np.isinf(data.landed)
    assert (data.losses[never] == 1).all()
    assert never.mean() == pytest.approx(0.02819, abs=5e-6)
    waits = (data.landed - data.times[:, None])[~never]
    assert waits.min() > 0
    assert waits.max() < 86_400
    order = list(zip(data.times.tolist(), data.destinations.tolist(), strict=True))
    assert order == sorted(set(order))  # by block and destination, none twice
    year = datetime(2014, 1, 1, tzinfo=UTC) - datetime(2013, 1, 1, tzinfo=UTC)
    assert data.times.min() >= 0
    assert data.times.max() <= (year + timedelta(hours=5)).total_seconds()
    np.testing.assert_allclose(data.losses.mean(axis=0), [0.12034, 0.10877, 0.10312], atol=5e-6)


def landing(left: datetime, clock: tuple[int, int], zone: str, minutes_in_the_air: int) -> datetime:
    from belated.replay.data import derive  # noqa: PLC0415

    there = timedelta(hours=clock[0], minutes=clock[1])
    return derive.landing(left, there, zoneinfo.ZoneInfo(zone), timedelta(minutes=minutes_in_the_air))


@pytest.mark.parametrize(
    ("left", "clock", "zone", "minutes"),
    [
        ((6, 1, 12, 0), (9, 0), "America/Chicago", 120),  # 08:00 there
        ((6, 1, 16, 0), (18, 30), "America/Los_Angeles", 570),
        ((6, 2, 3, 30), (0, 30), "America/New_York", 60),  # past midnight
        ((6, 2, 3, 30), (24, 0), "America/New_York", 30),
        ((3, 10, 6, 30), (4, 30), "America/Chicago", 180),  # the clock goes forward on the way: 00:30 CST to 04:30 CDT
        ((11, 3, 5, 0), (1, 30), "America/Chicago", 150),  # and back: 00:00 CDT to the second 01:30
        ((11, 3, 5, 0), (3, 0), "America/Chicago", 240),
        ((6, 1, 12, 0), (11, 0), "America/Puerto_Rico", 180),
    ],
)
def test_landing_times_by_hand(left: tuple[int, ...], clock: tuple[int, int], zone: str, minutes: int) -> None:
    month, day, hour, minute = left
    start = datetime(2013, month, day, hour, minute, tzinfo=UTC)
    assert landing(start, clock, zone, minutes - 15) == start + timedelta(minutes=minutes)


def test_the_figures_of_the_document() -> None:
    """docs/replay.md gives the lead of LGA over JFK with and without cancelled flights, and the median delay."""
    data = flights.load()
    lead = data.losses.mean(axis=0)[1] - data.losses.mean(axis=0)[2]
    has_landed = np.isfinite(data.landed)
    means = [data.losses[has_landed[:, arm], arm].mean() for arm in range(3)]
    waited = (data.landed - data.times[:, None])[has_landed]
    rounds = np.concatenate([delays_in_rounds(data.times, data.landed[:, arm]) for arm in range(3)])
    assert (round(lead, 4), round(means[1] - means[2], 4)) == (0.0056, 0.0097)
    assert round(float(np.median(waited)) / 3600, 1) == 3.4
    assert np.median(rounds[rounds < NEVER]) == 11
