"""Rules for what each arm costs in each round. Losses lie in [0, 1] and are fixed before the game (oblivious).

`blocks` yields the rows of the (n, k) matrix a block at a time, so a long game never holds the whole matrix.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np

from belated.arrays import Floats
from belated.errors import InvalidInput
from belated.lab.problems.files import read_matrix
from belated.validation import positive_number, whole_number

BLOCK_CELLS = 2**18  # in a block, which makes 2 MB


class Losses(ABC):
    """A rule for the losses of a game."""

    @abstractmethod
    def blocks(self, n_arms: int, n_rounds: int, delay: int, generator: np.random.Generator) -> Iterator[Floats]:
        """All n rows in order, a block at a time. `delay` is the typical delay of the game."""

    def loaded(self) -> "Losses":
        """The same losses, with their files read into memory."""
        return self


def spans(n_rounds: int, n_arms: int) -> Iterator[tuple[int, int]]:
    """The rounds (from 0) of each block."""
    size = max(1, BLOCK_CELLS // n_arms)
    for start in range(0, n_rounds, size):
        yield start, min(start + size, n_rounds)


def flip(generator: np.random.Generator, means: Floats) -> Floats:
    """Bernoulli losses with these means."""
    return (generator.random(means.shape) < means).astype(np.float64)


def _check_unit(name: str, value: float) -> None:
    if not 0 <= value <= 1:
        raise InvalidInput(f"{name} must lie in [0, 1], got {value!r}")


@final
@dataclass(frozen=True)
class Bernoulli(Losses):
    """Coin flips. Arm 0 loses with probability mean - gap, every other arm with probability mean."""

    gap: float = 0.1
    mean: float = 0.5

    def __post_init__(self) -> None:
        _check_unit("mean", self.mean)
        _check_unit("gap", self.gap)
        _check_unit("mean - gap", self.mean - self.gap)

    def blocks(self, n_arms: int, n_rounds: int, delay: int, generator: np.random.Generator) -> Iterator[Floats]:
        means = np.full(n_arms, self.mean)
        means[0] -= self.gap
        for start, stop in spans(n_rounds, n_arms):
            yield flip(generator, np.broadcast_to(means, (stop - start, n_arms)))


@final
@dataclass(frozen=True)
class Constrained(Losses):
    """ZS19's stochastically constrained adversary, whose gap stays while the means jump.

    The means of (arm 0, the others) alternate between (0, gap) and (1 - gap, 1). Each phase is longer than the one
    before by the factor `growth`.
    """

    gap: float = 0.125
    growth: float = 1.6

    def __post_init__(self) -> None:
        _check_unit("gap", self.gap)
        if not self.growth > 1:
            raise InvalidInput(f"growth must exceed 1, got {self.growth!r}")

    def blocks(self, n_arms: int, n_rounds: int, delay: int, generator: np.random.Generator) -> Iterator[Floats]:
        low = np.where(np.arange(n_arms) == 0, 0.0, self.gap)
        for start, stop in spans(n_rounds, n_arms):
            phase = np.floor(np.log1p(np.arange(start, stop)) / math.log(self.growth)).astype(np.int64) % 2
            yield flip(generator, low + phase[:, None] * (1 - self.gap))


@final
@dataclass(frozen=True)
class Shifting(Losses):
    """Coin flips of mean 1/2 whose best arm changes at random in each of `phases` equal parts.

    The mean of the best arm is less by gap.
    """

    gap: float = 0.3
    phases: int = 8

    def __post_init__(self) -> None:
        if not 0 <= self.gap <= 0.5:
            raise InvalidInput(f"gap must lie in [0, 0.5], got {self.gap!r}")
        whole_number("phases", self.phases, 1)

    def blocks(self, n_arms: int, n_rounds: int, delay: int, generator: np.random.Generator) -> Iterator[Floats]:
        best = generator.integers(0, n_arms, self.phases)
        for start, stop in spans(n_rounds, n_arms):
            now = best[np.arange(start, stop) * self.phases // n_rounds]
            yield flip(generator, np.where(np.arange(n_arms) == now[:, None], 0.5 - self.gap, 0.5))


@final
@dataclass(frozen=True)
class Comeback(Losses):
    """Arm 0 loses 1 and the others 0 in the first part of the game, and after that it is the other way around.

    A learner fails here if it has given up arm 0, for example by weighting old reports with today's probability.
    """

    after: float = 0.2

    def __post_init__(self) -> None:
        _check_unit("after", self.after)

    def blocks(self, n_arms: int, n_rounds: int, delay: int, generator: np.random.Generator) -> Iterator[Floats]:
        is_first = np.arange(n_arms) == 0
        for start, stop in spans(n_rounds, n_arms):
            is_over = np.arange(start, stop) >= self.after * n_rounds
            yield (is_first != is_over[:, None]).astype(np.float64)


@final
@dataclass(frozen=True)
class Wave(Losses):
    """A square wave in resonance with the delay. Two halves of the arms swap losses 0 and 1 every 2 d rounds.

    With a `strength` below 1 the losses are coin flips with the means (1 - strength) / 2 and (1 + strength) / 2.
    """

    half_period: int | None = None
    strength: float = 1.0

    def __post_init__(self) -> None:
        if self.half_period is not None:
            whole_number("half_period", self.half_period, 1)
        _check_unit("strength", self.strength)

    def blocks(self, n_arms: int, n_rounds: int, delay: int, generator: np.random.Generator) -> Iterator[Floats]:
        first_half = np.arange(n_arms) < n_arms // 2
        for start, stop in spans(n_rounds, n_arms):
            swapped = np.arange(start, stop) // (self.half_period or max(1, 2 * delay)) % 2
            wave = np.where(first_half, swapped[:, None], 1 - swapped[:, None]).astype(np.float64)
            yield wave if self.strength == 1 else flip(generator, (1 - self.strength) / 2 + self.strength * wave)


@final
@dataclass(frozen=True)
class Sine(Losses):
    """Arm i loses (1 + sin(2 pi (t / period + i / k))) / 2. The default period is 4 d."""

    period: float | None = None

    def __post_init__(self) -> None:
        if self.period is not None:
            positive_number("period", self.period)

    def blocks(self, n_arms: int, n_rounds: int, delay: int, generator: np.random.Generator) -> Iterator[Floats]:
        period = self.period or max(4.0, 4.0 * delay)
        for start, stop in spans(n_rounds, n_arms):
            turns = np.arange(start, stop)[:, None] / period + np.arange(n_arms) / n_arms
            yield (1 + np.sin(2 * np.pi * turns)) / 2


@final
@dataclass(frozen=True)
class BlockCoins(Losses):
    """The instance of the lower bound. Blocks of d + 1 rounds share a coin per arm.

    All algorithms have the same regret on it.
    """

    def blocks(self, n_arms: int, n_rounds: int, delay: int, generator: np.random.Generator) -> Iterator[Floats]:
        length = min(delay + 1, n_rounds)
        coins_at_once = max(1, BLOCK_CELLS // (n_arms * length))
        for start in range(0, n_rounds, coins_at_once * length):
            coins = generator.integers(0, 2, (coins_at_once, n_arms)).astype(np.float64)
            yield np.repeat(coins, length, axis=0)[: n_rounds - start]


@final
@dataclass(frozen=True, eq=False)
class GivenLosses(Losses):
    """A matrix of losses with a row for each round and a column for each arm."""

    matrix: Floats

    def __post_init__(self) -> None:
        matrix = np.asarray(self.matrix, np.float64)
        if matrix.ndim != 2 or matrix.size == 0:
            raise InvalidInput(f"losses must be a matrix with a row for each round, got shape {matrix.shape}")
        if not ((matrix >= 0) & (matrix <= 1)).all():
            row, column = np.argwhere(~((matrix >= 0) & (matrix <= 1)))[0]
            raise InvalidInput(f"losses must lie in [0, 1], got {matrix[row, column]} in round {row + 1}, arm {column}")
        object.__setattr__(self, "matrix", matrix)

    def blocks(self, n_arms: int, n_rounds: int, delay: int, generator: np.random.Generator) -> Iterator[Floats]:
        if self.matrix.shape[1] != n_arms or self.matrix.shape[0] < n_rounds:
            rows, columns = self.matrix.shape
            game = f"the game has {n_rounds:,} rounds and {n_arms} arms"
            raise InvalidInput(f"the losses are for {rows:,} rounds and {columns} arms, but {game}. Set both to fit")
        for start, stop in spans(n_rounds, n_arms):
            yield self.matrix[start:stop]


@final
@dataclass(frozen=True)
class LossesFile(Losses):
    """Losses from a CSV, Parquet or npy file with a row for each round and a column for each arm."""

    path: Path

    def blocks(self, n_arms: int, n_rounds: int, delay: int, generator: np.random.Generator) -> Iterator[Floats]:
        return self.loaded().blocks(n_arms, n_rounds, delay, generator)

    def loaded(self) -> GivenLosses:
        return GivenLosses(read_matrix(Path(self.path)))
