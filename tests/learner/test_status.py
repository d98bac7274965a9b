"""What `status` counts for each arm is what a brute-force count of the game gives."""

from collections import defaultdict
from typing import Any

import numpy as np
import pytest

from belated import FTRL, Decision
from belated.tunings import Advanced, Means, Shadow, Simple, Tsallis, Tuning

NAMES = "abcdefg"


class Game:
    """A learner with names, and an account of its game in plain dictionaries.

    A name that comes back is a new arm. So arms are counted by their name and by how often it has come.
    """

    def __init__(self, tuning: Tuning, seed: int, provisional: float | None = None) -> None:
        self.learner: Any = FTRL(list(NAMES[:3]), tuning, seed=seed, provisional=provisional)
        self.times = dict.fromkeys(NAMES, 0)
        self.losses: dict[tuple[str, int], list[float]] = defaultdict(list)
        self.waiting: dict[Decision[Any], int] = {}
        self.generator = np.random.default_rng(seed)

    def step(self) -> None:
        chance = self.generator.random()
        if chance < 0.5:
            self.enter([self.learner.ask()] if chance < 0.4 else self.learner.ask(int(self.generator.integers(0, 6))))
        elif chance < 0.97 and self.waiting:
            self.close(chance)
        elif chance >= 0.97:
            self.change()

    def enter(self, decisions: list[Decision[Any]]) -> None:
        for decision in decisions:
            self.waiting[decision] = self.times[decision.arm]

    def close(self, chance: float) -> None:
        decision = list(self.waiting)[self.generator.integers(len(self.waiting))]
        times, loss = self.waiting.pop(decision), float(self.generator.random())
        if chance < 0.85:
            self.learner.tell(decision, loss)
            self.losses[decision.arm, times].append(loss)
        else:
            self.learner.give_up(decision if chance < 0.9 else decision.round)
            if chance > 0.95:
                self.learner.amend(decision, None, loss)
                self.losses[decision.arm, times].append(loss)

    def change(self) -> None:
        arms = list(self.learner.status.arms)
        missing = [name for name in NAMES if name not in arms]
        if len(arms) > 2 and self.generator.random() < 0.5:
            self.learner.change_arms(retire=[arms[self.generator.integers(len(arms))]])
        elif missing:
            name = missing[self.generator.integers(len(missing))]
            self.times[name] += 1
            self.learner.change_arms(add=[name])

    def check(self) -> None:
        status: Any = self.learner.status
        arms = [(name, self.times[name]) for name in status.arms]
        waits = [(decision.arm, times) for decision, times in self.waiting.items()]
        assert status.waiting.tolist() == [waits.count(arm) for arm in arms]
        assert self.learner.outstanding == len(waits)
        if not isinstance(status.tuning, Means):
            assert status.reports is None
            assert status.means is None
            return
        assert status.reports.tolist() == [len(self.losses[arm]) for arm in arms]
        expected = [float(np.mean(self.losses[arm])) if self.losses[arm] else float("nan") for arm in arms]
        np.testing.assert_allclose(status.means, expected, rtol=1e-9)


@pytest.mark.parametrize("tuning", [Means(), Shadow(), Advanced(), Simple(), Tsallis()], ids=repr)
@pytest.mark.parametrize("seed", [1, 2])
def test_a_random_game(tuning: Tuning, seed: int) -> None:
    game = Game(tuning, seed)
    game.check()
    for _ in range(1500):
        game.step()
        game.check()
    assert game.learner._state.offset > 0


def test_a_provisional_outcome_is_no_report() -> None:
    game = Game(Means(), 3, provisional=1.0)
    for _ in range(500):
        game.step()
        game.check()


def test_a_single_arm_has_no_counts() -> None:
    learner = FTRL(1, seed=1)
    learner.tell(learner.ask(2)[0], 0.5)
    status = learner.status
    assert status.reports is None
    assert status.means is None
    assert status.waiting.tolist() == [1]


def test_a_learner_after_the_alarm_still_counts() -> None:
    learner = FTRL(2, seed=1)
    for _ in range(3):
        learner.tell(learner.record(0, 1e-9), 0.25)
    learner.ask(4)
    learner.tell(learner.record(1, 0.5), 0.75)
    status: Any = learner.status
    assert status.plays == "careful"
    assert status.reports.tolist() == [3, 1]
    assert status.means.tolist() == [0.25, 0.75]


def test_it_is_a_copy_that_does_not_change() -> None:
    learner = FTRL(2, seed=1)
    before: Any = learner.status
    decision = learner.record(0, 0.5)
    during = learner.status
    learner.tell(decision, 0.5)
    assert before.reports.tolist() == [0, 0]
    assert np.isnan(before.means).all()
    assert before.waiting.tolist() == [0, 0]
    assert during.waiting.tolist() == [1, 0]
    assert learner.status.waiting.tolist() == [0, 0]
