"""Policies of river in the lab, and Belated's learner in river."""

import sys
from collections import Counter
from importlib import reload
from typing import Any

import gymnasium
import numpy as np
import pytest
from river import bandit, proba, stats, utils

from belated import FTRL, Learner, OutcomeRange, lab
from belated.adapters import river
from belated.errors import DuplicateReport, InvalidInput
from belated.testing.learner_contract import LearnerContract, LearningContract
from belated.tunings import Advanced, Means, Simple
from tests.support.late_games import by_hand, reward_of, through

POLICIES: dict[str, Any] = {
    "UCB": bandit.UCB(delta=1),
    "Exp3": bandit.Exp3(gamma=0.1),
    "EpsilonGreedy": bandit.EpsilonGreedy(epsilon=0.1),
    "ThompsonSampling": bandit.ThompsonSampling(proba.Beta()),
    "BayesUCB": bandit.BayesUCB(),
    "RandomPolicy": bandit.RandomPolicy(),
}


class OfRiver:
    @pytest.fixture(autouse=True)
    def which(self, name: str) -> None:
        self.maker = river.learner(POLICIES[name])

    def make(self, n_arms: int, seed: int) -> Learner:
        return self.maker(n_arms, seed)


@pytest.mark.parametrize("name", [name for name in POLICIES if name != "EpsilonGreedy"])
class TestContract(OfRiver, LearnerContract):
    pass


@pytest.mark.parametrize("name", ["EpsilonGreedy"])
class TestContractOfTheGreedy(OfRiver, LearnerContract):
    ignores_seed = True  # in the first rounds it seldom draws


@pytest.mark.parametrize("name", ["UCB", "EpsilonGreedy"])
class TestLearning(OfRiver, LearningContract):
    pass


@pytest.mark.parametrize("name", POLICIES)
def test_it_plays_as_by_hand(name: str) -> None:
    policy = POLICIES[name].clone({"seed": 5})
    arms = [0, 1, 2]
    assert through(river.learner(POLICIES[name])(3, 5)) == by_hand(lambda: policy.pull(arms), policy.update)


def test_games_leave_the_given_policy_as_it_was_and_differ_by_seed() -> None:
    policy = bandit.EpsilonGreedy(epsilon=0.5, seed=3)
    problem = lab.Problem(lab.Bernoulli(gap=0.3), lab.Fixed(5), n_arms=3, n_rounds=300)
    first, again = (lab.play(river.learner(policy), problem, seeds=range(4), workers=w) for w in (1, 2))
    assert (first.suffered == again.suffered).all()
    assert len(set(first.suffered[:, -1])) > 1
    assert policy._n == 0


@pytest.mark.parametrize("bad", [3, bandit.UCB, bandit.LinUCBDisjoint(alpha=1), "UCB"])
def test_what_is_no_plain_policy_is_refused(bad: object) -> None:
    with pytest.raises(InvalidInput, match="needs no context"):
        river.learner(bad)


@pytest.mark.parametrize("bad", [bandit.ThompsonSampling(), bandit.ThompsonSampling(stats.Mean())])  # type: ignore[arg-type, unused-ignore]
def test_sampling_without_a_distribution_is_refused_with_what_works(bad: Any) -> None:
    with pytest.raises(InvalidInput, match=r"write bandit\.ThompsonSampling\(reward_obj=proba\.Beta\(\)\)"):
        river.learner(bad)
    works = river.learner(bandit.ThompsonSampling(reward_obj=proba.Beta()))
    lab.play(works, lab.Problem(lab.Bernoulli(), lab.Fixed(2), n_arms=2, n_rounds=20), 2)


def test_a_belated_policy_plays_as_its_learner() -> None:
    policy, learner, names = river.Policy(Advanced(), seed=4), FTRL(3, Advanced(), seed=4), ["a", "b", "c"]
    arms = by_hand(lambda: names.index(str(policy.pull(names))), lambda arm, reward: policy.update(names[arm], reward))
    assert arms == through(learner)  # all rewards of an arm come in order
    assert policy.learner.snapshot() == learner.snapshot()
    assert policy.ranking[0] == "c"
    assert "Reward" in repr(policy)
    assert policy._counts == Counter({name: arms[:-7].count(i) for i, name in enumerate(names)})


