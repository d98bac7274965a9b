"""An amended loss counts as if it had been reported at first."""

import itertools
import json
import math
import re
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from belated import FTRL, Decision, OutcomeRange, kernels
from belated.errors import InvalidInput, UnknownRound
from belated.kernels.means import COUNT, MISSING, SUM
from belated.tunings import Advanced, Means, Shadow
from tests.support.catalogue import TUNINGS


def means_of(learner: FTRL) -> NDArray[np.float64]:
    """The number of reports of every arm, and the sum of their losses."""
    return np.array(learner._state.policies[kernels.ON_MEANS, COUNT : SUM + 1])


@pytest.mark.parametrize("name", [name for name in TUNINGS if "discarding" not in name])
@pytest.mark.parametrize("refresh", [1, 4])
def test_it_is_as_if_the_new_loss_had_been_reported(name: str, refresh: int) -> None:
    amended, direct = (FTRL(4, TUNINGS[name], seed=3, refresh=refresh) for _ in range(2))
    decisions = amended.ask(50)
    assert direct.ask(50) == decisions
    for decision in decisions:
        amended.tell(decision.round, 0.8)
        direct.tell(decision.round, 0.8 if decision.round % 3 else 0.1)
    for decision in decisions[2::3]:
        amended.amend(decision, 0.8, 0.1)
    np.testing.assert_allclose(amended.status.estimated_losses, direct.status.estimated_losses, rtol=1e-12)
    assert amended.measured_certificate() == pytest.approx(direct.measured_certificate(), rel=1e-9)
    if isinstance(TUNINGS[name], Means):  # whether the world moves is judged by what was told at first
        np.testing.assert_allclose(means_of(amended), means_of(direct), rtol=1e-12)
    elif not isinstance(TUNINGS[name], Shadow):  # the shadow has compared what it was told at first
        np.testing.assert_allclose(amended.distribution(), direct.distribution(), rtol=1e-9)


def test_the_shadow_knows_it_too() -> None:
    learner = FTRL(3, Shadow(), seed=1)
    decision = learner.ask()
    learner.tell(decision.round, 1.0)
    learner.amend(decision, 1.0, 0.25)
    np.testing.assert_array_equal(learner._state.policies[0, 0], learner._state.policies[1, 0])
    assert learner.status.estimated_losses[decision.arm] == pytest.approx(0.25 / decision.probability)


def amended_again(learner: FTRL, decision: Decision, losses: list[float]) -> FTRL:
    """The learner after its report has been amended from one loss to the next, with a restart before each."""
    for old, new in itertools.pairwise(losses):
        learner = FTRL.restore(json.loads(json.dumps(learner.snapshot())))
        learner.amend(Decision(*json.loads(json.dumps(decision))), old, new)
    return learner


def test_it_may_be_amended_again_also_after_a_restart_and_back_to_nothing() -> None:
    learner = FTRL(3, Shadow(), seed=1)
    decision = learner.ask()
    learner.tell(decision.round, 1.0)
    learner = amended_again(learner, decision, [1.0, 0.3, 0.7, 0.1, 0.0])
    assert learner.status.estimated_losses[decision.arm] == pytest.approx(0.0, abs=1e-12)
    assert (learner.status.estimated_losses >= 0).all()
    learner.ask()


def test_on_means_amending_there_and_back_again_changes_nothing() -> None:
    learner = FTRL(3, Means(), seed=1)
    decisions = learner.ask(20)
    for decision in decisions:
        learner.tell(decision, decision.round % 5 / 5)
    before, means = learner.status.estimated_losses, means_of(learner)
    learner = amended_again(learner, decisions[3], [0.8, 0.3, 0.7, 0.1, 0.0, 0.8])
    np.testing.assert_allclose(learner.status.estimated_losses, before, rtol=1e-12)
    np.testing.assert_allclose(means_of(learner), means, rtol=1e-12)


def test_on_means_outcomes_that_are_corrected_later_do_not_look_like_a_change() -> None:
    """Every decision is told as a failure at once. One in two becomes a success forty decisions later.

    The latest reports are failures, and the earlier ones are not. An arm must not forget these because of that.
    """
    learner, generator = FTRL(2, Means(), seed=1), np.random.default_rng(1)
    decisions, truth = [], np.zeros((2, 2))
    for t in range(1500):
        decisions.append(learner.ask())
        learner.tell(decisions[-1], 1.0)
        truth[:, decisions[-1].arm] += 1.0
        if t >= 40 and generator.random() < 0.5:
            learner.amend(decisions[t - 40], 1.0, 0.0)
            truth[1, decisions[t - 40].arm] -= 1.0
    np.testing.assert_allclose(means_of(learner), truth, rtol=1e-9)


def test_on_means_the_centre_of_an_amended_round_stays() -> None:
    """The first decision is centred at 1/2. Its estimate is 1/2 for all arms, and (loss - 1/2) / p more for its own."""
    learner = FTRL(3, Means(), seed=1)
    decision = learner.ask()
    learner.tell(decision, 1.0)
    learner = amended_again(learner, decision, [1.0, 0.3, 0.0])
    expected = np.full(3, 0.5)
    expected[decision.arm] -= 0.5 / decision.probability
    np.testing.assert_allclose(learner.status.estimated_losses, expected, rtol=1e-12)


