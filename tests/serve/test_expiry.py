"""Waits that end. The default is assumed once, and a late report counts as if it had come in time."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from belated.serve.domain import ids
from belated.serve.domain.entries import EntryKind
from belated.serve.domain.messages import OutcomeReport
from belated.serve.domain.settings import TuningChoice
from tests.support.engines import Driven, counts, last_entry, state
from tests.support.means import known

WAIT = 60.0


def test_a_wait_ends_exactly_at_its_end(driven: Driven) -> None:
    driven.create(reward_wait=WAIT, default_outcome=0.0)
    driven.decide()
    driven.clock.advance(WAIT)
    driven.clock.now -= 1
    driven.engine.expire()
    assert counts(driven) == {"decisions": 1}
    driven.clock.now += 1
    driven.engine.expire()
    entry = last_entry(driven)
    assert (entry.kind, entry.value, entry.revision) == (EntryKind.EXPIRED, 0.0, 0)
    assert entry.at == driven.clock.now
    assert counts(driven) == {"decisions": 1, "expired": 1}


def test_nothing_expires_twice_or_without_a_wait_or_after_a_report(driven: Driven) -> None:
    driven.create(reward_wait=WAIT)
    driven.create("patient")
    driven.decide("patient", 2)
    told, waiting, young = driven.decide()[0], driven.decide()[0], None
    driven.tell(told, 1.0)
    driven.clock.advance(WAIT - 1)
    [young] = driven.decide()
    driven.clock.advance(1)
    for _ in range(3):
        driven.engine.expire()
        driven.restart()
    assert counts(driven) == {"decisions": 3, "reported": 1, "expired": 1}
    assert counts(driven, "patient") == {"decisions": 2}
    driven.clock.advance(10 * WAIT)
    for _ in range(3):
        driven.engine.expire()
    assert counts(driven) == {"decisions": 3, "reported": 1, "expired": 2}
    outcomes = [found.outcome and found.outcome.kind for found in driven.decisions()]
    assert outcomes == [EntryKind.REPORTED, EntryKind.EXPIRED, EntryKind.EXPIRED]
    assert [found.decision.round for found in driven.decisions()] == [told.round, waiting.round, young.round]


@pytest.mark.parametrize("snapshot", [False, True])
def test_a_wait_goes_on_over_a_restart(driven: Driven, snapshot: bool) -> None:
    driven.create(reward_wait=WAIT, default_outcome=1.0)
    driven.decide(size=3)
    driven.clock.advance(WAIT / 2)
    driven.engine.expire()
    driven.restart(snapshot=snapshot)
    driven.decide()
    driven.clock.advance(WAIT / 2)
    driven.engine.expire()
    assert counts(driven) == {"decisions": 4, "expired": 3}
    driven.restart(snapshot=snapshot)
    driven.clock.advance(WAIT / 2)
    driven.engine.expire()
    assert counts(driven) == {"decisions": 4, "expired": 4}


def test_a_crowd_expires_in_parts(driven: Driven) -> None:
    driven.create(reward_wait=WAIT)
    driven.decide(size=4500)
    driven.clock.advance(WAIT)
    looked = [driven.engine.expire() for _ in range(4)]
    assert looked == [2000, 2000, 500, 0]
    assert counts(driven) == {"decisions": 4500, "expired": 4500}


def test_an_end_that_is_lost_before_it_is_applied_is_written_again(
    driven: Driven, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failover may lose an end that was committed, before the server has read it back."""
    driven.create(reward_wait=WAIT, default_outcome=0.0)
    [first] = driven.decide()
    driven.clock.advance(WAIT)
    with monkeypatch.context() as patch:
        patch.setattr(driven.engine.applied, "append", lambda *_entries, **_also: [])
        assert driven.engine.expire() == 1
    assert counts(driven) == {"decisions": 1}
    assert driven.engine.expire() == 1
    assert counts(driven) == {"decisions": 1, "expired": 1}
    assert ids.encode(first.at, last_entry(driven).decision or 0, last_entry(driven).nonce or 0) == first.id


def test_a_decision_that_is_dated_too_early_waits_as_long_as_the_one_before_it(driven: Driven) -> None:
    driven.create(reward_wait=WAIT)
    driven.decide()
    driven.clock.advance(-3600)
    driven.decide()
    driven.clock.advance(3600 + WAIT - 0.001)
    driven.engine.expire()
    assert counts(driven) == {"decisions": 2}
    driven.clock.advance(0.001)
    driven.engine.expire()
    assert counts(driven) == {"decisions": 2, "expired": 2}


