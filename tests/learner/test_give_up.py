"""Rounds that are given up cost 1 and no longer count. Their feedback may still come."""

import json
from typing import Any

import numpy as np
import pytest

from belated import FTRL, Decision, kernels
from belated.errors import DuplicateReport, InvalidInput, UnknownRound
from belated.kernels.means import COUNT, SUM
from belated.replicated.shared_learner import SharedLearner
from belated.tunings import Means, Shadow, Simple
from tests.support.catalogue import TUNINGS
from tests.support.oracles import record_batch

KEEPING = [name for name in TUNINGS if "discarding" not in name]


@pytest.mark.parametrize("name", TUNINGS)
def test_a_closed_round_costs_one_and_is_forgotten(name: str) -> None:
    learner = FTRL(4, TUNINGS[name], seed=3)
    decisions = [learner.ask() for _ in range(300)]
    before, losses = learner.certificate(), learner.status.estimated_losses
    learner.give_up(decisions[200].round)
    assert learner.outstanding == 299
    assert before <= learner.certificate() <= min(300.0, before + 1)
    assert learner.status.estimated_losses.tolist() == losses.tolist()
    with pytest.raises(DuplicateReport):
        learner.tell(decisions[200].round, 0.5)
    with pytest.raises(DuplicateReport):
        learner.give_up(decisions[200].round)
    for decision in decisions:
        if decision.round != decisions[200].round:
            learner.give_up(decision.round)
    assert learner.outstanding == 0
    assert learner.certificate() == 300.0
    assert learner.snapshot()["ledger"]["round"] == []


def test_the_tuning_no_longer_counts_it() -> None:
    """D_t of the simple tuning is the sum over rounds of what waits, without closed rounds."""
    learner, waiting, backlog = FTRL(3, Simple(), seed=1), set[int](), 0
    generator = np.random.default_rng(2)
    for _ in range(400):
        backlog += len(waiting)
        waiting.add(learner.ask().round)
        assert learner.status.backlog == backlog
        for round in list(waiting):
            if generator.random() < 0.1:
                waiting.remove(round)
                if generator.random() < 0.5:
                    learner.give_up(round)
                else:
                    learner.tell(round, generator.random())
    assert learner.outstanding == len(waiting)


@pytest.mark.parametrize("name", KEEPING)
def test_feedback_that_comes_after_all_counts_exactly(name: str) -> None:
    closing, waiting = (FTRL(4, TUNINGS[name], seed=3) for _ in range(2))
    decisions = closing.ask(50)
    assert waiting.ask(50) == decisions
    for decision in decisions:
        if decision.round % 3:
            closing.tell(decision.round, 0.7)
        else:
            closing.give_up(decision.round)
            closing.amend(decision, None, 0.7)
        waiting.tell(decision.round, 0.7)
    assert waiting.certificate() <= closing.certificate() <= 50
    if isinstance(TUNINGS[name], Means):  # what was given up has lost its centre, so the present one takes its place
        expected = waiting.status.estimated_losses
        for decision in decisions[2::3]:
            expected += 0.7 - 0.5  # nothing was reported when it was decided
            expected[decision.arm] -= (0.7 - 0.5) / decision.probability
        np.testing.assert_allclose(closing.status.estimated_losses, expected, rtol=1e-12, atol=1e-12)
        mine, theirs = (learner._state.policies[kernels.ON_MEANS, COUNT : SUM + 1] for learner in (closing, waiting))
        np.testing.assert_allclose(mine, theirs, rtol=1e-12)
        return
    np.testing.assert_allclose(closing.status.estimated_losses, waiting.status.estimated_losses, rtol=1e-12)
    assert closing.measured_certificate() == pytest.approx(waiting.measured_certificate(), rel=1e-9)


def test_a_report_of_a_closed_round_needs_a_closed_round() -> None:
    learner = FTRL(3, seed=1)
    first, second = learner.ask(), learner.ask()
    learner.tell(first.round, 1.0)
    with pytest.raises(InvalidInput, match="still waits"):
        learner.amend(second, None, 0.5)
    with pytest.raises(InvalidInput, match="do not allow it"):
        learner.amend(first, None, 0.5)
    with pytest.raises(UnknownRound):
        learner.give_up(3)


