"""The document says which option is better, what to show, and what learning has cost, in the outcome's units."""

import msgspec
import numpy as np
import pytest

from belated.serve.domain.operating import Operation
from belated.serve.domain.refusals import Refusal
from belated.serve.domain.settings import ArmChange, OutcomeChoice, TuningChoice
from belated.serve.engine.requests import Ask, ChangeArms, Close, Operate
from belated.serve.service.descriptions import ExperimentView
from belated.serve.service.views import view
from tests.support.engines import NO_STORE, Driven

RANGES = [OutcomeChoice(), OutcomeChoice(-1, 3), OutcomeChoice(0, 50, "lower")]


def document(driven: Driven) -> ExperimentView:
    return view(driven["layout"], NO_STORE, driven.clock())


def play(driven: Driven, outcome: OutcomeChoice, turns: int = 30, better: str = "b", n_open: int = 0) -> None:
    """One option nearly always has the best outcome, and the others the worst. Some decisions stay open."""
    units, generator = outcome.build(), np.random.default_rng(5)
    for turn in range(turns):
        made = driven.decide(size=20)
        for one in made[n_open if turn == 0 else 0 :]:
            loss = float(generator.random() < (0.05 if one.arm == better else 0.95))
            driven.tell(one, units.value(loss), word=units.word)


def create(driven: Driven, outcome: OutcomeChoice = RANGES[0]) -> None:
    driven.create(outcome=outcome, tuning=TuningChoice("advanced"))


@pytest.mark.parametrize("outcome", RANGES)
def test_the_verdict_is_that_of_the_evidence_in_units(driven: Driven, outcome: OutcomeChoice) -> None:
    create(driven, outcome)
    play(driven, outcome, n_open=3)
    said, found = document(driven), driven["layout"].evidence.verdict()
    span, verdict = outcome.highest - outcome.lowest, said.verdict
    assert (verdict.better, verdict.leader, verdict.decided, verdict.sure) == ("b", "b", True, found.sure)
    assert (verdict.open, verdict.left_out, verdict.stale) == (3, found.left_out, 0)
    assert [one.name for one in verdict.comparisons] == ["a", "c"]
    for one, raw in zip(verdict.comparisons, found.comparisons, strict=True):
        assert (one.difference, one.low, one.high) == pytest.approx([n * span for n in raw[1:4]])
        assert 0 < one.low <= one.difference <= one.high <= span, "the others are worse, whichever end is better"
        assert one.sure == raw.sure
        assert one.swing == pytest.approx(raw.swing * span)
    assert "drawn" in verdict.assumption
    for arm, interval in zip(said.arms, driven["layout"].evidence.means(), strict=True):
        assert interval is not None
        assert arm.mean == pytest.approx(outcome.build().value(interval.mean))
        assert arm.low is not None
        assert arm.high is not None
        assert arm.low <= arm.mean <= arm.high  # type: ignore[operator]
        assert arm.high - arm.low == pytest.approx(span * (interval.high - interval.low))
        assert (arm.open, arm.provisional_mean) == (interval.open, None)
    assert (said.arms[1].mean or 0) > (said.arms[0].mean or 0) or outcome.better == "lower"


def test_nothing_is_claimed_before_outcomes_come(driven: Driven) -> None:
    create(driven)
    for _ in range(2):
        verdict = document(driven).verdict
        assert (verdict.better, verdict.leader, verdict.sure, verdict.decided) == (None, None, 0.0, False)
        assert verdict.comparisons == []
        driven.decide(size=10)
    assert [(arm.mean, arm.low, arm.high) for arm in document(driven).arms] == [(None, None, None)] * 3
    assert sum(arm.share or 0 for arm in document(driven).arms) == pytest.approx(1.0)
    assert document(driven).verdict.open == 20


def test_an_open_decision_counts_as_the_default_in_the_provisional_mean(driven: Driven) -> None:
    driven.create(outcome=OutcomeChoice(0, 10), reward_wait=5.0, default_outcome=2.0)
    made = driven.decide(size=60)
    for one in made[:20]:
        driven.tell(one, 10.0)
    for arm in document(driven).arms:
        reported = sum(one.arm == arm.name for one in made[:20])
        assert arm.mean == pytest.approx(10.0)
        assert arm.provisional_mean == pytest.approx((10 * reported + 2 * (arm.chosen - reported)) / arm.chosen)
    driven.clock.advance(5.0)
    driven.engine.expire()
    said = document(driven)
    assert [arm.open for arm in said.arms] == [0, 0, 0]
    assert said.share_never is None, "a decision that ended with the default has its outcome"
    for arm in said.arms:
        assert arm.mean == pytest.approx(arm.provisional_mean)
    driven.create("silent", reward_wait=5.0)
    driven.tell(driven.decide("silent", 4)[0], 1.0)
    driven.clock.advance(5.0)
    driven.engine.expire()
    assert view(driven["silent"], NO_STORE, driven.clock()).share_never == 0.75