def test_with_the_decision_rewards_may_overtake_each_other() -> None:
    policy, learner = river.Policy(Simple(), seed=2), FTRL(2, Simple(), seed=2)
    late: list[tuple[Any, Any]] = []
    for t in range(200):
        arm, decision = policy.pull([0, 1]), learner.ask()
        assert policy.decision == decision
        late.append((arm, decision))
        if t % 10 == 9:
            for arm, earlier in reversed(late):
                policy.update(arm, reward_of(arm, earlier.round), decision=earlier)
                learner.tell(earlier, reward=reward_of(arm, earlier.round))
            late = []
    assert policy.learner.snapshot() == learner.snapshot()


def test_river_evaluates_it() -> None:
    environment = gymnasium.make("river_bandits/CandyCaneContest-v0", max_episode_steps=300)
    policies = [river.Policy(seed=1), bandit.RandomPolicy(seed=1)]
    trace = list(bandit.evaluate(policies, environment, stats.Mean(), n_episodes=2, seed=1))
    assert len(trace) == 2 * 2 * 300
    assert {step["policy_idx"] for step in trace} == {0, 1}


def test_rewards_in_their_own_units() -> None:
    policy = river.Policy(seed=1, outcomes=OutcomeRange(0, 50, better="higher"))
    policy.update(policy.pull(["a", "b"]), 35)
    with pytest.raises(InvalidInput, match="51"):
        policy.update(policy.pull(["a", "b"]), 51)
    assert policy.learner.outstanding == 1


def test_a_wrong_call_changes_nothing() -> None:
    policy = river.Policy(seed=1)
    assert repr(policy) == f"Policy({Means()})"
    for call in (lambda: policy.learner, lambda: policy.decision):
        with pytest.raises(InvalidInput, match="pull"):
            call()
    arm = policy.pull(["a", "b"])
    first = policy.decision
    other = "b" if arm == "a" else "a"
    before = policy.learner.snapshot()
    for bad in (other, "c"):
        with pytest.raises(InvalidInput, match="waits for a reward"):
            policy.update(bad, 0.5)
    wrong: list[Any] = [1.5, "much", np.nan]
    for reward in wrong:
        with pytest.raises(InvalidInput):
            policy.update(arm, reward)
    for arms in (["a"], ["b", "a"], ["a", "b", "c"]):
        with pytest.raises(InvalidInput, match="must stay"):
            policy.pull(arms)
    assert (policy.learner.snapshot(), policy._n) == (before, 0)
    policy.update(arm, 0.5, decision=first)
    with pytest.raises((InvalidInput, DuplicateReport)):
        policy.update(arm, 0.5, decision=first)


def test_without_river_the_command_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "river.bandit", None)
    with pytest.raises(ModuleNotFoundError, match="pip install river"):
        reload(river)


def test_the_fingerprint_tells_policies_apart() -> None:
    one, same, other = (river.learner(bandit.UCB(delta=d, seed=s)) for d, s in ((1, 1), (1, 2), (2, 1)))
    assert one.fingerprint == same.fingerprint != other.fingerprint
    assert "UCB" in one.fingerprint
    greedy = [river.learner(bandit.ThompsonSampling(proba.Beta(a, 1))).fingerprint for a in (1, 2)]
    assert greedy[0] != greedy[1]
    windows = [river.learner(bandit.UCB(delta=1, reward_obj=stats.EWMean(share))).fingerprint for share in (0.1, 0.9)]
    assert windows[0] != windows[1]  # their texts are alike
    assert not hasattr(river.learner(bandit.UCB(delta=1, reward_obj=utils.Rolling(stats.Mean, 5))), "fingerprint")


def test_without_the_adapter_it_is_named() -> None:
    problem = lab.Problem(lab.Wave(), lab.Fixed(2), n_arms=2, n_rounds=10)
    with pytest.raises(InvalidInput, match=r"Use belated\.adapters\.river\.learner"):
        lab.play(bandit.UCB(delta=1), problem, 2)
