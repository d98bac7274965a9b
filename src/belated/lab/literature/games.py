"""Games of the literature that are problems of the lab."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, final

import numpy as np

from belated.arrays import Floats
from belated.errors import UnfinishedWarning
from belated.lab.games.play import play
from belated.lab.literature.systems import maker_of, player_of
from belated.lab.problems.problem import Problem
from belated.learner.decisions import MakeLearner
from belated.progress import STRIDE, Progress


@final
@dataclass(frozen=True)
class Played:
    """A problem of the lab. If a paper's losses exceed 1, they are divided by `scale`, and the regret is multiplied.

    The regret is the learner's losses less those of the best arm of the game. With "means" it counts the means of both,
    which is the pseudo-regret. With "mixed" it counts the learner's losses and the means of the best arm.
    """

    problem: Problem
    scale: float = 1.0
    regret: Literal["losses", "means", "mixed"] = "losses"

    @property
    def n_rounds(self) -> int:
        return self.problem.n_rounds

    def regrets(self, system: str, seeds: Sequence[int], n_rounds: int) -> Floats:
        """The regret of a system after n rounds, one number for each seed."""
        problem = replace(self.problem, n_rounds=n_rounds)
        if self.regret != "losses":
            with Progress(system, len(seeds) * n_rounds) as progress:
                games = [by_steps(maker_of(system), problem, seed, progress) for seed in seeds]
            return np.array([getattr(game, self.regret) for game in games]) * self.scale
        with warnings.catch_warnings(action="ignore", category=UnfinishedWarning):
            curves = play(player_of(system), problem, seeds, checkpoints=[n_rounds])
        if not curves.is_whole:
            raise KeyboardInterrupt
        return np.asarray(curves.expected[:, -1] * self.scale)


class Regrets(NamedTuple):
    """The regret of a game against the arm with the least mean."""

    means: float  # by the means of the arms that were played
    mixed: float  # by the losses that were suffered


def by_steps(make: MakeLearner, problem: Problem, seed: int, progress: Progress) -> Regrets:
    """Play a game a round at a time."""
    game, learner, arms = problem.start(seed), make(problem.n_arms, seed), list[int]()
    while not game.is_over:
        arm = learner.ask().arm
        arms.append(arm)
        for report in game.step(arm).reports:
            learner.tell(report.round, report.loss)
        if game.round % STRIDE == 0:
            progress.advance(STRIDE)
    blocks = problem.mean_blocks(seed, np.zeros(0, np.int64))  # the losses of these papers follow no delay
    means = np.vstack(list(blocks or ()))
    best = float(means.sum(axis=0).min())
    return Regrets(float(means[np.arange(len(arms)), arms].sum()) - best, game.suffered - best)