def test_a_snapshot_knows_what_was_closed() -> None:
    learner = FTRL(3, seed=1)
    decisions = [learner.ask() for _ in range(100)]
    for decision in decisions[::2]:
        learner.give_up(decision.round)
    again = FTRL.restore(json.loads(json.dumps(learner.snapshot())))
    for one in (learner, again):
        one.amend(decisions[0], None, 0.25)
    assert again.snapshot() == learner.snapshot()
    assert [again.ask() for _ in range(100)] == [learner.ask() for _ in range(100)]


def test_the_alarm_does_not_get_more_room_by_closing() -> None:
    """What the shadow may lose grows with reports only, because a closed round already costs 1 in the certificate."""
    plain, closing = (FTRL(2, Shadow(), seed=1) for _ in range(2))
    for learner in (plain, closing):
        learner.ask(200)
    for round in range(1, 101):
        closing.give_up(round)
    assert closing._state.clock["charge"][0] - (200 - closing._state.clock["charged"][0]) == pytest.approx(
        plain._state.clock["charge"][0] - (200 - plain._state.clock["charged"][0])
    )


@pytest.mark.parametrize("name", TUNINGS)
def test_a_recorded_batch_is_what_a_twin_drew(name: str) -> None:
    drawing, recording = (FTRL(5, TUNINGS[name], seed=seed) for seed in (1, 2))
    for size in (1, 5, 0, 130, 1, 64):
        decisions = drawing.ask(size)
        batch = [one.arm for one in decisions], [one.probability for one in decisions]
        assert record_batch(recording, *batch) == decisions
        for decision in decisions[::2]:
            drawing.tell(decision.round, 0.5)
            recording.tell(decision.round, 0.5)
    drop = ("generator", "uniforms")
    mine, theirs = ({k: v for k, v in one.snapshot().items() if k not in drop} for one in (drawing, recording))
    assert mine == theirs


def test_the_decision_of_another_learner_is_not_given_up() -> None:
    learner: Any = FTRL(["a", "b"], seed=1)
    decisions = learner.ask(3)
    round, arm, probability = decisions[1]
    other = "b" if arm == "a" else "a"
    wrong: list[tuple[Any, float]] = [(other, probability), (arm, probability / 2), ("c", probability), (0, 1.0)]
    before = learner.snapshot()
    for its_arm, its_probability in wrong:
        said = (
            f"round 2 of this learner drew arm '{arm}' with .* arm {its_arm!r} with .* Pass it to the learner that made"
        )
        with pytest.raises(InvalidInput, match=said):
            learner.give_up(Decision(round, its_arm, its_probability))
    assert learner.snapshot() == before
    learner.give_up(Decision(*json.loads(json.dumps(decisions[1]))))
    with pytest.raises(DuplicateReport):  # it does not wait any more, so nothing is known about it
        learner.give_up(Decision(round, other, probability))
    learner.tell(decisions[0], 0.5)
    learner.give_up(3)
    assert learner.outstanding == 0


def test_the_decision_of_another_learner_is_not_given_up_after_a_change_of_arms_either() -> None:
    learner: Any = FTRL(["a", "b", "c"], seed=1)
    decisions = [learner.record(arm, 0.25) for arm in "abca"]
    learner.change_arms(add=["d"], retire=["c"])
    decisions += [learner.record("d", 0.25), learner.record("b", 0.25)]
    for decision in decisions:
        if decision.arm != "c":
            with pytest.raises(InvalidInput, match=f"round {decision.round} of this learner drew arm '{decision.arm}'"):
                learner.give_up(decision._replace(arm="e"))
        learner.give_up(decision)
    assert learner.outstanding == 0


def test_a_batch_that_makes_no_sense_is_refused() -> None:
    shared = SharedLearner(FTRL(3, seed=1), 0)
    bad: list[tuple[Any, Any]] = [
        ([0, 3], [0.5, 0.5]),
        ([-1], [0.5]),
        ([0], [0.0]),
        ([0], [1.5]),
        ([0], [float("nan")]),
    ]
    bad += [([0, 1], [0.5]), ([0.5], [0.5]), ([[0]], [0.5]), (["a"], [0.5]), ([0], ["a"])]
    for arms, probabilities in bad:
        with pytest.raises(InvalidInput):
            shared.enter(range(1, 1 + len(arms)), 0, arms, probabilities, None)
    assert shared.learner.round == shared.last == 0
    shared.enter([1], 0, [2], [0.25], None)
    assert shared.learner.round == shared.last == 1
