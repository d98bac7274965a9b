"""Loss rules and rivals that several benchmarks share."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from belated import baselines, lab
from belated.arrays import Floats
from belated.lab.problems.losses import flip

MeansRule = Callable[[int, int, np.random.Generator], Floats]  # a mean for every round and arm


@dataclass(frozen=True)
class Moving(lab.Losses):
    """Coin flips with means that change. The order of the arms depends on the seed."""

    means: MeansRule

    def blocks(self, n_arms: int, n_rounds: int, delay: int, generator: np.random.Generator) -> Iterator[Floats]:
        """The whole matrix."""
        means = self.means(n_arms, n_rounds, generator)
        yield flip(generator, means[:, generator.permutation(n_arms)])


def switching(phases: int, gap: float, mean: float) -> MeansRule:
    """The best arm is another one in every phase."""

    def means(k: int, n: int, generator: np.random.Generator) -> Floats:
        best = np.cumsum(generator.integers(1, k, phases)) % k
        return np.where(np.arange(k) == best[np.arange(n) * phases // n, None], mean - gap, mean)

    return means


@dataclass(frozen=True)
class Coins(lab.Losses):
    """Coin flips. One arm, drawn at random, has a lower mean."""

    mean: float
    gap: float

    def blocks(self, n_arms: int, n_rounds: int, delay: int, generator: np.random.Generator) -> Iterator[Floats]:
        """The whole matrix."""
        means = np.full(n_arms, self.mean)
        means[generator.integers(n_arms)] -= self.gap
        yield flip(generator, np.broadcast_to(means, (n_rounds, n_arms)))


@dataclass(frozen=True)
class Spread(lab.Losses):
    """Coin flips. The means lie evenly from the least to the most, in random order."""

    least: float
    most: float

    def blocks(self, n_arms: int, n_rounds: int, delay: int, generator: np.random.Generator) -> Iterator[Floats]:
        """The whole matrix."""
        means = generator.permutation(np.linspace(self.least, self.most, n_arms))
        yield flip(generator, np.broadcast_to(means, (n_rounds, n_arms)))


def thompson(n_arms: int, seed: int) -> Any:
    """Thompson sampling without its `distribution`, which would draw every arm twice and tell nothing more."""
    learner = baselines.ThompsonSampling(n_arms, seed=seed)
    return SimpleNamespace(ask=learner.ask, tell=learner.tell, n_arms=n_arms)


def mean_regret(player: Any, problem: lab.Problem, seeds: Sequence[int] | range) -> float:
    """The mean regret at the end of the games with these seeds."""
    return float(lab.play(player, problem, seeds, checkpoints=[problem.n_rounds]).mean[-1])


def geometric_mean(values: ArrayLike) -> float:
    """The geometric mean of positive numbers."""
    return float(np.exp(np.log(values).mean()))
