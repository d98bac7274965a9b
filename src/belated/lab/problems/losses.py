"""Rules for what each arm costs in each round. Losses lie in [0, 1] and are fixed before the game (oblivious).

`blocks` yields the rows of the (n, k) matrix a block at a time, so a long game never holds the whole matrix. Where the
place of an arm matters, the seed decides which arm has which place. So no arm is better because of its number.
"""

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import numpy as np

from belated.arrays import Floats
from belated.errors import InvalidInput
from belated.lab.problems.texts import text_of
from belated.scalars import as_float
from belated.validation import whole_number

BLOCK_CELLS = 2**18  # in a block, which makes 2 MB


class Losses(ABC):
    """A rule for the losses of a game."""

    def __repr__(self) -> str:
        return text_of(self)

    @abstractmethod
    def blocks(self, n_arms: int, n_rounds: int, delay: int, generator: np.random.Generator) -> Iterator[Floats]:
        """All n rows in order, a block at a time. `delay` is the typical delay of the game."""

    def mean_blocks(
        self, n_arms: int, n_rounds: int, delay: int, generator: np.random.Generator
    ) -> Iterator[Floats] | None:
        """The mean of every loss, as `blocks`, or None if it is not known.

        A generator with the seed of the game draws the same places as `blocks` does.
        """
        return None

    @property
    def depends_on_horizon(self) -> bool:
        """Whether the first rounds of a longer game have other losses. Then a checkpoint is no shorter game."""
        return False

    @property
    def follows_delay(self) -> bool:
        """Whether the typical delay of the game changes the losses."""
        return False

    def loaded(self) -> "Losses":
        """The same losses, with their files read into memory."""
        return self


class CoinFlips(Losses):
    """Losses 0 and 1 with the means of `mean_blocks`. What that draws, it must draw before its first block."""

    @abstractmethod
    def mean_blocks(self, n_arms: int, n_rounds: int, delay: int, generator: np.random.Generator) -> Iterator[Floats]:
        """The mean of every loss, a block at a time."""

    def blocks(self, n_arms: int, n_rounds: int, delay: int, generator: np.random.Generator) -> Iterator[Floats]:
        is_trusted, same = type(self).__module__.startswith(__package__), copy.deepcopy(generator)
        alone = iter(self.mean_blocks(n_arms, n_rounds, delay, same))  # as pseudo-regret has them
        for means in self.mean_blocks(n_arms, n_rounds, delay, generator):
            if not (is_trusted or np.array_equal(next(alone, ()), means)):
                raise InvalidInput(
                    f"the means of {self!r:.80} differ if coins are flipped in between. Draw whatever they need before "
                    "the first block, and keep nothing from one call to the next"
                )
            yield flip(generator, means)


class Deterministic(Losses):
    """Losses without chance, apart from the places of the arms. Every loss is its own mean."""

    def mean_blocks(self, n_arms: int, n_rounds: int, delay: int, generator: np.random.Generator) -> Iterator[Floats]:
        return self.blocks(n_arms, n_rounds, delay, generator)


