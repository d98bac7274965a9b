"""A wrong clock ends no wait, and new entries have the right time again as soon as the clock is right."""

import logging
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from belated.serve.domain.entries import Entry, EntryKind
from belated.serve.domain.history import place_of
from belated.serve.domain.timestamps import MICROSECONDS
from belated.serve.engine import clock as clock_module
from belated.serve.engine.clock import MAX_PAUSE, MAX_STEP, PROBATION, Timekeeper, settled
from belated.serve.engine.engine import Engine
from belated.serve.engine.expiry import LOOKED_AT_ONCE
from belated.serve.store.sqlite.journal import SQLiteJournal
from belated.serve.store.verify import verify
from tests.support.engines import Clock, Driven, counts, last_entry
from tests.support.memory_journal import MemoryJournal, MemoryStore

YEAR, DAY, WEEK = 365 * 86400.0, 86400.0, 7 * 86400.0


class Machine:
    """The true time, and the clocks of a machine and its database, each with an error in seconds."""

    def __init__(self, *, wall: float = 0.0, reference: float | None = None) -> None:
        self.true, self.wall, self.reference, self.paused = Clock(), wall, reference, 0.0

    def keeper(self, newest: int = 0) -> Timekeeper:
        return Timekeeper(self.read_wall, self.read_steady, newest=newest, reference=self.read_reference)

    def read_wall(self) -> int:
        return self.true() + round(self.wall * MICROSECONDS)

    def read_steady(self) -> int:
        return self.true() - round((1e9 + self.paused) * MICROSECONDS)

    def read_reference(self) -> int | None:
        return None if self.reference is None else self.true() + round(self.reference * MICROSECONDS)


def error(keeper: Timekeeper, machine: Machine) -> float:
    """By how many seconds the time is wrong."""
    return (keeper() - machine.true()) / MICROSECONDS


# -- one clock against the others --------------------------------------------------------------------------------


def test_small_steps_are_followed() -> None:
    machine = Machine()
    keeper = machine.keeper()
    for step in (0.5, -0.5, 59.0, -59.0, 30.0, 59.0):
        machine.wall += step
        machine.true.advance(1)
        assert error(keeper, machine) == machine.wall
        assert keeper.earliest() == keeper()


@pytest.mark.parametrize("jump", [YEAR, DAY, 61.0, -61.0, -DAY, -10 * YEAR])
def test_a_jump_is_not_followed(jump: float, caplog: pytest.LogCaptureFixture) -> None:
    machine = Machine()
    keeper = machine.keeper()
    with caplog.at_level(logging.WARNING, "belated.clock"):
        machine.wall = jump
        for _ in range(10):
            machine.true.advance(3600)
            assert error(keeper, machine) == 0
            assert keeper.offset() == jump
            assert keeper.earliest() == machine.true() + min(0, jump) * MICROSECONDS  # a wait is over by every clock
        assert len(caplog.records) == 1
        assert "restart the service" in caplog.text
        machine.wall = 0.25
        assert error(keeper, machine) == 0.25
        assert "right again" in caplog.text


@pytest.mark.parametrize("wrong", [YEAR, 61.0, -61.0, -10 * YEAR])
def test_the_database_knows_better_than_a_clock_that_is_wrong_from_the_start(wrong: float) -> None:
    machine = Machine(wall=wrong, reference=0.1)
    keeper = machine.keeper(newest=machine.true())
    for _ in range(3):
        machine.true.advance(3600)
        keeper.check()
        assert error(keeper, machine) == pytest.approx(0.1)
        assert keeper.earliest() == machine.true() + round(min(wrong, 0.1) * MICROSECONDS)
    machine.wall = 0.0
    assert error(keeper, machine) == 0.0


@pytest.mark.parametrize("wrong", [YEAR, -YEAR])
def test_a_database_whose_clock_jumps_is_outvoted(wrong: float) -> None:
    machine = Machine(reference=0.0)
    keeper = machine.keeper()
    machine.reference = wrong
    machine.true.advance(5)
    keeper.check()
    assert error(keeper, machine) == 0.0
    assert keeper.earliest() == machine.true() + min(0, wrong) * MICROSECONDS


