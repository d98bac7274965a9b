"""Recording the rounds of a twin makes the same learner."""

from typing import Any

import numpy as np
import pytest

from belated import FTRL, Decision, kernels
from belated.errors import InvalidInput
from belated.tunings import Means, Shadow
from tests.support.catalogue import TUNINGS


def without_generator(learner: FTRL) -> dict[str, Any]:
    return {name: part for name, part in learner.snapshot().items() if name not in ("generator", "uniforms")}


@pytest.mark.parametrize("refresh", [7])  # tests/system has 1
@pytest.mark.parametrize("name", TUNINGS)
def test_recording_what_a_twin_drew_gives_the_same_learner(name: str, refresh: int) -> None:
    drawing, recording = (FTRL(5, TUNINGS[name], seed=seed, refresh=refresh) for seed in (1, 2))
    generator = np.random.default_rng(3)
    delays, losses = generator.integers(0, 40, 400), generator.random(400)
    waiting: dict[int, list[int]] = {}
    for t in range(400):  # more rounds than the ledger's first rows
        decision = drawing.ask()
        assert recording.record(decision.arm, decision.probability) == decision
        waiting.setdefault(t + int(delays[t]), []).append(decision.round)
        for round in waiting.pop(t, []):
            if round % 11:  # some never report
                drawing.tell(round, losses[round - 1])
                recording.tell(round, losses[round - 1])
        assert drawing.distribution().tolist() == recording.distribution().tolist()
        assert drawing.certificate() == recording.certificate()
    assert drawing.measured_certificate() == recording.measured_certificate()
    assert without_generator(drawing) == without_generator(recording)


def test_recording_leaves_the_stream_of_draws_alone() -> None:
    """After recording an arm that it did not draw, a learner draws the same uniforms as a fresh one."""
    plain, mixed = (FTRL(4, seed=5, refresh=1000) for _ in range(2))
    expected = [plain.ask() for _ in range(300)]
    decisions = []
    for t in range(300):
        mixed.record(t % 4, 0.9)
        decisions.append(mixed.ask())
    assert [decision[1:] for decision in decisions] == [decision[1:] for decision in expected]


@pytest.mark.parametrize("tuning", [Shadow(), TUNINGS["simple"]])
def test_the_weight_is_that_of_the_given_probability(tuning: Any) -> None:
    learner = FTRL(3, tuning, seed=1)
    assert learner.record(2, 0.125) == Decision(1, 2, 0.125)
    for _ in range(50):
        learner.record(0, 0.5)
    learner.tell(1, 0.75)
    assert learner.status.estimated_losses.tolist() == [0.0, 0.0, 6.0]


def test_on_means_the_weight_is_that_of_the_given_probability_too() -> None:
    """The centre is 1/2, because nothing was reported before the decision."""
    learner = FTRL(3, Means(), seed=1)
    learner.record(2, 0.125)
    for _ in range(50):
        learner.record(0, 0.5)
    learner.tell(1, 0.75)
    assert learner.status.estimated_losses.tolist() == [0.5, 0.5, 0.5 + 0.25 / 0.125]


def test_the_edge_of_a_shadow_uses_the_given_probability() -> None:
    learner = FTRL(3, Shadow(), seed=1)
    for t in range(60):
        learner.record(t % 3, 0.2)
        if t >= 9:
            learner.tell(t - 8, float(t % 3 == 0))
    learner.record(1, 0.01)
    bold, careful = learner._state.policies[:, kernels.X, 1]
    row = learner._state.ledger[int(learner._state.clock["rows"][0]) - 1]
    assert bold != careful
    assert row["bold_advantage"] == (bold - careful) / 0.01


@pytest.mark.parametrize(
    ("arm", "probability", "message"),
    [
        (3, 0.5, r"the arm of a decision must be a whole number from 0 to 2, got 3"),
        (-1, 0.5, "the arm of a decision"),
        (1.0, 0.5, "the arm of a decision"),
        (1, 0.0, r"the probability of a decision must lie in \(0, 1\], got 0.0"),
        (1, 1.5, "the probability of a decision"),
        (1, float("nan"), "the probability of a decision"),
        (1, 1e-301, "the probability of a decision"),
        (1, "0.5", "the probability of a decision"),
    ],
)
def test_what_is_no_decision_is_refused(arm: Any, probability: Any, message: str) -> None:
    learner = FTRL(3, seed=1)
    with pytest.raises(InvalidInput, match=message):
        learner.record(arm, probability)
    assert learner.round == 0


def test_one_arm() -> None:
    learner = FTRL(1, seed=1)
    learner.record(0, 1.0)
    learner.tell(1, 0.5)
    assert learner.status.estimated_losses.tolist() == [0.5]