def spans(n_rounds: int, n_arms: int) -> Iterator[tuple[int, int]]:
    """The rounds (from 0) of each block."""
    size = max(1, BLOCK_CELLS // n_arms)
    for start in range(0, n_rounds, size):
        yield start, min(start + size, n_rounds)


def flip(generator: np.random.Generator, means: Floats) -> Floats:
    """Bernoulli losses with these means."""
    return (generator.random(means.shape) < means).astype(np.float64)


def check_unit(name: str, value: float) -> None:
    """Refuse a setting that is no number from 0 to 1."""
    if not 0 <= as_float(value) <= 1:
        raise InvalidInput(f"{name} must lie in [0, 1], got {value!r}")


@final
@dataclass(frozen=True)
class Constrained(CoinFlips):
    """ZS19's stochastically constrained adversary, whose gap stays while the means jump.

    The means of (the best arm, the others) alternate between (0, gap) and (1 - gap, 1). Each phase is longer than the
    one before by the factor `growth`. The seed draws which arm is the best.
    """

    gap: float = 0.125
    growth: float = 1.6

    def __post_init__(self) -> None:
        check_unit("gap", self.gap)
        if not 1 < as_float(self.growth) < math.inf:
            raise InvalidInput(f"growth must exceed 1, got {self.growth!r}")

    def mean_blocks(self, n_arms: int, n_rounds: int, delay: int, generator: np.random.Generator) -> Iterator[Floats]:
        low = np.where(generator.permutation(n_arms) == 0, 0.0, self.gap)
        for start, stop in spans(n_rounds, n_arms):
            phase = np.floor(np.log1p(np.arange(start, stop)) / math.log(self.growth)).astype(np.int64) % 2
            yield low + phase[:, None] * (1 - self.gap)


@final
@dataclass(frozen=True)
class Shifting(CoinFlips):
    """Coin flips of mean 1/2 whose best arm changes at random in each of `phases` equal parts.

    The mean of the best arm is less by gap.
    """

    gap: float = 0.3
    phases: int = 8

    def __post_init__(self) -> None:
        if not 0 <= as_float(self.gap) <= 0.5:
            raise InvalidInput(f"gap must lie in [0, 0.5], got {self.gap!r}")
        whole_number("phases", self.phases, 1)

    @property
    def depends_on_horizon(self) -> bool:
        return self.phases > 1

    def mean_blocks(self, n_arms: int, n_rounds: int, delay: int, generator: np.random.Generator) -> Iterator[Floats]:
        best = generator.integers(0, n_arms, self.phases)
        for start, stop in spans(n_rounds, n_arms):
            now = best[np.arange(start, stop) * self.phases // n_rounds]
            yield np.where(np.arange(n_arms) == now[:, None], 0.5 - self.gap, 0.5)


@final
@dataclass(frozen=True)
class Comeback(Deterministic):
    """One arm loses 1 and the others 0 in the first part of the game, and after that it is the other way around.

    A learner fails here if it has given up that arm, for example by weighting old reports with today's probability. The
    seed draws which arm it is.
    """

    after: float = 0.2

    def __post_init__(self) -> None:
        check_unit("after", self.after)

    @property
    def depends_on_horizon(self) -> bool:
        return self.after > 0

    def blocks(self, n_arms: int, n_rounds: int, delay: int, generator: np.random.Generator) -> Iterator[Floats]:
        comes_back = generator.permutation(n_arms) == 0
        for start, stop in spans(n_rounds, n_arms):
            is_over = np.arange(start, stop) >= self.after * n_rounds
            yield (comes_back != is_over[:, None]).astype(np.float64)


@final
@dataclass(frozen=True)
class Wave(Losses):
    """A square wave in resonance with the delay. Two halves of the arms swap losses 0 and 1 every 2 d rounds.

    With a `strength` below 1 the losses are coin flips with the means (1 - strength) / 2 and (1 + strength) / 2. The
    seed draws the halves.
    """

    half_period: int | None = None
    strength: float = 1.0

    def __post_init__(self) -> None:
        if self.half_period is not None:
            whole_number("half_period", self.half_period, 1)
        check_unit("strength", self.strength)

    @property
    def follows_delay(self) -> bool:
        return self.half_period is None

    def mean_blocks(self, n_arms: int, n_rounds: int, delay: int, generator: np.random.Generator) -> Iterator[Floats]:
        first_half = generator.permutation(n_arms) < n_arms // 2
        for start, stop in spans(n_rounds, n_arms):
            is_swapped = np.arange(start, stop) // (self.half_period or max(1, 2 * delay)) % 2 == 1
            wave = (first_half == is_swapped[:, None]).astype(np.float64)
            yield wave if self.strength == 1 else (1 - self.strength) / 2 + self.strength * wave

    def blocks(self, n_arms: int, n_rounds: int, delay: int, generator: np.random.Generator) -> Iterator[Floats]:
        for means in self.mean_blocks(n_arms, n_rounds, delay, generator):
            yield means if self.strength == 1 else flip(generator, means)


@final
@dataclass(frozen=True)
class Sine(Deterministic):
    """Losses (1 + sin(2 pi (t / period + i / k))) / 2, where the seed draws the place i of each arm.

    The default period is 4 d.
    """

    period: float | None = None

    def __post_init__(self) -> None:
        if self.period is not None and not 1 <= as_float(self.period) < math.inf:
            raise InvalidInput(f"period must be at least 1 round, got {self.period!r}")

    @property
    def follows_delay(self) -> bool:
        return self.period is None

    def blocks(self, n_arms: int, n_rounds: int, delay: int, generator: np.random.Generator) -> Iterator[Floats]:
        period = self.period or max(4.0, 4.0 * delay)
        place = generator.permutation(n_arms)
        for start, stop in spans(n_rounds, n_arms):
            turns = np.arange(start, stop)[:, None] / period + place / n_arms
            yield (1 + np.sin(2 * np.pi * turns)) / 2


@final
@dataclass(frozen=True)
class BlockCoins(Losses):
    """The instance of the lower bound. Blocks of d + 1 rounds share a coin per arm.

    All algorithms have the same regret on it.
    """

    @property
    def follows_delay(self) -> bool:
        return True

    def mean_blocks(self, n_arms: int, n_rounds: int, delay: int, generator: np.random.Generator) -> Iterator[Floats]:
        for start, stop in spans(n_rounds, n_arms):
            yield np.full((stop - start, n_arms), 0.5)

    def blocks(self, n_arms: int, n_rounds: int, delay: int, generator: np.random.Generator) -> Iterator[Floats]:
        length = min(delay + 1, n_rounds)
        coins_at_once = max(1, BLOCK_CELLS // (n_arms * length))
        for start in range(0, n_rounds, coins_at_once * length):
            coins = generator.integers(0, 2, (coins_at_once, n_arms)).astype(np.float64)
            yield np.repeat(coins, length, axis=0)[: n_rounds - start]
