"""Coin flips with one mean for each arm."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from belated.arrays import Floats
from belated.errors import InvalidInput
from belated.lab.problems.losses import CoinFlips, check_unit, spans


def _check_gap(gap: Any, mean: Any) -> None:
    check_unit("mean", mean)
    check_unit("gap", gap)
    check_unit("mean - gap", mean - gap)


def _as_means(given: Any) -> tuple[float, ...]:
    try:
        means = list(given)
    except TypeError:
        means = []
    if not means:
        raise InvalidInput(f"means must be a list of numbers, one for each arm, got {given!r}")
    for arm, mean in enumerate(means):
        check_unit(f"the mean of arm {arm}", mean)
    return tuple(map(float, means))


@final
@dataclass(frozen=True, init=False, repr=False)
class Bernoulli(CoinFlips):
    """Coin flips. One arm loses with probability mean - gap, every other arm with probability mean.

    The seed draws which arm that is. In place of gap and mean, `means` gives the mean of each arm in order.

    >>> Bernoulli(gap=0.2), Bernoulli(means=[0.4, 0.2])
    (Bernoulli(gap=0.2, mean=0.5), Bernoulli(means=(0.4, 0.2)))
    """

    gap: float | None = 0.1  # None with means
    mean: float | None = 0.5
    means: Sequence[float] | Floats | None = None

    def __init__(
        self,
        gap: float | None = None,
        mean: float | None = None,
        means: Sequence[float] | Floats | None = None,
    ) -> None:
        if means is None:
            gap, mean = (Bernoulli.gap if gap is None else gap), (Bernoulli.mean if mean is None else mean)
            _check_gap(gap, mean)
        elif gap is not None or mean is not None:
            raise InvalidInput("give the means of all arms, or gap and mean, but not both")
        for name, value in (("gap", gap), ("mean", mean), ("means", None if means is None else _as_means(means))):
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return f"Bernoulli({', '.join(f'{name}={value!r}' for name, value in vars(self).items() if value is not None)})"

    def arm_means(self, n_arms: int) -> Floats:
        """The mean of each arm. Those of gap and mean before they are shuffled."""
        if self.gap is not None and self.mean is not None:
            return np.append(self.mean - self.gap, np.full(n_arms - 1, self.mean))
        means = np.array(self.means)
        if len(means) != n_arms:
            raise InvalidInput(f"the losses have means for {len(means)} arms, but the game has {n_arms} arms")
        return means

    def mean_blocks(self, n_arms: int, n_rounds: int, delay: int, generator: np.random.Generator) -> Iterator[Floats]:
        means = self.arm_means(n_arms)
        if self.means is None:
            means = generator.permutation(means)
        for start, stop in spans(n_rounds, n_arms):
            yield np.broadcast_to(means, (stop - start, n_arms))
