"""A rule of your own may fill the same array again for every block. No number may change by that."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from belated import FTRL, baselines, lab


class Steps(lab.Deterministic):
    """Gives a row at a time, in the same array or in new ones."""

    def __init__(self, is_reused: bool) -> None:
        self.is_reused = is_reused

    def blocks(self, n_arms: int, n_rounds: int, _delay: int, _generator: Any) -> Iterator[Any]:
        row = np.zeros((1, n_arms))
        for t in range(n_rounds):
            row[:], row[0, t // 20 % n_arms] = 0.5, t % 7 / 7
            yield row if self.is_reused else row.copy()


class Coins(lab.Losses):
    """Gives its losses all at once, and their means a row at a time."""

    def __init__(self, is_reused: bool) -> None:
        self.means = Steps(is_reused)

    def mean_blocks(self, n_arms: int, n_rounds: int, delay: int, generator: Any) -> Iterator[Any]:
        return self.means.blocks(n_arms, n_rounds, delay, generator)

    def blocks(self, n_arms: int, n_rounds: int, delay: int, generator: Any) -> Iterator[Any]:
        means = np.vstack(list(Steps(is_reused=False).blocks(n_arms, n_rounds, delay, generator)))
        yield (generator.random(means.shape) < means).astype(float)


class Backwards(lab.Feedback):
    """Reports later and later, and everything the other way round."""

    def __init__(self, is_reused: bool) -> None:
        self.is_reused = is_reused

    def blocks(self, losses: Any, _n_arms: int, _n_rounds: int, _generator: Any) -> Iterator[lab.Reports]:
        made = [(np.empty((0, 0), np.int64), np.empty((0, 0)))]
        for number, block in enumerate(losses):
            if not (self.is_reused and made[0][1].shape == block.shape):
                made = [(np.empty(block.shape, np.int64), np.empty(block.shape))]
            [(delays, reported)] = made
            delays[:], reported[:] = number % 5, 1 - block
            yield lab.Reports(delays, reported)


class SameArray(lab.Delays):
    """Keeps its array from one call to the next."""

    def __init__(self, n_rounds: int) -> None:
        self.delays = np.zeros(n_rounds, np.int64)

    def draw(self, _n_arms: int, _n_rounds: int, generator: np.random.Generator) -> Any:
        self.delays[:] = generator.integers(0, 50, self.delays.size)
        return self.delays


def uniform(n_arms: int, seed: int) -> baselines.UniformRandom:
    return baselines.UniformRandom(n_arms, seed=seed)


@pytest.mark.parametrize("losses", [Steps, Coins])
@pytest.mark.parametrize("feedback", [lambda _: lab.Fixed(3), Backwards])
@pytest.mark.parametrize("player", ["tsallis-inf", uniform])
def test_games_are_the_same(losses: Any, feedback: Any, player: Any) -> None:
    old, new = (
        lab.play(player, lab.Problem(losses(is_reused), feedback(is_reused), 3, 100), [1], checkpoints=[30])
        for is_reused in (False, True)
    )
    for measure in ("expected", "suffered", "pseudo", "dynamic"):
        np.testing.assert_array_equal(getattr(new, measure), getattr(old, measure))


@pytest.mark.parametrize("feedback", [lambda _: lab.Fixed(3), Backwards])
def test_games_by_steps_are_the_same(feedback: Any) -> None:
    def regret(is_reused: bool) -> tuple[float, list[float]]:
        game = lab.Problem(Steps(is_reused), feedback(is_reused), 3, 100).start(1)
        learner = FTRL(3, seed=1)
        while not game.is_over:
            for report in game.step(learner.ask().arm).reports:
                learner.tell(report.round, report.loss)
        return game.regret, game.totals.tolist()

    assert regret(is_reused=True) == regret(is_reused=False)


def test_blocks_and_delays_that_were_drawn_stay_as_they_are() -> None:
    problem = lab.Problem(Steps(is_reused=True), SameArray(40), 3, 40)
    first = problem.draw_delays(1)
    before = first.copy()
    problem.draw_delays(2)
    np.testing.assert_array_equal(first, before)
    rows = np.vstack(list(problem.loss_blocks(1, first)))
    np.testing.assert_array_equal(rows, np.vstack(list(Steps(is_reused=False).blocks(3, 40, 0, None))))


def test_equal_rows_take_no_memory() -> None:
    class Flat(lab.CoinFlips):
        def mean_blocks(self, n_arms: int, n_rounds: int, _delay: int, _generator: Any) -> Iterator[Any]:
            yield np.broadcast_to(np.full(n_arms, 0.5), (n_rounds, n_arms))

    problem = lab.Problem(Flat(), lab.NoDelay(), 3, 40)
    means = problem.mean_blocks(1, problem.draw_delays(1))
    assert means is not None
    assert next(means).strides[0] == 0
