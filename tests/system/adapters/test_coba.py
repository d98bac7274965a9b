"""Learners of coba in the lab, and Belated's learner in coba."""

import sys
from importlib import reload
from typing import Any

import coba as real
import numpy as np
import pytest
from coba.learners import BanditEpsilonLearner, BanditUCBLearner, RandomLearner
from coba.safety import SafeLearner

from belated import FTRL, Learner, OutcomeRange, lab
from belated.adapters import coba
from belated.errors import DuplicateReport, InvalidInput
from belated.testing.learner_contract import LearnerContract, LearningContract
from belated.tunings import Advanced, Means, Simple
from tests.support.late_games import LATE, reward_of, through

LEARNERS: dict[str, Any] = {
    "ucb": coba.learner(BanditUCBLearner),
    "greedy": coba.learner(BanditEpsilonLearner, epsilon=0.1),
    "scored": coba.learner(BanditEpsilonLearner, epsilon=0.1, distribution=True),
    "random": coba.learner(RandomLearner),
    "safe": coba.learner(lambda seed: SafeLearner(BanditEpsilonLearner(0.1, seed))),
}


class OfCoba:
    @pytest.fixture(autouse=True)
    def which(self, name: str) -> None:
        self.maker = LEARNERS[name]

    def make(self, n_arms: int, seed: int) -> Learner:
        learner: Learner = self.maker(n_arms, seed)
        return learner


@pytest.mark.parametrize("name", LEARNERS)
class TestContract(OfCoba, LearnerContract):
    pass


@pytest.mark.parametrize("name", ["ucb", "greedy"])
class TestLearning(OfCoba, LearningContract):
    pass


@pytest.mark.parametrize("name", ["greedy", "safe"])
def test_it_plays_as_by_hand_with_the_probability_of_its_draw(name: str) -> None:
    by_hand, learner = BanditEpsilonLearner(0.1, 5), LEARNERS[name](3, 5)
    drawn: list[tuple[int, float]] = []
    for t in range(300):
        drawn.append(by_hand.predict(None, [0, 1, 2]))
        decision = learner.ask()
        assert (decision.arm, decision.probability) == drawn[-1]
        if t >= LATE:
            arm, probability = drawn[t - LATE]
            by_hand.learn(None, arm, reward_of(arm, t), probability)
            learner.tell(t - LATE + 1, 1 - reward_of(arm, t))


class Noted:
    """Writes down what it is told."""

    def __init__(self, seed: int, forms: list[Any]) -> None:
        self.forms, self.told = forms, list[tuple[Any, ...]]()

    def predict(self, context: None, actions: list[int]) -> Any:
        return self.forms.pop(0)

    def learn(self, context: None, action: int, reward: float, probability: float, **note: Any) -> None:
        self.told.append((action, reward, probability, note))


def test_notes_and_probabilities_come_back_with_the_report() -> None:
    made: list[Noted] = []

    def make(seed: int, forms: list[Any]) -> Noted:
        made.append(Noted(seed, forms))
        return made[-1]

    forms = [(1, 0.25, {"key": 7}), (0, 0.5), (1.0, 1, {}), (1, None)]
    learner = coba.learner(make, forms=forms)(2, 1)
    decisions = [learner.ask() for _ in range(4)]
    assert [decision[1:] for decision in decisions] == [(1, 0.25), (0, 0.5), (1, 1.0), (1, 1.0)]
    for decision in reversed(decisions):
        learner.tell(decision, 0.25)
    assert made[0].told == [(1, 0.75, 1.0, {}), (1, 0.75, 1.0, {}), (0, 0.75, 0.5, {}), (1, 0.75, 0.25, {"key": 7})]


@pytest.mark.parametrize("form", [1, [0.5, 0.5, 0.0], None, (1, "much"), (1, 0.5, 3), {"action": 1}])
def test_other_forms_of_prediction_name_the_wrapper(form: Any) -> None:
    learner = coba.learner(Noted, forms=[form])(3, 1)
    with pytest.raises(InvalidInput, match="SafeLearner"):
        learner.ask()


def test_an_action_that_is_no_arm_is_refused() -> None:
    with pytest.raises(InvalidInput, match="no arm"):
        coba.learner(Noted, forms=[(3, 0.5)])(3, 1).ask()


