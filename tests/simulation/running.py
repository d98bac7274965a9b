"""Runs seeds. A seed that fails is named, and replays exactly."""

import time
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from tests.simulation.model import Violation
from tests.simulation.world import Outcome, World


def run(
    seed: int,
    steps: int | None = None,
    trace: list[str] | None = None,
    *,
    archives: bool = False,
    has_parts: bool = False,
) -> Outcome:
    """Run a seed, perhaps with an operator who archives, or with outcomes made of parts.

    An error says how to replay it.
    """
    try:
        return World(seed, trace=trace, archives=archives, has_parts=has_parts).run(steps)
    except (Exception, Violation) as error:
        limit = "" if steps is None else f" --steps {steps}"
        limit += f"{' --archives' if archives else ''}{' --parts' if has_parts else ''}"
        error.add_note(f"seed {seed}. Replay it with: python -m tests.simulation --seed {seed}{limit} --trace")
        raise


def fails(seed: int, steps: int | None, *, has_parts: bool = False) -> bool:
    """Whether a seed fails with this limit of steps."""
    try:
        World(seed, has_parts=has_parts).run(steps)
    except (Exception, Violation):  # noqa: BLE001  any error is a finding
        return True
    return False


def shrunk(seed: int) -> int | None:
    """Return a small limit of steps with which the seed still fails, or None if only the whole run does."""
    high = 8
    while not fails(seed, high):
        high *= 2
        if high > 4096:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fails(seed, middle) else (middle, high)
    return high


class Total(NamedTuple):
    """What many seeds have done."""

    seeds: int
    turns: int
    entries: int
    answers: int
    happened: Counter[str]


def soak(first: int, seconds: float) -> Iterator[Total]:
    """Run one seed after another for so long. Yields the totals after each."""
    end, total = time.monotonic() + seconds, Total(0, 0, 0, 0, Counter())
    while time.monotonic() < end:
        one = run(first + total.seeds)
        total = Total(
            total.seeds + 1,
            total.turns + one.turns,
            total.entries + one.entries,
            total.answers + one.acknowledged,
            total.happened + one.happened,
        )
        yield total
