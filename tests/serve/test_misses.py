"""A caller who names many decisions that do not exist is refused for a while."""

from pathlib import Path

import pytest

from belated.serve.domain.refusals import Refusal
from belated.serve.engine.engine import Engine
from belated.serve.service import misses
from belated.serve.service.misses import BURST, RATE, Misses
from belated.serve.service.service import Service
from belated.serve.store.sqlite.journal import SQLiteJournal
from tests.support.in_process import Caller, visit


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


def test_reports_of_subjects_that_were_never_decided_are_counted(tmp_path: Path) -> None:
    """Not with unknown ids, because a shop that reports every sale knows most of them to be in no experiment."""

    async def work(caller: Caller) -> None:
        await caller.post("/v1/experiments", {"name": "layout", "arms": ["a", "b"]})
        await caller.post("/v1/experiments/layout/decisions", {"subject": "ann"})
        reports = [{"experiment": "layout", "subject": one, "reward": 1} for one in ("ann", "bob", "eve")]
        unknown = {"decision_id": "00000000-0000-8a12-9f3b-0c5be2bdf86b", "reward": 1}
        assert (await caller.post("/v1/feedback", {"reports": [*reports, unknown]})).status_code == 200
        one = {"subject": "joe", "reward": 1}
        assert (await caller.post("/v1/experiments/layout/feedback", one)).status_code == 404
        metrics = (await caller.get("/metrics")).text
        assert "\nbelated_unknown_subjects_total 3.0\n" in metrics
        assert "\nbelated_unknown_decisions_total 1.0\n" in metrics

    visit(Service(Engine(SQLiteJournal(tmp_path / "belated.db", synchronous="OFF"))), work)


def test_nobody_learns_the_id_of_a_decision_from_a_report_id(tmp_path: Path) -> None:
    """The number of an order can be guessed. Who knows the id of a decision can report it."""

    async def work(caller: Caller) -> None:
        await caller.post("/v1/experiments", {"name": "layout", "arms": ["a", "b"]})
        made = [(await caller.post("/v1/experiments/layout/decisions")).json()["decision_id"] for _ in range(2)]
        report = {"reward": 1, "report_id": "order 7"}
        assert (await caller.post(f"/v1/decisions/{made[0]}/feedback", report)).status_code == 200
        refused = await caller.post(f"/v1/decisions/{made[1]}/feedback", report)
        assert refused.status_code == 409
        assert "was used for another decision" in refused.json()["detail"]
        assert made[0] not in refused.text

    visit(Service(Engine(SQLiteJournal(tmp_path / "belated.db", synchronous="OFF"))), work)
