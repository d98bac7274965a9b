"""Several outcomes of one decision add up, each of them once."""

import math
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from belated.serve.domain import ids
from belated.serve.domain.entries import EntryKind
from belated.serve.domain.messages import OutcomeReport
from belated.serve.domain.refusals import Refusal
from belated.serve.domain.settings import OutcomeChoice
from belated.serve.engine.requests import Ask, Tell
from belated.serve.store.verify import verify
from tests.support.engines import Driven, counts, state

RULES = ("first", "last", "sum", "mean")
WIDE = OutcomeChoice(0.0, 100.0)


def combined(rule: str, values: list[float]) -> float:
    """What outcomes add up to, by definition."""
    return {"first": values[0], "last": values[-1], "sum": math.fsum(values), "mean": math.fsum(values) / len(values)}[
        rule
    ]


def told(driven: Driven, id: str, value: float, report_id: str | None, **more: Any) -> tuple[str, int | None]:
    [answer] = driven.do(Tell([OutcomeReport(id, "reward", value, report_id=report_id, **more)]))
    return (answer.kind, answer.revision) if isinstance(answer, Refusal) else (answer.status, answer.revision)


def outcome(driven: Driven) -> float | None:
    [found] = driven.decisions()
    return None if found.outcome is None else found.outcome.value