def test_a_machine_that_was_paused_believes_the_database() -> None:
    machine = Machine(reference=0.0)
    keeper = machine.keeper()
    machine.true.advance(7200)
    machine.paused = 7200
    assert error(keeper, machine) == -7200  # until it has looked
    machine.true.advance(1)
    keeper.check()
    assert error(keeper, machine) == 0
    assert keeper.earliest() == machine.true()


def test_the_reference_is_asked_about_once_a_second() -> None:
    machine, asked = Machine(reference=0.0), list[int]()

    def ask() -> int | None:
        asked.append(1)
        return machine.read_reference()

    keeper = Timekeeper(machine.read_wall, machine.read_steady, reference=ask)
    for _ in range(100):
        machine.true.advance(0.1)
        keeper.check()
    assert 8 <= len(asked) <= 12


def test_a_clock_far_ahead_of_the_journal_is_on_probation() -> None:
    """A file has no other clock. Maybe the service was down for long, or maybe the clock is wrong."""
    machine = Machine(wall=YEAR)
    keeper = machine.keeper(newest=machine.true())
    assert error(keeper, machine) == YEAR
    assert keeper.earliest() is None
    machine.true.advance(PROBATION / MICROSECONDS - 1)
    assert keeper.earliest() is None
    machine.wall = 0.0  # it is set right in time
    assert keeper.earliest() == keeper() == machine.true()
    machine.wall = YEAR
    assert error(keeper, machine) == 0


def test_a_clock_that_stays_ahead_is_believed_in_the_end() -> None:
    machine = Machine()
    keeper = machine.keeper(newest=machine.true() - MAX_PAUSE - 1)
    assert keeper.earliest() is None
    machine.true.advance(PROBATION / MICROSECONDS)
    assert keeper.earliest() == keeper() == machine.true()


@pytest.mark.parametrize("newest", [0, MAX_PAUSE, -MAX_STEP])
def test_a_clock_that_fits_the_journal_is_believed_at_once(newest: int) -> None:
    machine = Machine()
    keeper = machine.keeper(newest=machine.true() - newest if newest else 0)
    assert keeper.earliest() == keeper() == machine.true()
    machine.wall = YEAR
    assert error(keeper, machine) == 0


def test_a_clock_that_is_not_set_yet_may_be_set_after_the_start() -> None:
    machine = Machine(wall=-5 * YEAR)
    keeper = machine.keeper(newest=machine.true() - MICROSECONDS)
    assert error(keeper, machine) == -5 * YEAR
    machine.true.advance(120)
    machine.wall = 0.0
    assert error(keeper, machine) == 0
    assert keeper.earliest() == machine.true()


# -- engines -----------------------------------------------------------------------------------------------------


Opened = Callable[[Callable[[], int]], Driven]


@pytest.fixture
def opened(tmp_path: Path) -> Opened:
    """Opens another engine on the same file, with this clock."""

    def open_with(clock: Callable[[], int]) -> Driven:
        return Driven(tmp_path, clock=clock)  # type: ignore[arg-type]

    return open_with


def times(driven: Driven) -> list[int]:
    return [found.decision.at for found in driven.decisions()]


def test_one_entry_dated_a_year_ahead_ends_no_wait_and_moves_no_other(opened: Opened) -> None:
    right, wrong = Clock(), Clock()
    wrong.advance(YEAR)
    one, other = opened(right), opened(wrong)
    one.create(reward_wait=WEEK, default_outcome=0.0)
    one.decide(size=1000)
    other.engine.catch_up()
    other.decide()
    one.engine.catch_up()
    assert one.engine.fold.at == wrong()
    one.engine.expire()
    assert counts(one) == {"decisions": 1001}
    one.restart(snapshot=True)
    right.advance(5)
    one.decide(size=10)
    assert times(one)[-11:] == [wrong(), *[right()] * 10]
    right.advance(WEEK - 6)
    one.engine.expire()
    assert counts(one) == {"decisions": 1011}
    right.advance(1)
    one.engine.expire()
    assert counts(one) == {"decisions": 1011, "expired": 1000}
    right.advance(5)  # the one with the wrong time ends with those after it
    one.engine.expire()
    assert counts(one) == {"decisions": 1011, "expired": 1011}
    one.engine.snapshot()
    assert verify(one.engine.journal).problems == []


