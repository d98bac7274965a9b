"""Problems of the lab as environments of Gymnasium."""

import sys
from importlib import reload
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from belated import FTRL, lab
from belated.adapters import gymnasium as adapted
from belated.adapters.gymnasium import DelayedBandit
from belated.errors import InvalidInput
from belated.tunings import Simple

PROBLEMS = {
    "late": lab.Problem(lab.Bernoulli(gap=0.3), lab.Geometric(mean=10), n_arms=4, n_rounds=300),
    "lost": lab.Problem(lab.Sine(), lab.Lost(share=0.3, d=7), n_arms=3, n_rounds=200),
    "one arm": lab.Problem(lab.Bernoulli(), lab.NoDelay(), n_arms=1, n_rounds=5),
}


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("delayed_reward", [True, False])
def test_gymnasiums_own_checks_pass(name: str, delayed_reward: bool) -> None:
    check_env(DelayedBandit(PROBLEMS[name], delayed_reward=delayed_reward), skip_render_check=True)


def test_made_by_its_name_it_is_the_same() -> None:
    environment = gymnasium.make("belated/DelayedBandit-v0", problem=PROBLEMS["late"])
    check_env(environment.unwrapped, skip_render_check=True)
    assert isinstance(environment.unwrapped, DelayedBandit)


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("delayed_reward", [True, False])
def test_an_episode_is_the_game_of_its_seed(name: str, delayed_reward: bool) -> None:
    problem = PROBLEMS[name]
    environment, game = DelayedBandit(problem, delayed_reward=delayed_reward), problem.start(7)
    observation, info = environment.reset(seed=7)
    assert (observation.tolist(), info) == (np.zeros((2, problem.n_arms)).tolist(), {"reports": [], "round": 0})
    for t in range(problem.n_rounds):
        expected = game.step(t % problem.n_arms)
        observation, reward, terminated, truncated, info = environment.step(np.int64(t % problem.n_arms))
        rewards = [[1 - one.loss for one in expected.reports if one.arm == arm] for arm in range(problem.n_arms)]
        assert observation[0].tolist() == [len(one) for one in rewards]
        assert observation[1] == pytest.approx([sum(one) for one in rewards])
        arrived = sum(map(sum, rewards))
        assert reward == pytest.approx(arrived if delayed_reward else 1 - expected.suffered)
        assert info["reports"] == expected.reports
        assert (info["round"], info["suffered"]) == (t + 1, expected.suffered)
        assert (terminated, truncated) == (t + 1 == problem.n_rounds, False)
        assert ("regret" in info) == terminated
    assert info["regret"] == game.regret


def test_a_learner_plays_as_without_gymnasium() -> None:
    problem = PROBLEMS["late"]
    environment, learner = DelayedBandit(problem), FTRL(4, Simple(), seed=3)
    game, twin = problem.start(3), FTRL(4, Simple(), seed=3)
    environment.reset(seed=3)
    terminated = False
    while not terminated:
        *_, terminated, _, info = environment.step(learner.ask().arm)
        for report in info["reports"]:
            learner.tell(report.round, report.loss)
        for report in game.step(twin.ask().arm).reports:
            twin.tell(report.round, report.loss)
    assert learner.snapshot() == twin.snapshot()


def test_without_a_seed_each_episode_is_another_game() -> None:
    def episodes() -> list[float]:
        environment, sums = DelayedBandit(PROBLEMS["late"], delayed_reward=False), list[float]()
        for seed in (1, None, None):
            environment.reset(seed=seed)
            sums.append(sum(environment.step(0)[1] for _ in range(300)))
        return sums

    first = episodes()
    assert first == episodes()
    assert len(set(first)) == 3


def test_in_a_vector_of_environments() -> None:
    vector = gymnasium.make_vec(
        "belated/DelayedBandit-v0", 2, gymnasium.VectorizeMode.SYNC, problem=PROBLEMS["one arm"]
    )
    observation, _ = vector.reset(seed=1)
    assert observation.shape == (2, 2, 1)
    for t in range(5):
        *_, terminated, _, _ = vector.step(np.zeros(2, np.int64))
        assert terminated.tolist() == [t == 4] * 2
    vector.close()


def test_wrong_calls_name_the_fix() -> None:
    with pytest.raises(InvalidInput, match=r"lab\.Problem"):
        DelayedBandit(3)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="delayed_reward"):
        DelayedBandit(PROBLEMS["late"], delayed_reward="yes")  # type: ignore[arg-type]
    environment = DelayedBandit(PROBLEMS["one arm"])
    with pytest.raises(InvalidInput, match=r"reset\(\) first"):
        environment.step(0)
    with pytest.raises(InvalidInput, match="seed"):
        environment.reset(seed=-1)
    environment.reset(seed=1)
    wrong: list[Any] = [1, -1, 0.5, "0"]
    for action in wrong:
        with pytest.raises(InvalidInput, match="arm"):
            environment.step(action)
    for _ in range(5):
        environment.step(0)
    with pytest.raises(InvalidInput, match="is over"):
        environment.step(0)


def test_without_gymnasium_the_command_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(ModuleNotFoundError, match="pip install gymnasium"):
        reload(adapted)