def test_its_scores_give_expected_regret() -> None:
    problem = lab.Problem(lab.Bernoulli(gap=0.3), lab.Fixed(5), n_arms=3, n_rounds=400)
    plain, scored = (lab.play(LEARNERS[name], problem, seeds=range(8)) for name in ("greedy", "scored"))
    assert (plain.suffered == scored.suffered).all()
    noise = scored.suffered[:, -1] - scored.expected[:, -1]
    assert 0 < np.abs(noise).mean() < 12  # a draw has variance at most 1/4, and only a tenth are random


def test_what_makes_no_learner_is_refused() -> None:
    with pytest.raises(InvalidInput, match="a class of coba"):
        coba.learner(3)  # type: ignore[arg-type]


def test_a_belated_learner_plays_as_itself() -> None:
    learner, inner, names = FTRL(3, Advanced(), seed=4), coba.Learner(Advanced(), seed=4), ["a", "b", "c"]
    arms, late = list[int](), list[tuple[Any, ...]]()
    for t in range(300):
        late.append(inner.predict(None, names))
        arms.append(names.index(late[t][0]))
        if t >= LATE:
            action, probability, note = late[t - LATE]
            inner.learn(None, action, reward_of(arms[t - LATE], t - LATE), probability, **note)
    assert arms == through(learner)
    assert inner.score(None, names, "b") == learner.distribution()[1]


def test_actions_may_come_in_another_order() -> None:
    inner, twin = coba.Learner(Simple(), seed=2), coba.Learner(Simple(), seed=2)
    for t in range(100):
        action, probability, note = inner.predict(None, ["a", "b", "c"])
        other = twin.predict(None, ["c", "a", "b"] if t else ["a", "b", "c"])
        assert other == (action, probability, note)
        inner.learn(None, action, 0.5, probability, **note)
        twin.learn(None, *other[:1], 0.5, probability, **other[2])


def test_what_was_decided_elsewhere_is_recorded_with_its_probability() -> None:
    inner, learner = coba.Learner(Advanced(), seed=1), FTRL(2, Advanced(), seed=1)
    first = inner.predict(None, ["a", "b"])
    assert first[2]["decision"] == learner.ask()
    inner.learn(None, "b", 0.0, 0.3)
    learner.tell(learner.record(1, 0.3), reward=0.0)
    assert inner.score(None, ["a", "b"], "b") == learner.distribution()[1]


def test_coba_runs_an_experiment_with_it() -> None:
    environments = real.Environments.from_lambda(
        400,
        lambda _index: None,
        lambda _index, _context: ["a", "b", "c"],
        lambda _index, _context, action: 0.2 + 0.6 * (action == "b"),
    )
    learners = [coba.Learner(seed=1), RandomLearner(1)]
    result = real.Experiment(environments, learners).run(quiet=True)
    rewards = list(result.interactions.to_dicts())
    mean = {one: np.mean([row["reward"] for row in rewards if row["learner_id"] == one]) for one in (0, 1)}
    assert len(rewards) == 800
    assert mean[0] > mean[1]


def test_rewards_in_their_own_units_and_wrong_calls() -> None:
    inner = coba.Learner(outcomes=OutcomeRange(0, 50, better="higher"))
    with pytest.raises(InvalidInput, match="predict first"):
        inner.learn(None, "a", 35, 0.5)
    action, probability, note = inner.predict(None, ["a", "b"])
    with pytest.raises(InvalidInput, match="51"):
        inner.learn(None, action, 51, probability, **note)
    inner.learn(None, action, 35, probability, **note)
    with pytest.raises(DuplicateReport):
        inner.learn(None, action, 35, probability, **note)
    for actions in (["a"], ["a", "c"], ["a", "b", "c"]):
        with pytest.raises(InvalidInput, match="must stay"):
            inner.predict(None, actions)
    with pytest.raises(InvalidInput, match="none of the actions"):
        inner.learn(None, "c", 35, 0.5)
    assert inner.params == {"family": "Belated", "tuning": repr(Means()), "seed": 1}


def test_without_coba_the_command_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "coba.primitives", None)
    with pytest.raises(ModuleNotFoundError, match="pip install coba"):
        reload(coba)


def test_the_fingerprint_tells_learners_apart() -> None:
    found = {LEARNERS[name].fingerprint for name in ("ucb", "greedy", "scored", "random")}
    assert len(found) == 4
    assert not hasattr(LEARNERS["safe"], "fingerprint")
