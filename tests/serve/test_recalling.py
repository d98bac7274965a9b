"""After a start the open decisions are recalled, so that their reports need no look-up in a store that is far away."""

from collections.abc import Sequence
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from belated.errors import StoreUnreachable
from belated.serve.domain.entries import Found
from belated.serve.domain.ids import decode
from belated.serve.domain.messages import OutcomeReport
from belated.serve.domain.parts import Part
from belated.serve.engine import recalling, recent
from belated.serve.engine.recalling import Recalling, open_decisions
from belated.serve.engine.requests import Ask, Tell
from belated.serve.store.sqlite.journal import SQLiteJournal
from tests.support.engines import Driven, counts


@pytest.fixture(autouse=True)
def far(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SQLiteJournal, "is_far", True)
    monkeypatch.setattr(recalling, "AT_ONCE", 10)
    monkeypatch.setattr(recalling, "RETRY_EVERY", 0.01)


def restarted(driven: Driven) -> tuple[list[str], list[str]]:
    """Two experiments with open and with ended decisions, after a restart. Returns the ids of both kinds."""
    open, ended = list[str](), list[str]()
    for name in ("one", "two"):
        driven.create(name)
        ids = [one.id for one in driven.decide(name, 50)]
        driven.tell_all([OutcomeReport(id, "reward", 1.0) for id in ids[::2]])
        open, ended = open + ids[1::2], ended + ids[::2]
    driven.restart(snapshot=True)
    return open, ended


def recall(driven: Driven) -> None:
    one = Recalling(driven.engine)
    one.start()
    one._thread.join()
    one.stop()


def test_open_decisions_need_no_look_up_after_a_start(driven: Driven, monkeypatch: pytest.MonkeyPatch) -> None:
    open, ended = restarted(driven)
    numbers = open_decisions(driven.engine.fold)
    assert list(numbers) == sorted(numbers, reverse=True)
    assert len(numbers) == len(open)
    recall(driven)
    assert len(driven.engine.recent) == len(open)
    looks, find = list[int](), driven.engine.journal.find

    def look(seqs: Sequence[int]) -> dict[int, Found]:
        looks.append(len(seqs))
        return find(seqs)

    monkeypatch.setattr(driven.engine.journal, "find", look)
    assert driven.tell_all([OutcomeReport(id, "reward", 0.5) for id in open]) == ["applied"] * len(open)
    assert looks == []
    assert driven.tell_all([OutcomeReport(ended[0], "reward", 0.5)]) == ["conflict"]
    assert looks == [1]


def test_decisions_made_meanwhile_are_newer(driven: Driven) -> None:
    open, _ = restarted(driven)
    thread = Recalling(driven.engine)
    made = driven.decide("one", 5)
    thread.start()
    thread._thread.join()
    remembered = [driven.engine.recent.get(seq) for seq in open_decisions(driven.engine.fold)]
    assert len(remembered) == len(open) + len(made)
    assert None not in remembered


def test_an_outcome_that_comes_while_its_decision_is_recalled_counts_once(
    driven: Driven, monkeypatch: pytest.MonkeyPatch
) -> None:
    open, _ = restarted(driven)
    find, told = SQLiteJournal.find, list[Any]()

    def late(journal: SQLiteJournal, seqs: Sequence[int]) -> dict[int, Found]:
        found = find(journal, seqs)
        if journal is not driven.engine.journal and len(seqs) > 1 and not told:
            told.append(driven.do(Tell([OutcomeReport(open[-1], "reward", 0.5)])))
        return found

    monkeypatch.setattr(SQLiteJournal, "find", late)
    recall(driven)
    assert told == [[("applied", 0)]]
    assert len(driven.engine.recent) == len(open) - 1
    assert driven.tell_all([OutcomeReport(open[-1], "reward", 0.5)]) == ["duplicate"]
    assert counts(driven, "two") == {"decisions": 50, "reported": 26}


def test_it_goes_on_after_a_cut(driven: Driven, monkeypatch: pytest.MonkeyPatch) -> None:
    open, _ = restarted(driven)
    find, calls = SQLiteJournal.find, list[int]()

    def cut(journal: SQLiteJournal, seqs: Sequence[int]) -> dict[int, Found]:
        calls.append(len(seqs))
        if len(calls) in (2, 3):
            raise StoreUnreachable("cut")
        return find(journal, seqs)

    monkeypatch.setattr(SQLiteJournal, "find", cut)
    recall(driven)
    assert len(driven.engine.recent) == len(open)
    assert calls == [10] * 7


def test_a_stop_does_not_wait_for_the_rest(driven: Driven, monkeypatch: pytest.MonkeyPatch) -> None:
    restarted(driven)
    find, is_reading, may_go_on = SQLiteJournal.find, Event(), Event()

    def slow(journal: SQLiteJournal, seqs: Sequence[int]) -> dict[int, Found]:
        is_reading.set()
        assert may_go_on.wait(10)
        return find(journal, seqs)

    monkeypatch.setattr(SQLiteJournal, "find", slow)
    one = Recalling(driven.engine)
    one.start()
    assert is_reading.wait(10)
    one._is_stopping.set()
    may_go_on.set()
    one.stop()
    assert len(driven.engine.recent) == 10


def test_another_history_is_not_recalled(driven: Driven, tmp_path: Path) -> None:
    """After a failover the new connection may lead to a server that has other decisions under the same numbers."""
    restarted(driven)
    (tmp_path / "other").mkdir()
    other = Driven(tmp_path / "other", seed=2)
    other.create("one")
    other.decide("one", 200)
    driven.engine.journal.reader = lambda: other.engine.journal  # type: ignore[method-assign]
    recall(driven)
    assert len(driven.engine.recent) == 0


def test_a_store_that_is_near_is_not_read(driven: Driven, monkeypatch: pytest.MonkeyPatch) -> None:
    restarted(driven)
    monkeypatch.setattr(SQLiteJournal, "is_far", False)
    one = Recalling(driven.engine)
    one.start()
    one.stop()
    assert len(driven.engine.recent) == 0


def test_a_repeated_report_of_a_subject_is_known_as_such_in_a_far_store(
    driven: Driven, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is remembered of a decision there does not say whose it is."""
    monkeypatch.setattr(recent, "PART", 1)
    driven.restart()
    driven.create(several="sum")
    report = OutcomeReport("", "reward", 1.0, report_id="order 1", experiment="layout", subject="ann")
    arm = driven.do(Ask("layout", subject="ann")).decisions[0].arm
    assert driven.do(Tell([report]))[0].status == "applied"
    driven.change(retire=(arm,))
    assert driven.do(Ask("layout", subject="ann")).decisions[0].arm != arm
    assert driven.do(Tell([report]))[0].status == "duplicate"


def test_decisions_whose_outcome_has_parts_are_not_taken_to_be_without_any(driven: Driven) -> None:
    parts = {"quality": Part(0.0, 1.0, "higher", 1.0), "cost": Part(0.0, 1.0, "lower", 1.0)}
    driven.create("one", parts=parts)
    driven.create("two")
    first, second = driven.decide("one")[0], driven.decide("two")[0]
    driven.tell_all([OutcomeReport(first.id, "parts", 0.0, parts={"cost": 0.5})])
    driven.restart(snapshot=True)
    named = decode(second.id)
    assert named is not None
    assert open_decisions(driven.engine.fold).tolist() == [named.seq]