def test_a_closed_experiment_says_what_to_show(driven: Driven) -> None:
    create(driven)
    play(driven, RANGES[0])
    assert document(driven).show is None, "it still runs"
    driven.close()
    assert msgspec.to_builtins(document(driven).show) == {"name": "b", "decided": True}
    refusal = driven.do(Ask("layout"))
    assert isinstance(refusal, Refusal)
    assert refusal.kind == "conflict"
    assert refusal.detail == (
        "the experiment 'layout' is closed. It takes reports, but makes no more decisions. From now on show 'b'."
    )


def test_without_a_verdict_the_leader_is_shown(driven: Driven) -> None:
    create(driven)
    play(driven, RANGES[0], turns=1)
    driven.close()
    shown, verdict = document(driven).show, document(driven).verdict
    assert shown is not None
    assert (shown.name, shown.decided) == (verdict.leader, False)


@pytest.mark.parametrize("outcome", [OutcomeChoice(0, 100), OutcomeChoice(-100, 0, "lower")])
def test_the_leader_has_the_best_average_that_the_page_shows(driven: Driven, outcome: OutcomeChoice) -> None:
    """Nobody reports that nothing was sold. Its wait is not over, so only sales are known."""
    units = outcome.build()
    driven.create(arms=("dear", "cheap"), outcome=outcome, reward_wait=86_400.0, default_outcome=units.value(1.0))
    for turn in range(100):
        for one in driven.decide(size=4):
            if turn % (10 if one.arm == "dear" else 2) == 0:
                driven.tell(one, units.value(0.5 if one.arm == "dear" else 0.6), word=units.word)
    said = document(driven)
    assert said.verdict.leader == "cheap"
    best = max(said.arms, key=lambda arm: -units.loss(arm.provisional_mean or 0.0))
    assert best.name == "cheap"
    assert min(said.arms, key=lambda arm: units.loss(arm.mean or 0.0)).name == "dear"
    driven.do(Operate("layout", Operation("ended")))
    assert [one.arm for one in driven.decide()] == ["cheap"]


def test_a_retired_option_is_not_shown_and_a_single_one_is(driven: Driven) -> None:
    create(driven)
    play(driven, RANGES[0])
    driven.do(ChangeArms("layout", ArmChange(retire=["b"])))
    assert document(driven).verdict.leader in ("a", "c")
    driven.do(ChangeArms("layout", ArmChange(retire=["a"])))
    assert document(driven).verdict.leader is None
    driven.do(Close("layout"))
    assert msgspec.to_builtins(document(driven).show) == {"name": "c", "decided": False}


def test_an_experiment_without_outcomes_has_nothing_to_show(driven: Driven) -> None:
    create(driven)
    driven.decide()
    driven.close()
    assert document(driven).show is None
    refusal = driven.do(Ask("layout"))
    assert isinstance(refusal, Refusal)
    assert refusal.detail.endswith("makes no more decisions.")


@pytest.mark.parametrize("outcome", RANGES)
def test_costs_are_split_into_what_is_known_and_what_is_open(driven: Driven, outcome: OutcomeChoice) -> None:
    create(driven, outcome)
    play(driven, outcome, n_open=7)
    span, costs, learner = outcome.highest - outcome.lowest, document(driven).costs, driven["layout"].learner
    assert costs.most == 600 * span
    assert costs.open == pytest.approx(learner.status.open_cost * span)
    assert costs.known + costs.open == pytest.approx(learner.measured_certificate() * span)
    assert costs.proven == pytest.approx(learner.certificate("any") * span)
    assert costs.bound == pytest.approx(learner.regret_bound() * span)
    assert costs.proven < costs.most


def test_known_costs_do_not_fall_when_open_decisions_drain(driven: Driven) -> None:
    """What is known of the others stays. Only the part that is open gets smaller."""
    driven.create(tuning=TuningChoice("advanced"))
    made = driven.decide(size=50)
    for one in made[:10]:
        driven.tell(one, 0.5)
    before = document(driven).costs
    for one in made[10:]:
        driven.tell(one, 0.5)
    after = document(driven).costs
    assert (before.open, after.open) == (40, 0)
    assert after.known >= before.known
