"""An open decision counts as the provisional outcome until its report comes."""

import json
import math
import pickle
import re
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from belated import FTRL, OutcomeRange, kernels
from belated.errors import DuplicateReport, InvalidInput
from belated.kernels.means import COUNT, MISSING, SUM
from belated.tunings import AdaptiveExp3, Advanced, Means, Shadow, Simple, Tsallis, Tuning
from tests.support.oracles import record_batch


def counts_and_sums(learner: FTRL[Any], provisional: float = 0.0) -> list[list[float]]:
    """Of the reports that the means include, also those that are only assumed."""
    means = learner._state.policies[kernels.ON_MEANS]
    missing = means[MISSING] if learner.outstanding else 0.0
    return [(means[COUNT] + missing).tolist(), (means[SUM] + provisional * missing).tolist()]


@pytest.mark.parametrize("assumed", [0.0, 0.75, 1.0])
def test_an_open_decision_counts_as_the_provisional_outcome(assumed: float) -> None:
    """The distribution on means is that of a learner that was told the outcome at once."""
    waiting, told = (FTRL(4, seed=3, provisional=assumed) for _ in range(2))
    for size in (1, 1, 5, 1, 30, 2, 1, 1, 60):
        decisions = waiting.ask(size)
        for decision in record_batch(told, [one.arm for one in decisions], [one.probability for one in decisions]):
            told.tell(decision, assumed)
        assert counts_and_sums(waiting, assumed) == counts_and_sums(told)
        np.testing.assert_allclose(without_floor(waiting), without_floor(told), rtol=1e-9)
    assert waiting.outstanding == waiting.round == 102
    assert told.outstanding == 0


def without_floor(learner: FTRL) -> NDArray[np.float64]:
    """The coming distribution without the uniform share. That one depends on the lead, which only reports make."""
    lead, t = float(learner._state.clock["means"]["lead"][0]), learner.round + 1
    share = min(1.0, 0.1 * math.sqrt(learner.n_arms / t) + 0.05 * max(0.0, lead) / t)
    return np.asarray((learner.distribution() - share / learner.n_arms) / (1 - share))


def test_the_report_takes_the_place_of_the_provisional_outcome_exactly() -> None:
    """It is as if the outcome had been known from the start."""
    learner, informed = (FTRL(4, seed=3, provisional=1.0) for _ in range(2))
    decisions = learner.ask(80)
    assert informed.ask(80) == decisions
    generator = np.random.default_rng(1)
    for decision in generator.permutation(decisions)[:60]:
        round = int(decision[0])
        loss = float(generator.integers(0, 5)) / 4  # sums of quarters are exact
        learner.tell(round, loss)
        informed.tell(round, loss)
    for decision in decisions:
        if learner._state.ledger["probability"][decision.round - 1] > 0:
            informed.tell(decision, 1.0)
    assert counts_and_sums(learner, 1.0) == counts_and_sums(informed)
    assert learner.distribution().tolist() == informed.distribution().tolist()
    assert learner.outstanding == 20


def test_a_decision_that_is_given_up_keeps_the_provisional_outcome_and_may_be_amended() -> None:
    learner, informed = (FTRL(3, seed=3, provisional=1.0) for _ in range(2))
    decisions = learner.ask(30)
    informed.ask(30)
    for decision in decisions[:20]:
        learner.give_up(decision)
    np.testing.assert_array_equal(learner.distribution(), informed.distribution())
    with pytest.raises(DuplicateReport):
        learner.tell(decisions[0], 0.0)
    for decision in decisions[:10]:
        learner.amend(decision, None, 0.0)
        informed.tell(decision, 0.0)
    assert counts_and_sums(learner, 1.0) == counts_and_sums(informed, 1.0)
    np.testing.assert_array_equal(learner.distribution(), informed.distribution())
    learner.amend(decisions[0], 0.0, 0.5)
    informed.amend(decisions[0], 0.0, 0.5)
    np.testing.assert_array_equal(learner.distribution(), informed.distribution())


def test_without_it_an_open_decision_does_not_count() -> None:
    plain, provisional = FTRL(3, seed=3), FTRL(3, seed=3, provisional=1.0)
    for learner in (plain, provisional):
        learner.ask(30)
    assert plain.distribution().tolist() == pytest.approx([1 / 3] * 3)
    assert provisional.distribution() @ [1, 1, 1] == pytest.approx(1.0)
    assert plain.status.provisional is None


