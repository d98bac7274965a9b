"""Which requests the writer puts into a group, and what it does between two groups."""

from collections.abc import Callable
from queue import Empty
from types import SimpleNamespace
from typing import Any

import pytest

from belated.errors import StoreError, StoreUnreachable
from belated.serve.engine.requests import Ask
from belated.serve.engine.writer import MAX_GROUP, RETURN_SHARE, TAIL_EVERY, PendingRequest, Writer
from belated.serve.process.run import LAST_WORDS, STORE_FAILED, Plan, Server
from belated.serve.service.keys import Gate
from belated.serve.service.service import Service
from tests.support.engines import Driven

TOOK = 0.01  # seconds that the last group took


class Turns:
    """An event loop whose turns the test makes."""

    def __init__(self) -> None:
        self._due: list[tuple[Callable[..., None], Any]] = []

    def call_soon(self, what: Callable[..., None], *arguments: Any) -> None:
        self._due.append((what, arguments))

    def turn(self) -> None:
        due, self._due = self._due, []
        for what, arguments in due:
            what(*arguments)


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    time = [1000.0]
    monkeypatch.setattr("belated.serve.engine.writer.time", SimpleNamespace(monotonic=lambda: time[0]))
    return time


@pytest.fixture
def driven(driven: Driven) -> Driven:
    driven.create()
    return driven


class Gathering:
    """A writer that has just answered some callers."""

    def __init__(
        self, driven: Driven, now: list[float], callers: int, took: float | None = TOOK, *, meanwhile: int = 0
    ) -> None:
        self.turns, self._now = Turns(), now
        self.writer = Writer(driven.engine, Gate([]).learn, capacity=100)
        self.writer._loop = self.turns  # type: ignore[assignment]
        self.writer._handed_over_at = 0.0 if took is None else now[0] - took
        self.writer._gathered.extend(self._waiting() for _ in range(meanwhile))
        self.writer._answer([self._waiting() for _ in range(callers)], [None] * callers)

    @staticmethod
    def _waiting() -> PendingRequest:
        return PendingRequest(Ask("layout", 1), 1, SimpleNamespace(done=lambda: True))  # type: ignore[arg-type]

    def ask(self) -> None:
        """Add one more request, as `submit` does."""
        self.writer._gathered.append(self._waiting())
        if not self.writer._is_busy:
            self.writer._is_busy = True
            self.turns.call_soon(self.writer._wait_for_more, 0, 16)

    def groups(self) -> list[int]:
        """Return the sizes of the groups that were handed over."""
        queue, sizes = self.writer._groups, list[int]()
        while not queue.empty():
            sizes.append(len(queue.get() or []))
        return sizes


def test_who_was_just_answered_may_join_the_next_group(driven: Driven, now: list[float]) -> None:
    """Otherwise the last client to return would always wait for two commits."""
    gathering = Gathering(driven, now, callers=3)
    gathering.ask()
    for _ in range(40):
        gathering.turns.turn()
    assert gathering.groups() == []
    for _ in range(2):
        now[0] += RETURN_SHARE * TOOK / 4
        gathering.ask()
        gathering.turns.turn()
    for _ in range(3):
        gathering.turns.turn()
    assert gathering.groups() == [3]


@pytest.mark.parametrize("callers", [1, 3])
def test_nobody_is_waited_for_longer_than_a_part_of_a_commit(driven: Driven, now: list[float], callers: int) -> None:
    gathering = Gathering(driven, now, callers)
    if callers > 1:  # otherwise there is no client to wait for
        now[0] += RETURN_SHARE * TOOK
    gathering.ask()
    for _ in range(2):
        gathering.turns.turn()
    assert gathering.groups() == [1]


def test_who_came_meanwhile_and_who_was_just_answered_go_together(driven: Driven, now: list[float]) -> None:
    gathering = Gathering(driven, now, callers=2, meanwhile=1)
    for _ in range(40):
        gathering.turns.turn()
    gathering.ask()
    for _ in range(3):
        gathering.turns.turn()
    assert gathering.groups() == []
    gathering.ask()
    for _ in range(3):
        gathering.turns.turn()
    assert gathering.groups() == [3]


def test_a_full_group_waits_for_nobody(driven: Driven, now: list[float]) -> None:
    gathering = Gathering(driven, now, callers=3)
    gathering.writer.queued = MAX_GROUP
    gathering.ask()
    for _ in range(2):
        gathering.turns.turn()
    assert gathering.groups() == [1]


@pytest.mark.parametrize(("took", "later"), [(None, 0.0), (60.0, 0.006)])
def test_after_a_failure_or_a_stall_nobody_is_waited_for_longer(
    driven: Driven, now: list[float], took: float | None, later: float
) -> None:
    """Return None if the request was refused before it was handed over."""
    gathering = Gathering(driven, now, 3, took)
    now[0] += later
    gathering.ask()
    for _ in range(2):
        gathering.turns.turn()
    assert gathering.groups() == [1]


