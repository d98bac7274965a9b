"""Regret at checkpoints."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from belated.arrays import Floats, Integers
from belated.lab.intervals import half_width
from belated.validation import whole_number


@final
@dataclass(frozen=True, eq=False)
class Curves:
    """Regret at checkpoints, with a row for each seed.

    `expected` takes <x_t, l_t> as the learner's loss, which is the expectation over its draws. `suffered` takes the
    loss of the drawn arm.
    """

    seeds: Integers
    checkpoints: Integers
    expected: Floats
    suffered: Floats
    seconds: float
    is_whole: bool = True  # False after Ctrl-C, when only the finished seeds are here

    @property
    def mean(self) -> Floats:
        """Mean expected regret at each checkpoint."""
        return np.asarray(self.expected.mean(axis=0))

    @property
    def interval(self) -> Floats:
        """Half the width of the 95% confidence interval of the mean, by Student's t. NaN for a single seed."""
        return half_width(self.expected)

    @property
    def rounds_per_second(self) -> float:
        """Rounds played in a second of one core's time."""
        return float(len(self.seeds) * self.checkpoints[-1] / self.seconds)


def default_checkpoints(n_rounds: int, count: int = 50) -> Integers:
    """Up to 2 `count` rounds from 1 to n, evenly spaced on a logarithmic and on a linear scale."""
    spaced = np.append(np.geomspace(1, n_rounds, count), np.linspace(1, n_rounds, count))
    return np.unique(np.round(spaced).astype(np.int64))


def as_checkpoints(checkpoints: Sequence[int] | None, n_rounds: int) -> Integers:
    """The given checkpoints in order and the last round, or the default ones."""
    if checkpoints is None:
        return default_checkpoints(n_rounds)
    rounds = np.unique([whole_number("a checkpoint", round, 1, n_rounds) for round in checkpoints])
    return np.unique(np.append(rounds, n_rounds))


def follow(
    play: Callable[[Floats], tuple[Floats, Floats]], blocks: Iterator[Floats], n_arms: int, checkpoints: Integers
) -> tuple[Floats, Floats]:
    """Play all blocks. Returns the expected and the suffered regret against the best arm up to each checkpoint."""
    t, totals = 0, np.zeros(2 + n_arms)  # of expected, suffered and each arm's losses
    at_checkpoints: list[Floats] = []
    for block in blocks:
        expected, suffered = play(block)
        ends = checkpoints[(checkpoints > t) & (checkpoints <= t + len(block))] - t
        starts = np.append(0, ends[ends < len(block)])
        columns = (expected[:, None], suffered[:, None], block)
        pieces = np.hstack([np.add.reduceat(column, starts, axis=0) for column in columns])
        sums = totals + np.cumsum(pieces, axis=0)
        at_checkpoints.extend(sums[: len(ends)])
        totals = sums[-1]
        t += len(block)
    reached = np.array(at_checkpoints)
    regrets = reached[:, :2] - reached[:, 2:].min(axis=1, keepdims=True)
    return regrets[:, 0], regrets[:, 1]