@pytest.mark.parametrize("default", [None, 0.0, 0.75])
@pytest.mark.parametrize("tuning", ["means", "shadow", "simple"])
def test_a_late_truth_counts_as_if_it_had_been_told_in_place_of_the_default(
    tmp_path: Path, default: float | None, tuning: Any
) -> None:
    late, prompt = twins(tmp_path, tuning=tuning, reward_wait=WAIT, default_outcome=default)
    for size in (1, 7, 30):
        for one, other in zip(late.decide(size=size), prompt.decide(size=size), strict=True):
            assert one.arm == other.arm
    rounds = range(len(late.decisions()))
    reward = [round(0.1 + 0.02 * (7 * number % 38), 2) for number in rounds]  # in no order that looks like a run
    for driven in (late, prompt):
        driven.clock.advance(WAIT)
    late.engine.expire()
    assert counts(late)["expired"] == len(rounds)
    assert bool(learned(late).any()) == (default is not None)
    for number in rounds:
        assert late.tell(id_of(late, number), reward[number]) == "late"
        assert prompt.tell(id_of(prompt, number), reward[number]) == "applied"
    np.testing.assert_allclose(learned(late), learned(prompt), rtol=1e-12)
    before = state(late)
    assert late.tell(id_of(late, 0), reward[0]) == "duplicate"
    assert late.tell(id_of(late, 0), 1.0) == "conflict"
    assert state(late) == before
    assert late.tell(id_of(late, 0), 1.0, amend=True) == "amended"
    assert prompt.tell(id_of(prompt, 0), 1.0, amend=True) == "amended"
    np.testing.assert_allclose(learned(late), learned(prompt), rtol=1e-12, atol=1e-12)
    if tuning == "means":  # the centre of a round that was given up is forgotten, and so the lead differs a little
        exactness = 1e-3 if default is None else 1e-12
        np.testing.assert_allclose(late["layout"].distribution(), prompt["layout"].distribution(), rtol=exactness)
    assert counts(late) == {"decisions": 38, "expired": 38, "late": 38, "amended": 1}


def learned(driven: Driven) -> NDArray[np.float64]:
    """What reports have taught the learner: means, or estimated losses."""
    experiment = driven["layout"]
    if experiment.settings.tuning.name == "means":
        return np.array([(one.reports, one.losses) for one in known(experiment).values()])
    return experiment.learner.status.estimated_losses


def twins(tmp_path: Path, *, tuning: Any, **settings: Any) -> tuple[Driven, Driven]:
    """Two engines that draw the same arms."""
    both = []
    for name in ("late", "prompt"):
        (tmp_path / name).mkdir()
        both.append(Driven(tmp_path / name))
        both[-1].create(tuning=TuningChoice(tuning), **settings)
    return both[0], both[1]


def id_of(driven: Driven, number: int) -> str:
    decision = driven.decisions()[number].decision
    return ids.encode(decision.at, decision.seq, decision.nonce or 0)


def test_the_default_itself_is_late_first_and_then_a_duplicate(driven: Driven) -> None:
    driven.create(reward_wait=WAIT, default_outcome=0.5)
    [decision] = driven.decide()
    driven.clock.advance(WAIT)
    driven.engine.expire()
    losses = driven["layout"].learner.status.estimated_losses
    assert [driven.tell(decision, 0.5) for _ in range(3)] == ["late", "duplicate", "duplicate"]
    assert driven["layout"].learner.status.estimated_losses.tolist() == losses.tolist()
    assert counts(driven) == {"decisions": 1, "expired": 1, "late": 1}


def test_a_late_report_wants_no_amend_but_may_have_it(driven: Driven) -> None:
    driven.create(reward_wait=WAIT)
    [decision] = driven.decide()
    driven.clock.advance(WAIT)
    driven.engine.expire()
    assert driven.tell(decision, 0.5, amend=True) == "late"
    assert driven.tell_all([OutcomeReport(decision.id, "reward", 0.5), OutcomeReport(decision.id, "reward", 1.0)]) == [
        "duplicate",
        "conflict",
    ]