def test_a_quick_success_does_not_make_an_arm_look_perfect() -> None:
    """Successes are known at once, and failures only much later. Without the default every arm has a mean of 0."""
    generator = np.random.default_rng(2)
    learner = FTRL(2, seed=1, provisional=1.0)
    chances, failures = (0.2, 0.4), []
    for _ in range(1500):
        decision = learner.ask()
        if generator.random() < chances[decision.arm]:
            learner.tell(decision, 0.0)
        else:
            failures.append(decision)
    assert learner.distribution()[1] > 0.8
    assert learner.status.plays == "means"  # late failures do not look like a change
    for decision in failures:
        learner.tell(decision, 1.0)
    assert learner.distribution()[1] > 0.8
    assert learner.status.plays == "means"


@pytest.mark.parametrize("rates", [(0.02, 0.05, 0.1), (0.1, 0.12, 0.15)])
@pytest.mark.parametrize(("early", "late"), [(0, 0), (20, 500)])
def test_conversions_raise_no_alarm(rates: tuple[float, ...], early: int, late: int) -> None:
    """With plain estimates in the lead, up to 7 of 12 such games did. Then the best arm was hardly preferred."""
    for seed in range(3):
        learner, chance = FTRL(3, seed=seed, provisional=1.0), np.random.default_rng([seed, 1])
        due: dict[int, list[tuple[int, float]]] = {}
        for t in range(15_000):
            decision = learner.ask()
            loss = float(chance.random() > rates[decision.arm])
            due.setdefault(t + (late if loss else early), []).append((decision.round, loss))
            for round, outcome in due.pop(t, []):
                learner.tell(round, outcome)
        assert learner.status.plays == "means"
        assert learner.distribution()[2] > 0.5


@pytest.mark.parametrize("tuning", [Shadow(), Advanced(), Simple(), Tsallis(), AdaptiveExp3()], ids=repr)
def test_other_tunings_refuse_it(tuning: Tuning) -> None:
    with pytest.raises(
        InvalidInput, match=r"only Means\(\) takes provisional outcomes, got the tuning .* Leave one out"
    ):
        FTRL(3, tuning, seed=1, provisional=1.0)


@pytest.mark.parametrize("value", [-0.1, 1.5, 7, float("nan"), "0.5", [1.0]])
def test_an_impossible_outcome_is_refused(value: Any) -> None:
    with pytest.raises(InvalidInput, match=f"^provisional must be a loss from 0 to 1, got {re.escape(repr(value))}$"):
        FTRL(3, seed=1, provisional=value)


@pytest.mark.parametrize(
    ("outcomes", "value", "loss"),
    [(OutcomeRange(0, 50), 10, 0.8), (OutcomeRange(0, 50, better="lower"), 10, 0.2), (OutcomeRange(-1, 1), -1, 1.0)],
)
def test_it_is_in_the_units_of_the_range(outcomes: OutcomeRange, value: float, loss: float) -> None:
    learner, plain = FTRL(3, seed=1, outcomes=outcomes, provisional=value), FTRL(3, seed=1, provisional=loss)
    assert learner.status.provisional == pytest.approx(loss)
    learner.ask(20)
    plain.ask(20)
    np.testing.assert_allclose(learner.distribution(), plain.distribution(), rtol=1e-12)
    assert f"provisional={float(value)}" in repr(learner)
    with pytest.raises(
        InvalidInput, match=f"provisional must lie between {outcomes.lowest:g} and {outcomes.highest:g}, got 51"
    ):
        FTRL(3, seed=1, outcomes=outcomes, provisional=51)


def test_its_repr_shows_it() -> None:
    assert repr(FTRL(2, seed=1, provisional=1.0)).endswith("refresh=1, provisional=1.0): round 0, 0 outstanding")
    assert "provisional" not in repr(FTRL(2, seed=1))


def test_snapshots_pickles_and_changes_of_arms_keep_it() -> None:
    learner: Any = FTRL(["a", "b", "c"], Means(), seed=1, provisional=0.75)
    learner.ask(40)
    for round in range(1, 30, 2):
        learner.tell(round, 0.25)
    learner.change_arms(add=["d"], retire=["a"])
    learner.ask(5)
    for twin in (FTRL.restore(json.loads(json.dumps(learner.snapshot()))), pickle.loads(pickle.dumps(learner))):  # noqa: S301
        assert twin.status.provisional == 0.75
        assert repr(twin) == repr(learner)
        assert twin.distribution().tolist() == learner.distribution().tolist()
        assert twin.snapshot() == learner.snapshot()
    single: Any = FTRL(1, Means(), seed=1, provisional=1.0)
    early = single.ask(3)
    single.change_arms(add=1)
    assert counts_and_sums(single, 1.0) == [[3.0, 0.0], [3.0, 0.0]]  # open decisions count for the first arm
    single.tell(early[0], 0.0)
    assert counts_and_sums(single, 1.0) == [[3.0, 0.0], [2.0, 0.0]]