# -- between two groups -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_behind", [False, True])
def test_a_busy_server_looks_around_all_the_same(
    driven: Driven, now: list[float], monkeypatch: pytest.MonkeyPatch, is_behind: bool
) -> None:
    """With a group every 5 ms, other servers' entries and the keys are read as often as promised, but not each time."""
    looks, learned = list[float](), list[float]()
    writer = Writer(driven.engine, lambda _keys: learned.append(now[0]), capacity=10)
    monkeypatch.setattr(driven.engine, "catch_up", lambda: looks.append(now[0]))
    driven.engine.applied.written += is_behind
    for _ in range(2000):
        now[0] += 0.005
        writer._look_after(is_idle=False)
    assert 400 <= len(looks) <= 510
    assert 18 <= len(learned) <= 21


@pytest.mark.parametrize(("is_behind", "waits"), [(False, [20, 20, 20, 20, 20]), (True, [4, 8, 16, 20, 20])])
def test_an_idle_server_soon_reads_what_it_has_written(
    driven: Driven, now: list[float], monkeypatch: pytest.MonkeyPatch, is_behind: bool, waits: list[int]
) -> None:
    """It asks less and less often while another client's transaction is in the way."""
    writer, timeouts, looks = Writer(driven.engine, Gate([]).learn, capacity=10), list[float](), list[float]()

    def nobody_asks(timeout: float) -> None:
        timeouts.append(timeout)
        now[0] += timeout
        if len(timeouts) <= len(waits):
            raise Empty

    monkeypatch.setattr(writer, "_groups", SimpleNamespace(get=nobody_asks))
    monkeypatch.setattr(driven.engine, "catch_up", lambda: looks.append(now[0]))
    driven.engine.applied.written += is_behind
    writer._run()
    assert timeouts == pytest.approx([0.0, *(wait / 1000 for wait in waits)])
    assert len(looks) == len(waits)


def test_the_thread_survives_whatever_fails(driven: Driven, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise its callers would wait for ever, and nobody would notice."""
    writer, answered = Writer(driven.engine, Gate([]).learn, capacity=10), list[Any]()
    monkeypatch.setattr(writer, "_finish", lambda group, results: answered.append((len(group), results[0].kind)))

    def fail(*_: Any, **__: Any) -> None:
        raise LookupError("a bug")

    monkeypatch.setattr(writer, "committed", fail)
    writer._turn([Gathering._waiting()] * 2)
    assert answered == [(2, "unavailable")]
    assert "LookupError" in writer.failure
    assert writer.is_hopeless()
    monkeypatch.setattr(writer, "_look_after", fail)
    writer._turn([Gathering._waiting()])
    assert answered == [(2, "unavailable"), (1, "unavailable")]


def test_a_store_that_hangs_for_a_minute_is_given_up(driven: Driven, now: list[float]) -> None:
    gathering = Gathering(driven, now, callers=1)
    gathering.ask()
    for _ in range(3):
        gathering.turns.turn()
    assert gathering.groups() == [1]
    writer = gathering.writer
    for seconds, is_stalled, is_hopeless in ((1, False, False), (2, True, False), (50, True, False), (10, True, True)):
        now[0] += seconds
        assert (writer.refusal() is not None, writer.is_hopeless()) == (is_stalled, is_hopeless)
    writer._answer([gathering._waiting()], [None])
    assert not writer.is_hopeless()


def test_only_a_writer_that_does_nothing_is_given_up(driven: Driven, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that reads a long journal goes on, and so does a process that was suspended."""
    service, ended = Service(driven.engine), list[int]()
    server, hanging = Server(service, lambda: None, Plan("belated.db", "127.0.0.1", 0)), [True]
    monkeypatch.setattr(service, "is_hanging", lambda: hanging[0])
    monkeypatch.setattr("belated.serve.process.run.os", SimpleNamespace(_exit=ended.append))
    for now in range(100, 200, 4):
        driven.engine.fold.seq += 1
        server._give_up_if_hanging(now)
    hanging[0] = False
    server._give_up_if_hanging(200.0)
    hanging[0] = True
    server._give_up_if_hanging(1000.0)
    server._give_up_if_hanging(1000.0 + LAST_WORDS)
    assert ended == []
    server._give_up_if_hanging(1000.1 + LAST_WORDS)
    assert ended == [STORE_FAILED]


def test_a_failure_that_may_end_is_not_hopeless(driven: Driven) -> None:
    writer = Writer(driven.engine, Gate([]).learn, capacity=10)
    writer._guarded(fail_with(StoreUnreachable("cut")))
    assert (bool(writer.failure), writer.is_hopeless(), writer.failed_at) == (True, False, None)
    writer._guarded(fail_with(StoreError("full")))
    assert writer.is_hopeless()


def fail_with(error: Exception) -> Callable[[], None]:
    def fail() -> None:
        raise error

    return fail


def test_after_a_recovery_a_busy_server_looks_as_often_as_ever(
    driven: Driven, now: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, looks = Writer(driven.engine, Gate([]).learn, capacity=10), list[float]()
    monkeypatch.setattr(driven.engine, "catch_up", lambda: looks.append(now[0]))
    writer.failure, writer.may_recover = "cut", True
    writer._look_after(is_idle=True)
    assert not writer.failure
    now[0] += TAIL_EVERY + 0.001
    writer._look_after(is_idle=False)
    assert len(looks) == 2