def test_a_clock_that_jumps_in_a_running_engine_ends_no_wait(opened: Opened) -> None:
    machine = Machine()
    one = opened(machine.keeper())
    one.create(reward_wait=WEEK)
    one.decide(size=5)
    machine.wall = YEAR
    machine.true.advance(60)
    one.engine.expire()
    one.decide()
    assert counts(one) == {"decisions": 6}
    assert last_entry(one).at == machine.true()
    machine.true.advance(WEEK - 60)
    one.engine.expire()
    assert counts(one) == {"decisions": 6, "expired": 5}


@pytest.mark.parametrize("last", [-30 * DAY, 0.0])
@pytest.mark.parametrize("reference", [None, 0.0])
def test_a_clock_that_is_behind_and_set_again_ends_no_wait_early(
    opened: Opened, reference: float | None, last: float
) -> None:
    machine = Machine(reference=reference)
    one = opened(machine.keeper())
    one.create(reward_wait=WEEK)
    machine.wall = -YEAR
    one.decide(size=5)
    one.engine.expire()  # they seem to be dated ahead
    for machine.wall in (-30 * DAY, -DAY, -3600.0):
        machine.true.advance(60)
        one.engine.expire()
    machine.wall = last
    machine.true.advance(WEEK - 181)
    one.engine.expire()
    assert counts(one) == {"decisions": 5}
    machine.true.advance(1)
    one.engine.expire()
    assert counts(one) == {"decisions": 5, "expired": 5}


def test_decisions_before_a_clock_is_set_right_wait_from_then_on(opened: Opened) -> None:
    """A machine without a clock of its own begins in the past, until its time server answers."""
    machine = Machine(wall=-YEAR)
    opened(machine.true).create("old")
    one = opened(machine.keeper(machine.true()))
    one.create(reward_wait=WEEK)
    one.decide(size=5)
    machine.true.advance(60)
    machine.wall = 0.0
    one.engine.expire()
    one.decide(size=5)
    for seconds, expired in ((1.0, {}), (WEEK - 2, {}), (1.0, {"expired": 10})):
        machine.true.advance(seconds)
        one.engine.expire()
        assert counts(one) == {"decisions": 10, **expired}


def test_the_end_of_a_wait_has_the_right_date_on_a_machine_whose_clock_is_behind(opened: Opened) -> None:
    machine = Machine()
    one = opened(machine.keeper())
    one.create(reward_wait=WEEK)
    machine.wall = -YEAR
    one.decide()
    one.engine.expire()
    machine.true.advance(WEEK)
    one.engine.expire()
    assert counts(one) == {"decisions": 1, "expired": 1}
    assert last_entry(one).at == machine.true()


def test_a_restart_with_a_wrong_clock_ends_no_wait_if_it_is_set_right_within_an_hour(opened: Opened) -> None:
    machine = Machine()
    one = opened(machine.keeper())
    one.create(reward_wait=WEEK)
    one.decide(size=5)
    machine.wall = YEAR
    machine.true.advance(60)
    again = opened(machine.keeper(one.engine.fold.at))
    again.engine.expire()
    again.decide()
    machine.true.advance(600)
    again.engine.expire()
    machine.wall = 0.0
    again.engine.expire()
    again.decide()
    assert counts(again) == {"decisions": 7}
    assert last_entry(again).at == machine.true()
    machine.true.advance(WEEK)
    again.engine.expire()
    assert counts(again) == {"decisions": 7, "expired": 7}