@pytest.fixture(params=RULES)
def rule(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def new(folder: Path, rule: str, **settings: Any) -> tuple[Driven, str]:
    driven = Driven(folder)
    driven.create(several=rule, outcome=WIDE, **settings)
    return driven, driven.decide()[0].id


def test_outcomes_add_up_by_their_rule(tmp_path: Path, rule: str) -> None:
    driven, id = new(tmp_path, rule)
    values = [3.0, 10.0, 0.0, 10.0]
    statuses = [told(driven, id, value, f"order {n}")[0] for n, value in enumerate(values)]
    assert statuses == ["applied", *(["ignored"] * 3 if rule == "first" else ["added"] * 3)]
    assert outcome(driven) == combined(rule, values)
    assert counts(driven)["reported"] == 1
    assert verify(driven.engine.journal).problems == []


def test_repetitions_in_any_order_count_once(tmp_path: Path, rule: str) -> None:
    reports = [(5.0, "a"), (5.0, "b"), (7.0, "c")]
    for number, order in enumerate(permutations(reports)):
        (folder := tmp_path / str(number)).mkdir()
        driven, id = new(folder, rule)
        for value, name in (*order, *reversed(order), *order):
            told(driven, id, value, name)
        assert outcome(driven) == pytest.approx(combined(rule, [value for value, _ in order]), abs=1e-12)
        before = state(driven)
        assert {told(driven, id, value, name)[0] for value, name in order} <= {"duplicate", "ignored"}
        assert state(driven) == before


def test_reports_of_one_request_add_up_too(tmp_path: Path) -> None:
    driven, id = new(tmp_path, "sum")
    reports = [OutcomeReport(id, "reward", 1.0, report_id=name) for name in "aabcb"]
    assert driven.tell_all(reports) == ["applied", "duplicate", "added", "added", "duplicate"]
    assert outcome(driven) == 3.0


def test_a_report_id_is_needed_to_tell_a_retry(tmp_path: Path, rule: str) -> None:
    driven, id = new(tmp_path, rule)
    if rule == "first":
        assert [told(driven, id, value, None) for value in (5.0, 5.0, 7.0)] == [
            *(("applied", 0), ("duplicate", 0), ("ignored", 0))
        ]
        return
    before = state(driven)
    assert told(driven, id, 5.0, None)[0] == "invalid"
    assert state(driven) == before


def test_a_sum_beyond_the_range_is_refused_and_not_cut_off(tmp_path: Path) -> None:
    driven, id = new(tmp_path, "sum")
    told(driven, id, 60.0, "a")
    before = state(driven)
    [refused] = driven.do(Tell([OutcomeReport(id, "reward", 41.0, report_id="b")]))
    assert "add up to 101.0, beyond the declared range from 0.0 to 100.0" in refused.detail
    assert state(driven) == before
    assert told(driven, id, 40.0, "b") == ("added", 1)
    assert told(driven, id, -5.0, "refund") == ("added", 2)
    assert outcome(driven) == 95.0
    assert told(driven, id, math.nan, "c")[0] == "invalid"


def test_a_rounding_error_does_not_leave_the_range(tmp_path: Path) -> None:
    driven = Driven(tmp_path)
    driven.create(several="sum", outcome=OutcomeChoice(0.0, 0.3))
    [one] = driven.decide()
    assert [told(driven, one.id, 0.1, name)[0] for name in "abc"] == ["applied", "added", "added"]
    assert outcome(driven) == 0.3
    driven.create("mean", several="mean", outcome=OutcomeChoice(0.0, 0.1))
    [one] = driven.decide("mean")
    assert [told(driven, one.id, 0.1, name)[0] for name in "def"] == ["applied", "added", "added"]


@pytest.mark.parametrize("default", [None, 0.0])
def test_a_late_outcome_replaces_the_default_and_more_join_it(tmp_path: Path, rule: str, default: float | None) -> None:
    driven, id = new(tmp_path, rule, reward_wait=10.0, default_outcome=default)
    driven.clock.advance(11)
    driven.engine.expire()
    assert outcome(driven) == default
    assert told(driven, id, 8.0, "a") == ("late", 1)
    assert outcome(driven) == 8.0
    assert told(driven, id, 8.0, "a") == ("duplicate", 1)
    told(driven, id, 4.0, "b")
    assert outcome(driven) == combined(rule, [8.0, 4.0])
    assert verify(driven.engine.journal).problems == []


def test_an_amendment_corrects_one_report(tmp_path: Path, rule: str) -> None:
    driven, id = new(tmp_path, rule)
    for value, name in ((5.0, "a"), (6.0, "b"), (7.0, "c")):
        told(driven, id, value, name)
    assert told(driven, id, 9.0, "a") == ("conflict", 0)
    assert told(driven, id, 9.0, "a", amend=True, revision=0)[0] == "amended"
    assert outcome(driven) == combined(rule, [9.0, 6.0, 7.0])
    assert told(driven, id, 9.0, "a", amend=True, revision=0)[0] == "duplicate"
    newest = told(driven, id, 9.0, "a")[1]
    assert told(driven, id, 2.0, "a", amend=True, revision=newest)[0] == "amended"
    assert told(driven, id, 9.0, "a", amend=True, revision=0)[0] == "superseded"
    assert outcome(driven) == combined(rule, [2.0, 6.0, 7.0])
    assert told(driven, id, 1.0, "a", amend=True)[0] == "conflict"
    told(driven, id, 8.0, "c", amend=True)
    assert outcome(driven) == combined(rule, [2.0, 6.0, 7.0 if rule == "first" else 8.0])
    assert verify(driven.engine.journal).problems == []


def test_any_history_adds_up(tmp_path: Path, rule: str) -> None:
    """Random reports, repetitions and amendments, against a list of what was accepted."""
    generator = np.random.default_rng(7)
    driven, _ = new(tmp_path, rule, reward_wait=50.0, default_outcome=0.0)
    made = [driven.decide()[0].id for _ in range(6)]
    known: dict[str, dict[str, float]] = {id: {} for id in made}
    newest: dict[str, int] = {}
    for turn in range(400):
        id, name, value = str(generator.choice(made)), str(generator.integers(6)), float(generator.integers(1, 9))
        name = f"{id} {name}"
        amend = bool(generator.random() < 0.3)
        status, revision = told(driven, id, value, name, amend=amend, revision=newest.get(name) if amend else None)
        if status in {"applied", "late", "added", "amended"}:
            known[id][name] = value
            newest[name] = revision or 0
        elif status == "conflict":
            assert known[id][name] != value
        if turn % 100 == 50:
            driven.clock.advance(30)
            driven.engine.expire()
            driven.restart(snapshot=turn == 150)
    for found in driven.decisions()[1:]:
        [values] = (known[one] for one in made if seq_of(one) == found.decision.seq)
        assert found.outcome is not None
        assert found.outcome.value == pytest.approx(combined(rule, [*values.values()]), abs=1e-12)
    assert verify(driven.engine.journal).problems == []


def seq_of(id: str) -> int:
    decoded = ids.decode(id)
    assert decoded is not None
    return decoded.seq


def test_the_learner_hears_the_sum_as_one_outcome(tmp_path: Path) -> None:
    """An experiment in which outcomes add up has the state of one that gets amended totals."""
    summed, totals = (Driven(folder) for folder in folders(tmp_path, "summed", "totals"))
    summed.create(several="sum", outcome=WIDE)
    totals.create(outcome=WIDE)
    [one], [other] = summed.decide(), totals.decide()
    assert one.arm == other.arm
    for n, value in enumerate((3.0, 4.0, 5.0)):
        told(summed, one.id, value, str(n))
    for n, value in enumerate((3.0, 7.0, 12.0)):
        totals.tell_all([OutcomeReport(other.id, "reward", value, amend=n > 0, revision=n - 1 if n else None)])
    assert summed["layout"].learner.distribution().tolist() == totals["layout"].learner.distribution().tolist()
    assert summed["layout"].costs() == totals["layout"].costs()
    assert summed["layout"].look().means == totals["layout"].look().means


def folders(parent: Path, *names: str) -> list[Path]:
    for name in names:
        (parent / name).mkdir()
    return [parent / name for name in names]


def test_an_experiment_without_a_rule_stays_as_it_was(tmp_path: Path) -> None:
    driven = Driven(tmp_path)
    driven.create()
    [one] = driven.decide()
    assert told(driven, one.id, 1.0, "a") == ("applied", 0)
    assert told(driven, one.id, 0.5, "b") == ("conflict", 0)
    assert told(driven, one.id, 0.5, "b", amend=True, revision=0) == ("amended", 1)
    assert told(driven, one.id, 1.0, "a") == ("duplicate", 1)
    assert b"several" not in (driven.engine.journal.events(driven["layout"].seq, 0, 1)[0].body or b"")


def test_two_sales_of_a_subject_are_no_conflict(tmp_path: Path) -> None:
    driven = Driven(tmp_path)
    driven.create(several="sum", outcome=WIDE)
    driven.do(Ask("layout", subject="ann"))
    ann = {"experiment": "layout", "subject": "ann"}
    sales = [OutcomeReport("", "reward", 20.0, report_id=f"order {n}", **ann) for n in "12"]  # type: ignore[arg-type]
    assert driven.tell_all([*sales, *sales]) == ["applied", "added", "duplicate", "duplicate"]
    assert outcome(driven) == 40.0
    kinds = [entry.kind for entry in driven.engine.journal.history(2)]
    assert kinds == [EntryKind.REPORTED, EntryKind.AMENDED]


@pytest.mark.parametrize("lowest", [0.0, -10.0])
def test_orders_that_are_cancelled_add_up_to_nothing(tmp_path: Path, lowest: float) -> None:
    """Their sum is a rounding error away from 0, which may be the end of the range."""
    generator, driven = np.random.default_rng(1), Driven(tmp_path)
    driven.create(several="sum", outcome=OutcomeChoice(lowest, 10.0))
    for _ in range(50):
        id = driven.decide()[0].id
        orders = [f"{id} {n}" for n in range(3)]
        for order, value in zip(orders, generator.integers(1, 301, 3) / 100, strict=True):
            told(driven, id, float(value), order)
        assert [told(driven, id, 0.0, order, amend=True)[0] for order in orders] == ["amended"] * 3
    values = [found.outcome.value or 0.0 for found in driven.decisions() if found.outcome is not None]
    assert len(values) == 50
    assert max(map(abs, values)) < 1e-12


def test_a_server_that_is_behind_refuses_no_report_that_others_would_take(tmp_path: Path) -> None:
    """The first report of a sum must lie within the range, a later one need not. So the first one must be known."""
    one = Driven(tmp_path)
    one.create(several="sum", outcome=OutcomeChoice(-10.0, 10.0))
    other = Driven(tmp_path, clock=one.clock, seed=2)
    id = one.decide()[0].id
    other.engine.catch_up()
    assert told(one, id, -8.0, "a")[0] == "applied"
    assert told(other, id, 15.0, "b")[0] == "added"
