"""Policies of MABWiser in the lab."""

import sys
from importlib import reload
from typing import Any

import pytest
from mabwiser.mab import MAB, LearningPolicy

from belated import Learner, lab
from belated.adapters import mabwiser
from belated.errors import InvalidInput
from belated.testing.learner_contract import LearnerContract, LearningContract
from tests.support.late_games import LATE, reward_of

POLICIES: dict[str, Any] = {
    "UCB1": LearningPolicy.UCB1(alpha=1),
    "EpsilonGreedy": LearningPolicy.EpsilonGreedy(epsilon=0.1),
    "Softmax": LearningPolicy.Softmax(tau=0.2),
    "ThompsonSampling": LearningPolicy.ThompsonSampling(),
    "Popularity": LearningPolicy.Popularity(),
    "Random": LearningPolicy.Random(),
}


class OfMABWiser:
    @pytest.fixture(autouse=True)
    def which(self, name: str) -> None:
        self.maker = mabwiser.learner(POLICIES[name])

    def make(self, n_arms: int, seed: int) -> Learner:
        return self.maker(n_arms, seed)


@pytest.mark.parametrize("name", ["UCB1", "EpsilonGreedy"])
class TestContract(OfMABWiser, LearnerContract):
    pass


@pytest.mark.parametrize("name", ["UCB1", "EpsilonGreedy"])
class TestLearning(OfMABWiser, LearningContract):
    pass


@pytest.mark.parametrize("name", POLICIES)
def test_once_fitted_it_plays_as_by_hand(name: str) -> None:
    """The first rounds are the adapter's. From there on a MAB that was fitted on their rewards plays alike."""
    learner, mab, arms = mabwiser.learner(POLICIES[name])(3, 5), MAB([0, 1, 2], POLICIES[name], seed=5), list[int]()
    known: set[int] = set()
    for t in range(200):
        is_fitted = len(known) == 3
        arms.append(learner.ask().arm)
        assert arms[t] == mab.predict() if is_fitted else arms[t] not in known
        if t >= LATE:
            arm = arms[t - LATE]
            mab.partial_fit([arm], [reward_of(arm, t - LATE)])
            learner.tell(t - LATE + 1, 1 - reward_of(arm, t - LATE))
            known.add(arm)
    assert len(known) == 3


def test_threads_change_no_game() -> None:
    problem = lab.Problem(lab.Bernoulli(gap=0.3), lab.Geometric(mean=10), n_arms=4, n_rounds=100)
    maker = mabwiser.learner(LearningPolicy.ThompsonSampling())
    alone, together = (lab.play(maker, problem, seeds=range(4), workers=w) for w in (1, 2))
    assert (alone.suffered == together.suffered).all()
    assert len(set(alone.suffered[:, -1])) > 1


@pytest.mark.parametrize("bad", [3, "UCB1", None, LearningPolicy.EpsilonGreedy(epsilon=2)])
def test_what_is_no_policy_is_refused(bad: Any) -> None:
    with pytest.raises(InvalidInput, match="a learning policy of MABWiser"):
        mabwiser.learner(bad)


def test_a_policy_that_needs_contexts_is_refused() -> None:
    with pytest.raises(InvalidInput, match="needs contexts"):
        mabwiser.learner(LearningPolicy.LinUCB(alpha=1))


def test_without_mabwiser_the_command_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mabwiser.mab", None)
    with pytest.raises(ModuleNotFoundError, match="pip install mabwiser"):
        reload(mabwiser)


def test_the_fingerprint_tells_policies_apart() -> None:
    found = {mabwiser.learner(policy).fingerprint for policy in POLICIES.values()}
    assert len(found) == len(POLICIES)
    assert mabwiser.learner(LearningPolicy.UCB1(alpha=2)).fingerprint not in found
    with_function = LearningPolicy.ThompsonSampling(binarizer=lambda _arm, reward: reward > 0.5)
    assert not hasattr(mabwiser.learner(with_function), "fingerprint")
