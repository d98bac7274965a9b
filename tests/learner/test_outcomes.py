"""Reports name a decision or its round, with a loss or a reward, in [0, 1] or in the units of a declared range."""

import dataclasses
import math
import re
from typing import Any

import numpy as np
import pytest

import belated
from belated import FTRL, OutcomeRange
from belated.errors import DuplicateReport, InvalidInput, UnknownRound


def told(learner: FTRL) -> float:
    """The loss that the only report of a learner counts with."""
    return float(learner._state.clock["suffered"][0])


def test_a_decision_or_its_round_may_be_told() -> None:
    learner = FTRL(3, seed=1)
    first, second, third = learner.ask(3)
    learner.tell(first, 0.25)
    learner.tell(second.round, 0.25)
    learner.tell(np.int64(third.round), 0.25)  # type: ignore[arg-type]
    assert learner.outstanding == 0
    assert told(learner) == 0.75
    for again in (first, first.round):
        with pytest.raises(DuplicateReport):
            learner.tell(again, 0.25)
    with pytest.raises(UnknownRound):
        learner.tell(first._replace(round=9), 0.25)
    for wrong in ("1", 1.0, True, None, (1, 0, 0.5)):
        with pytest.raises(
            InvalidInput, match=f"pass a Decision, as ask returns it, or its round, .* got {re.escape(repr(wrong))}$"
        ):
            learner.tell(wrong, 0.25)  # type: ignore[arg-type]


def test_a_decision_or_its_round_may_be_given_up() -> None:
    learner = FTRL(3, seed=1)
    first, second = learner.ask(2)
    learner.give_up(first)
    learner.give_up(second.round)
    assert learner.outstanding == 0
    with pytest.raises(DuplicateReport):
        learner.give_up(first)
    learner.amend(first, None, 0.5)
    assert told(learner) == 0.5


def test_a_second_report_says_how_to_change_the_first_and_how_to_bring_a_late_one() -> None:
    learner = FTRL(3, seed=1)
    told, given_up = learner.ask(2)
    learner.tell(told, 0.5)
    learner.give_up(given_up)
    for decision in (told, given_up):
        said = rf"round {decision.round} has .* use amend\(decision, old, new\)\. .* amend\(decision, None, loss\)"
        with pytest.raises(DuplicateReport, match=said):
            learner.tell(decision, 0.5)
        with pytest.raises(DuplicateReport, match=said):
            learner.give_up(decision)


@pytest.mark.parametrize(("asked", "so_far"), [(0, "none"), (2, "1 to 2")])
def test_an_unknown_round_says_what_to_pass(asked: int, so_far: str) -> None:
    learner = FTRL(3, seed=1)
    learner.ask(asked)
    said = f"round 99 was never asked. Rounds so far: {so_far}. Pass a decision of this learner, or its round"
    with pytest.raises(UnknownRound, match=said):
        learner.tell(99, 0.5)
    with pytest.raises(UnknownRound, match=said):
        learner.give_up(99)


@pytest.mark.parametrize(
    ("report", "loss"),
    [
        ({"loss": 0.25}, 0.25),
        ({"reward": 0.25}, 0.75),
        ({"reward": 1}, 0.0),
        ({"loss": 1}, 1.0),
        ({"reward": np.float32(0.5)}, 0.5),
    ],
)
def test_without_a_range_both_words_are_taken(report: dict[str, Any], loss: float) -> None:
    learner = FTRL(3, seed=1)
    learner.tell(learner.ask(), **report)
    assert told(learner) == loss


REWARDS, LOSSES = OutcomeRange(-10, 40), OutcomeRange(0, 50, better="lower")


@pytest.mark.parametrize(
    ("outcomes", "report", "loss"),
    [
        (REWARDS, {"reward": 40}, 0.0),
        (REWARDS, {"reward": -10}, 1.0),
        (REWARDS, {"reward": 15.0}, 0.5),
        (LOSSES, {"loss": 12.5}, 0.25),
        (LOSSES, {"loss": 0.5}, 0.01),
    ],
)
def test_with_a_range_outcomes_are_in_its_units(outcomes: OutcomeRange, report: dict[str, Any], loss: float) -> None:
    learner = FTRL(3, seed=1, outcomes=outcomes)
    learner.tell(learner.ask(), **report)
    assert told(learner) == pytest.approx(loss, abs=1e-15)


def test_a_loss_may_be_positional_if_losses_are_declared() -> None:
    learner = FTRL(3, seed=1, outcomes=LOSSES)
    learner.tell(learner.ask().round, 25.0)
    assert told(learner) == 0.5


