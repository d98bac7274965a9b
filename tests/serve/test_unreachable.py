"""What a server does while the store cannot be reached, and that it recovers without a trace."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Lock, Semaphore
from typing import Any

import pytest

from belated.errors import StoreUnreachable
from belated.serve.domain.entries import Entry
from belated.serve.domain.history import Mark
from belated.serve.domain.messages import OutcomeReport
from belated.serve.domain.refusals import Refusal
from belated.serve.engine.requests import Answers, Ask, Create, Request, Tell
from belated.serve.engine.writer import Writer
from belated.serve.service.keys import Gate
from belated.serve.service.service import Service
from belated.serve.store.journal import NO_MARK, Journal
from tests.support.engines import Driven, counts, state


def fail_at(driven: Driven, method: str, number: int) -> None:
    """Make one call of the journal fail. `number` says which, counted from 1."""
    journal, called, calls = driven.engine.journal, getattr(driven.engine.journal, method), [0]

    def reach(*arguments: Any) -> Any:
        calls[0] += 1
        if calls[0] == number:
            raise StoreUnreachable("cut")
        return called(*arguments)

    setattr(journal, method, reach)


# -- the engine ------------------------------------------------------------------------------------------------------


def test_waits_that_were_looked_at_before_a_cut_end_after_it(driven: Driven) -> None:
    for name in ("one", "two"):
        driven.create(name, reward_wait=10.0)
        driven.decide(name)
    driven.clock.advance(11)
    fail_at(driven, "decisions", 2)
    with pytest.raises(StoreUnreachable):
        driven.engine.expire()
    driven.engine.expire()
    assert [counts(driven, name) for name in ("one", "two")] == [{"decisions": 1, "expired": 1}] * 2


@pytest.mark.parametrize("method", ["requested", "find", "append"])
def test_a_group_that_is_cut_off_half_way_leaves_nothing_behind(driven: Driven, method: str) -> None:
    driven.create()
    [decision] = driven.decide(key="used")  # so that the keys are looked up
    before = state(driven)
    group: list[Request] = [
        Ask("layout", 2, "k"),
        Tell([OutcomeReport(decision.id, "reward", 1.0)]),
        Ask("layout", 1, "used"),
    ]
    fail_at(driven, method, 1)
    with pytest.raises(StoreUnreachable):
        driven.engine.process(group)
    assert state(driven) == before
    answers, statuses, again = driven.engine.process(group)
    assert isinstance(answers, Answers)
    assert isinstance(again, Answers)
    assert (answers.replayed, statuses, again.replayed) == (False, [("applied", 0)], True)
    assert counts(driven) == {"decisions": 3, "reported": 1}


def test_a_group_that_is_written_but_not_answered_has_one_effect(driven: Driven) -> None:
    """The connection is lost after the database has committed. Only entries that are read later are applied."""
    driven.create()
    [decision] = driven.decide()
    folded, append = state(driven)[1], driven.engine.journal.append

    def lose(entries: Sequence[Entry], mark: Mark = NO_MARK) -> list[int]:
        append(entries, mark)
        raise StoreUnreachable("cut")

    driven.engine.journal.append = lose  # type: ignore[method-assign]
    group: list[Request] = [Ask("layout", 2, "k"), Tell([OutcomeReport(decision.id, "reward", 1.0)])]
    with pytest.raises(StoreUnreachable):
        driven.engine.process(group)
    assert driven.engine.fold.snapshot().state == folded
    driven.engine.journal.append = append  # type: ignore[method-assign]
    driven.engine.catch_up()
    answers, statuses = driven.engine.process(group)
    assert isinstance(answers, Answers)
    assert (answers.replayed, statuses) == (True, [("duplicate", 0)])
    assert counts(driven) == {"decisions": 3, "reported": 1}


# -- those who only read ---------------------------------------------------------------------------------------------


class Watched:
    """A lock that signals when a thread comes to it."""

    def __init__(self) -> None:
        self._lock, self.coming = Lock(), Semaphore(0)

    def acquire(self, timeout: float) -> bool:
        self.coming.release()
        return self._lock.acquire(timeout=timeout)

    def release(self) -> None:
        self._lock.release()


def test_readers_behind_one_that_timed_out_do_not_wait_too(driven: Driven, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a crowd of readers would wait one after the other."""
    reader, lock, is_cut, asked = Service(driven.engine)._reader, Watched(), Event(), list[Journal]()
    monkeypatch.setattr(reader, "_lock", lock)
    monkeypatch.setattr("belated.serve.service.reading.RECONNECT_TIMEOUT", 0.0)

    def time_out(_: Journal) -> None:
        is_cut.wait()
        raise StoreUnreachable("cut")

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(reader.ask, time_out)
        assert lock.coming.acquire(timeout=10)
        second = pool.submit(reader.ask, asked.append)
        assert lock.coming.acquire(timeout=10)
        is_cut.set()
    assert isinstance(first.exception(), StoreUnreachable)
    refused = second.exception()
    assert isinstance(refused, Refusal)
    assert (refused.kind, refused.retry_after, asked) == ("unavailable", 1, [])
    assert reader.ask(lambda journal: journal.last()) == 0, "a later reader tries again"


def test_an_answer_that_rests_on_what_was_read_waits_for_the_standby(driven: Driven) -> None:
    driven.create()
    [decision] = driven.decide(key="k")
    driven.tell(decision, 1.0)
    repeats: list[Request] = [Ask("layout", 1, "k"), Tell([OutcomeReport(decision.id, "reward", 1.0)])]
    repeats.append(Create(driven["layout"].settings))
    for repeat in repeats:
        fail_at(driven, "settle", 1)
        with pytest.raises(StoreUnreachable):
            driven.engine.process([repeat])
        assert not isinstance(driven.do(repeat), Refusal)
    fail_at(driven, "settle", 1)
    driven.engine.process([*repeats[:2], Ask("layout")])  # the append of the group waits for it


def test_requests_are_refused_until_commits_reach_the_standby_again(driven: Driven) -> None:
    writer = Writer(driven.engine, Gate([]).learn, capacity=100)
    writer.failure, writer.may_recover = "lost", True
    fail_at(driven, "settle", 1)
    writer._try_again()
    assert writer.refusal() is not None
    writer._try_again()
    assert writer.refusal() is None