@pytest.mark.parametrize("number", [1, 20])
def test_no_second_start_believes_a_wrong_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Entries of the first start agree with the wrong clock. So do those of the worker that started before."""
    machine, driven = Machine(), Driven(tmp_path)
    monkeypatch.setattr(clock_module, "timestamps", SimpleNamespace(now=machine.read_wall))
    monkeypatch.setattr(clock_module, "steady", machine.read_steady)

    def start() -> None:
        driven.engine.journal.close()
        driven.engine = Engine(SQLiteJournal(driven.path, synchronous="OFF"))

    start()
    driven.create(reward_wait=WEEK)
    driven.decide(size=50)
    for machine.wall in (YEAR, YEAR, 0.0, YEAR, 2 * YEAR):
        start()
        for _ in range(2):
            machine.true.advance(60)
            driven.engine.expire()
            for _ in range(number):
                driven.decide()
    assert counts(driven) == {"decisions": 50 + 10 * number}
    machine.wall = 0.0
    start()
    machine.true.advance(WEEK)
    driven.engine.expire()
    assert counts(driven)["expired"] >= 50


def dated(*times: float) -> MemoryJournal:
    """A journal with a report at each of these times, in seconds."""
    store = MemoryStore()
    store.entries = [Entry(round(at * MICROSECONDS), EntryKind.REPORTED, 1, n) for n, at in enumerate(times, 1)]
    return MemoryJournal(store)


HOURS = [3600.0 * hour for hour in range(1, 200)]


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ([5.0], 5.0),
        ([5.0, 6.0, 7.0], 7.0),
        (HOURS, 199 * 3600.0),
        ([*HOURS, YEAR], 199 * 3600.0),
        ([*HOURS, *[YEAR + n for n in range(100)]], 199 * 3600.0),
        ([*HOURS, YEAR, *HOURS[-1:], YEAR], 199 * 3600.0),
        ([*HOURS, YEAR, 200 * 3600.0], 200 * 3600.0),  # it was set right
        ([*HOURS, *[YEAR + 60 * n for n in range(62)]], YEAR + 3660),  # and here it was believed after an hour
        ([1.0, 0.9 * DAY], 0.9 * DAY),
    ],
)
def test_entries_count_once_they_span_an_hour_or_follow_others(times: list[float], expected: float) -> None:
    journal = dated(*times)
    assert settled(journal, place_of(journal.read(len(times) - 1, 1)[0])) == expected * MICROSECONDS


def test_of_two_replicas_the_one_with_the_wrong_clock_asks_the_database(opened: Opened) -> None:
    right, wrong = Machine(reference=0.0), Machine(wall=YEAR, reference=0.0)
    wrong.true = right.true
    one = opened(right.keeper())
    one.create(reward_wait=WEEK)
    one.decide(size=5)
    other = opened(wrong.keeper(one.engine.fold.at))
    for _ in range(3):
        right.true.advance(60)
        other.engine.expire()
        other.decide()
        assert last_entry(other).at == right.true()
        one.engine.catch_up()
        one.engine.expire()
    assert counts(one) == {"decisions": 8}
    right.true.advance(WEEK)
    other.engine.catch_up()
    other.engine.expire()
    assert counts(other) == {"decisions": 8, "expired": 8}


def test_an_engine_asks_its_store_for_the_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = SQLiteJournal(tmp_path / "belated.db")
    monkeypatch.setattr(journal, "clock", lambda: 5 * 10**15)
    assert 0 <= Engine(journal).now() - 5 * 10**15 < MAX_STEP


@pytest.mark.parametrize("number", [1, 3 * LOOKED_AT_ONCE])
def test_decisions_dated_ahead_hold_up_nobody(opened: Opened, number: int) -> None:
    right, wrong = Clock(), Clock()
    wrong.advance(YEAR)
    one, other = opened(right), opened(wrong)
    one.create(reward_wait=WEEK)
    one.decide()
    for server in (other, one) * 2:
        server.engine.catch_up()
        server.decide(size=number)
    one.engine.catch_up()
    right.advance(WEEK)
    for _ in range(20):
        one.engine.expire()
    assert counts(one) == {"decisions": 1 + 4 * number, "expired": 1 + 4 * number}


def test_the_last_decisions_dated_ahead_wait_from_when_they_were_met(opened: Opened) -> None:
    right, wrong = Clock(), Clock()
    wrong.advance(YEAR)
    one, other = opened(right), opened(wrong)
    one.create(reward_wait=WEEK)
    other.engine.catch_up()
    other.decide(size=2 * LOOKED_AT_ONCE)
    one.engine.catch_up()
    one.engine.expire()
    right.advance(WEEK - 1)
    one.engine.expire()
    assert counts(one) == {"decisions": 2 * LOOKED_AT_ONCE}
    right.advance(1)
    one.engine.expire()
    assert counts(one) == {"decisions": 2 * LOOKED_AT_ONCE, "expired": 2 * LOOKED_AT_ONCE}
