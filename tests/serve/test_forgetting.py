"""Idempotency-Keys live for a time that the operator chooses, and are forgotten in small steps."""

import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from belated.cli import app
from belated.errors import StoreError, StoreUnreachable
from belated.serve.engine import forgetting
from belated.serve.engine.forgetting import Forgetting
from belated.serve.store.journal import Busy
from belated.serve.store.verify import verify
from tests.support.engines import Driven, state
from tests.support.removals import rows

DAY = 86_400


def test_a_key_lives_for_thirty_days(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forgetting, "EVERY", 0.0)
    monkeypatch.setattr(forgetting, "TURN", 60.0)
    driven = Driven(tmp_path)
    driven.create()
    made = {}
    for day in range(40):
        made[day] = driven.decide(key=f"day {day}", size=1 + day % 3)
        driven.clock.advance(DAY)
    before = state(driven)
    driven.engine.forget_keys()
    assert state(driven) == before, "keys are no part of the state"
    assert {entry.request for entry in rows(driven.engine.journal)} == {None, *(f"day {day}" for day in range(10, 40))}
    assert [one.id for one in driven.decide(key="day 10", size=2)] == [one.id for one in made[10]]
    again = driven.decide(key="day 9", size=1)
    assert again[0].id != made[9][0].id
    assert driven.decide(key="day 9", size=1)[0].id == again[0].id
    assert driven.tell(made[9][0], 1.0) == "applied"
    driven.restart()
    assert verify(driven.engine.journal).problems == []


def test_a_clock_that_was_behind_makes_no_key_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine that started without a clock. A repeated request would get another decision."""
    monkeypatch.setattr(forgetting, "TURN", 60.0)
    driven = Driven(tmp_path)
    driven.create()
    driven.decide(key="first")
    now, driven.clock.now = driven.clock.now, 0
    made = driven.decide(key="behind", size=20)
    driven.clock.now = now + 10**6
    driven.decide(key="after")
    driven.engine.forget_keys()
    assert [one.id for one in driven.decide(key="behind", size=20)] == [one.id for one in made]
    assert {entry.request for entry in rows(driven.engine.journal)} == {None, "first", "behind", "after"}


def test_a_clock_that_was_ahead_keeps_no_other_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forgetting, "TURN", 60.0)
    driven = Driven(tmp_path)
    driven.create()
    driven.decide(key="old")
    now, driven.clock.now = driven.clock.now, driven.clock.now + 1000 * DAY * 10**6
    driven.decide(key="ahead")
    driven.clock.now = now + 10**6
    driven.decide(key="old too")
    driven.clock.advance(31 * DAY)
    driven.decide(key="young")
    driven.engine.forget_keys()
    assert {entry.request for entry in rows(driven.engine.journal)} == {None, "ahead", "young"}


def test_it_works_in_small_steps_and_then_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    driven = Driven(tmp_path)
    driven.create()
    for number in range(3):
        driven.decide(key=f"k{number}", size=500)
    last, journal = driven.engine.fold.seq, driven.engine.journal
    monkeypatch.setattr(forgetting, "TURN", -1.0)  # a step each time
    work = Forgetting(journal, DAY)
    now = driven.clock.now + 2 * DAY * 10**6
    left, steps = list[int](), 0
    while work._steps is not None or not left:
        work.work(now, last)
        left.append(sum(entry.request is not None for entry in rows(journal)))
        steps += 1
        assert steps < 100
    assert max(before - after for before, after in pairwise(left)) <= 200
    assert left[-1] == 0
    driven.decide(key="new")
    work.work(now, driven.engine.fold.seq)
    assert work._steps is None, "the next search comes later"


def test_a_young_key_stays_also_in_a_short_journal(tmp_path: Path) -> None:
    driven = Driven(tmp_path)
    work = Forgetting(driven.engine.journal, DAY)
    work.work(driven.clock.now, 0)
    driven.create()
    driven.decide(key="k")
    work = Forgetting(driven.engine.journal, DAY)
    for _ in range(10):
        work.work(driven.clock.now + DAY * 10**6, driven.engine.fold.seq)
    assert driven.engine.journal.requested([(1, "k")])


@pytest.mark.parametrize(("error", "is_raised"), [(StoreError, False), (Busy, False), (StoreUnreachable, True)])
def test_a_failure_stops_no_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[Exception], is_raised: bool
) -> None:
    driven = Driven(tmp_path)
    driven.create()

    def fail(*_: Any) -> Any:
        raise error("broken")

    monkeypatch.setattr(driven.engine.journal, "forget_requests", fail)
    work = Forgetting(driven.engine.journal, DAY)
    if is_raised:  # the writer then connects again
        with pytest.raises(error):
            work.work(driven.clock.now, 1)
    else:
        work.work(driven.clock.now, 1)
    assert work._steps is None
    assert (work._not_before > time.monotonic()) is not is_raised


def test_the_option_is_checked() -> None:
    for given, said in (("30", "such as 90d, got '30'"), ("23h", "must be at least 1d"), ("-3d", "such as 90d")):
        result = CliRunner().invoke(app, ["serve", "--key-lifetime", given])
        assert said in str(result.exception)