@pytest.mark.parametrize(
    ("outcomes", "report", "reason"),
    [
        (None, {}, r"got loss=None, reward=None. Pass one, as in tell\(decision, loss=x\)"),
        (REWARDS, {}, r"got loss=None, reward=None. Pass one, as in tell\(decision, reward=x\)"),
        (LOSSES, {}, r"got loss=None, reward=None. Pass one, as in tell\(decision, loss=x\)"),
        (None, {"loss": 0.5, "reward": 0.5}, "a report needs either loss= or reward=, got loss=0.5, reward=0.5"),
        (REWARDS, {"loss": 1.0, "reward": 1.0}, "a report needs either loss= or reward="),
        (None, {"loss": 1.5}, r"loss must be a number from 0 to 1, got 1.5. Rescale it"),
        (None, {"reward": -0.5}, r"reward must be a number from 0 to 1, got -0.5. Rescale it"),
        (None, {"reward": "0.5"}, r"reward must be a number from 0 to 1, got '0.5'$"),
        (None, {"loss": math.nan}, r"loss must be a number from 0 to 1, got nan$"),
        (REWARDS, {"loss": 1.0}, "this learner takes reward=, because higher is better, got loss="),
        (LOSSES, {"reward": 1.0}, "this learner takes loss=, because lower is better, got reward="),
        (REWARDS, {"reward": 40.5}, "reward must lie between -10 and 40, got 40.5"),
        (LOSSES, {"loss": -0.5}, "loss must lie between 0 and 50, got -0.5"),
        (LOSSES, {"loss": "1"}, "loss must lie between 0 and 50, got '1'"),
        (LOSSES, {"loss": math.nan}, "loss must lie between 0 and 50, got nan"),
    ],
)
def test_other_reports_are_refused_and_nothing_changes(
    outcomes: OutcomeRange | None, report: dict[str, Any], reason: str
) -> None:
    learner = FTRL(3, seed=1, outcomes=outcomes)
    decision, before = learner.ask(), learner.snapshot()
    with pytest.raises(InvalidInput, match=reason):
        learner.tell(decision, **report)
    assert learner.snapshot() == before
    assert learner.outstanding == 1


def test_amendments_are_in_the_units_of_the_range() -> None:
    learner, plain = FTRL(3, seed=1, outcomes=REWARDS), FTRL(3, seed=1)
    decision = learner.ask()
    plain.ask()
    learner.tell(decision, reward=15)
    plain.tell(decision, 0.5)
    learner.amend(decision, 15, 30)
    plain.amend(decision, 0.5, REWARDS.loss(30))
    assert told(learner) == told(plain) == pytest.approx(0.2)
    before = learner.snapshot()
    with pytest.raises(InvalidInput, match="new must lie between -10 and 40, got 41"):
        learner.amend(decision, 30, 41)
    with pytest.raises(InvalidInput, match="old must lie between -10 and 40, got -11"):
        learner.amend(decision, -11, 30)
    assert learner.snapshot() == before


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"lowest": 1, "highest": 1}, "lowest must be less than highest, by 1e\\+100 at most, got 1, 1"),
        ({"lowest": 2}, "lowest must be less than highest"),
        ({"lowest": "0"}, "lowest must be less than highest"),
        ({"highest": math.inf}, "lowest must be less than highest"),
        ({"lowest": math.nan}, "lowest must be less than highest"),
        ({"better": "up"}, "better must be 'higher' or 'lower', got 'up'"),
    ],
)
def test_an_impossible_range_is_refused(settings: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        OutcomeRange(**settings)


def test_a_range_is_a_value() -> None:
    assert OutcomeRange(0, 1) == OutcomeRange() == OutcomeRange(0.0, 1.0, "higher")
    assert OutcomeRange() is not belated.OutcomeRange()
    assert hash(OutcomeRange(0, 5)) == hash(OutcomeRange(0.0, 5.0))
    with pytest.raises(dataclasses.FrozenInstanceError):
        OutcomeRange().lowest = 3.0  # type: ignore[misc]
    with pytest.raises(InvalidInput, match=r"outcomes must be a belated.OutcomeRange, got \(0, 1\)"):
        FTRL(3, outcomes=(0, 1))  # type: ignore[call-overload]


def test_loss_and_value_are_inverse() -> None:
    for outcomes in (REWARDS, LOSSES, OutcomeRange(-1e-3, 7e8)):
        for share in (0.0, 0.1, 0.5, 0.9, 1.0):
            assert outcomes.loss(outcomes.value(share)) == pytest.approx(share, abs=1e-12)
        best = outcomes.highest if outcomes.better == "higher" else outcomes.lowest
        assert outcomes.loss(best) == 0.0
        assert outcomes.word == ("reward" if outcomes is not LOSSES else "loss")


def test_the_learner_is_small() -> None:
    public = {name for name in vars(FTRL) if not name.startswith("_")}
    assert len(public) <= 16, sorted(public)
    assert len(belated.__all__) <= 12
