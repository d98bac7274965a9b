"""A caller who names many decisions that do not exist is refused for a while."""

import pytest

from belated.serve.domain.refusals import Refusal
from belated.serve.service import misses
from belated.serve.service.misses import BURST, RATE, Misses


class Time:
    """A clock for the test."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def refused(counted: Misses, caller: str) -> int | None:
    """The seconds to wait, or None."""
    try:
        counted.check(caller)
    except Refusal as refusal:
        return refusal.retry_after if refusal.kind == "too_many" else None
    return None


def test_who_names_too_many_waits_until_they_are_forgotten() -> None:
    time = Time()
    counted = Misses(time)
    counted.add("a", BURST - 1)
    assert refused(counted, "a") is None
    counted.add("a", 1 + round(5 * RATE))
    assert refused(counted, "a") == 5
    assert refused(counted, "b") is None
    time.now += 4.9
    assert refused(counted, "a") == 1
    time.now += 0.2
    assert refused(counted, "a") is None
    assert counted.total == BURST + round(5 * RATE)


def test_no_caller_finds_out_more_in_the_long_run() -> None:
    """However large its batches are."""
    time, tried = Time(), 0
    counted = Misses(time)
    while time.now < 100 + 3600:
        wait = refused(counted, "a")
        if wait is None:
            counted.add("a", 10_000)
            tried += 10_000
        time.now += wait or 0.001
    assert tried <= 3600 * RATE + 3 * BURST


def test_many_callers_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(misses, "MOST_CALLERS", 100)
    time = Time()
    counted = Misses(time)
    counted.add("worst", 2 * BURST)
    for number in range(1000):
        counted.add(f"caller {number}", 1)
        assert len(counted._remembered) <= 101
    assert refused(counted, "worst") == round(BURST / RATE)