def test_rounding_does_not_spoil_a_snapshot() -> None:
    """If everything is amended to 1, the sum of the losses is the number of reports, up to rounding."""
    generator = np.random.default_rng(2)
    for _ in range(100):
        learner = FTRL(3, seed=1)
        told = [(decision, round(float(generator.random()), 2)) for decision in learner.ask(10)]
        for decision, loss in told:
            learner.tell(decision.round, loss)
        for decision, loss in told:
            learner.amend(decision, loss, 1.0)
        assert FTRL.restore(json.loads(json.dumps(learner.snapshot()))).ask() == learner.ask()


def test_an_amendment_of_the_wrong_round_cannot_spoil_a_learner_on_means() -> None:
    """It says that a told round was given up, while another one of the arm waits. Nobody can know that it is wrong."""
    learner = FTRL(2, Means(), seed=1, provisional=1.0)
    decisions = [learner.record(0, 0.5), learner.record(0, 0.5), learner.record(1, 0.5)]
    learner.tell(decisions[0], 0.5)
    learner.give_up(decisions[2])
    learner.amend(decisions[0], None, 0.5)
    learner.tell(decisions[1], 0.5)
    assert learner._state.policies[kernels.ON_MEANS, MISSING].tolist() == [0.0, 1.0]
    assert FTRL.restore(learner.snapshot()).ask() == learner.ask()


def test_what_cannot_be_amended_is_refused_and_changes_nothing() -> None:
    learner = FTRL(3, seed=1)
    told, open_ = learner.ask(2)
    learner.tell(told.round, 0.5)
    before = json.dumps(learner.snapshot())
    cases = [
        (open_, 0.5, 0.6, "round 2 cannot be amended: it still waits for its report; use tell"),
        (told, 0.9, 0.1, "the losses reported so far do not allow it"),
        (told, 0.0, 0.9, "the losses reported so far do not allow it"),
        (told._replace(arm=(told.arm + 1) % 3), 0.5, 0.6, "it did not draw arm"),
        (told, 1.5, 0.1, "old must be a loss from 0 to 1, got 1.5"),
        (told, 0.5, math.nan, "new must be a loss from 0 to 1, got nan"),
        ((1, 7, 0.5), 0.5, 0.1, "the arm of a decision must be a whole number from 0 to 2, got 7"),
        ((1, 0, 0.0), 0.5, 0.1, r"the probability of a decision must lie in \(0, 1\], got 0.0"),
        ((1, 0, 1e-310), 0.5, 0.6, r"the probability of a decision must lie in \(0, 1\], got 1e-310"),
        ((1, 0), 0.5, 0.1, "a decision has a round, an arm and a probability, got"),
        (None, 0.5, 0.1, "a decision has a round, an arm and a probability, got None"),
    ]
    for decision, old, new, message in cases:
        with pytest.raises(InvalidInput, match=message):
            learner.amend(decision, old, new)  # type: ignore[arg-type]
    with pytest.raises(UnknownRound):
        learner.amend(Decision(9, 0, 0.5), 0.5, 0.1)
    assert json.dumps(learner.snapshot()) == before
    discarding = FTRL(3, Advanced(discard=True), seed=1)
    decision = discarding.ask()
    discarding.tell(decision.round, 0.5)
    with pytest.raises(InvalidInput, match="with discard=True its report may have been thrown away"):
        discarding.amend(decision, 0.5, 0.1)


@pytest.mark.parametrize(
    ("outcomes", "report", "old", "new", "hint"),
    [
        (None, {"reward": 1.0}, 1.0, 0.5, "After tell(reward=r) it is 1 - r, and new is a loss too"),
        (None, {"loss": 0.5}, None, 0.5, "None is only for a round that was given up"),
        (OutcomeRange(0, 50), {"reward": 50}, 20, 40, "old is the reward that was reported last"),
        (OutcomeRange(0, 50, better="lower"), {"loss": 0}, 20, 10, "old is the loss that was reported last"),
    ],
)
def test_the_refusal_says_what_to_pass(
    outcomes: OutcomeRange | None, report: dict[str, float], old: float | None, new: float, hint: str
) -> None:
    learner = FTRL(3, seed=1, outcomes=outcomes)
    decision = learner.ask()
    learner.tell(decision, **report)
    with pytest.raises(InvalidInput, match=f"from {old} to {new}: .* do not allow it.*{re.escape(hint)}"):
        learner.amend(decision, old, new)


def test_a_reward_is_amended_as_a_loss() -> None:
    learner, direct = FTRL(3, seed=1), FTRL(3, seed=1)
    decision = learner.ask()
    learner.tell(decision, reward=0.25)
    learner.amend(decision, 1 - 0.25, 1 - 0.75)
    direct.tell(direct.ask(), reward=0.75)
    np.testing.assert_allclose(learner.status.estimated_losses, direct.status.estimated_losses, rtol=1e-12)


class ChangesAfterwards:
    """A lock. When it is free again, another thread retires all arms but the last."""

    def __init__(self, learner: Any) -> None:
        self.learner, self.lock = learner, learner._state.lock

    def __enter__(self) -> None:
        self.lock.acquire()

    def __exit__(self, *_: object) -> None:
        self.lock.release()
        self.learner._state.lock = self.lock
        self.learner.change_arms(retire=self.learner.status.arms[:-1])


def test_the_refusal_names_the_arm_also_if_the_arms_change_meanwhile() -> None:
    learner: Any = FTRL(["a", "b", "c"], seed=0)
    decision = learner.ask()
    learner.tell(decision, 0.5)
    other = "b" if decision.arm == "a" else "a"
    learner._state.lock = ChangesAfterwards(learner)
    with pytest.raises(InvalidInput, match=f"did not draw arm '{other}'"):
        learner.amend(decision._replace(arm=other), 0.5, 0.6)
    assert learner.status.arms == ("c",)
