"""Rules for how late the feedback of each round comes.

A delay of NEVER, or any delay beyond the game, means that the feedback does not come during the game.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import numpy as np

from belated.arrays import Integers
from belated.errors import InvalidInput
from belated.lab.problems.texts import text_of
from belated.scalars import as_float
from belated.validation import as_delays, positive_number, whole_number

NEVER = 2**31 - 1


class Delays(ABC):
    """A rule for the delays of a game."""

    def __repr__(self) -> str:
        return text_of(self)

    @abstractmethod
    def draw(self, n_arms: int, n_rounds: int, generator: np.random.Generator) -> Integers:
        """d_1..d_n, fixed before the game begins."""

    @property
    def typical(self) -> int | None:
        """A delay that stands for all, if there is one. The resonant wave takes its period from it."""
        return None

    @property
    def depends_on_horizon(self) -> bool:
        """Whether the first rounds of a longer game have other delays. Then a checkpoint is no shorter game."""
        return False

    def loaded(self) -> "Delays":
        """The same delays, with their files read into memory."""
        return self


def _check_inside(name: str, rule: object) -> None:
    if not isinstance(rule, Delays):
        raise InvalidInput(f"{name} changes the delays of a rule that gives one for each round, got {rule!r:.80}")


def _at_least(name: str, value: float, least: float) -> None:
    if not least <= as_float(value) < math.inf:
        raise InvalidInput(f"{name} must be at least {least}, got {value!r}")


@final
@dataclass(frozen=True)
class NoDelay(Delays):
    """Feedback at the end of its own round."""

    @property
    def typical(self) -> int:
        return 0

    def draw(self, n_arms: int, n_rounds: int, generator: np.random.Generator) -> Integers:
        return np.zeros(n_rounds, np.int64)


@final
@dataclass(frozen=True)
class Fixed(Delays):
    """The same delay d for every round."""

    d: int = 100

    def __post_init__(self) -> None:
        whole_number("d", self.d, 0)

    @property
    def typical(self) -> int:
        return self.d

    def draw(self, n_arms: int, n_rounds: int, generator: np.random.Generator) -> Integers:
        return np.full(n_rounds, self.d, np.int64)


@final
@dataclass(frozen=True)
class Uniform(Delays):
    """Uniform on 0..largest."""

    largest: int = 200

    def __post_init__(self) -> None:
        whole_number("largest", self.largest, 0)

    @property
    def typical(self) -> int:
        return self.largest // 2

    def draw(self, n_arms: int, n_rounds: int, generator: np.random.Generator) -> Integers:
        return generator.integers(0, self.largest + 1, n_rounds)


@final
@dataclass(frozen=True)
class Geometric(Delays):
    """Geometric with a given mean."""

    mean: float = 100.0

    def __post_init__(self) -> None:
        _at_least("mean", self.mean, 0)

    @property
    def typical(self) -> int:
        return round(self.mean)

    def draw(self, n_arms: int, n_rounds: int, generator: np.random.Generator) -> Integers:
        return generator.geometric(1 / (1 + self.mean), n_rounds) - 1


@final
@dataclass(frozen=True)
class Pareto(Delays):
    """Heavy tail with P(d >= z) = (1 + z)^-shape. For shape <= 1 the mean is infinite."""

    shape: float = 0.5

    def __post_init__(self) -> None:
        positive_number("shape", self.shape)

    def draw(self, n_arms: int, n_rounds: int, generator: np.random.Generator) -> Integers:
        return np.minimum(generator.pareto(self.shape, n_rounds), NEVER).astype(np.int64)


@final
@dataclass(frozen=True)
class Lost(Delays):
    """A share of the feedback never comes, the rest has a fixed delay."""

    share: float = 0.05
    d: int = 100

    def __post_init__(self) -> None:
        whole_number("d", self.d, 0)
        if not 0 <= as_float(self.share) <= 1:
            raise InvalidInput(f"share must lie in [0, 1], got {self.share!r}")

    @property
    def typical(self) -> int:
        return self.d

    def draw(self, n_arms: int, n_rounds: int, generator: np.random.Generator) -> Integers:
        return np.where(generator.random(n_rounds) < self.share, NEVER, self.d)


@final
@dataclass(frozen=True)
class Bursts(Delays):
    """Everything is held until the end of the next `every`-th round."""

    every: int = 200

    def __post_init__(self) -> None:
        whole_number("every", self.every, 1)

    @property
    def typical(self) -> int:
        return self.every // 2

    def draw(self, n_arms: int, n_rounds: int, generator: np.random.Generator) -> Integers:
        return self.every - 1 - np.arange(n_rounds) % self.every


@final
@dataclass(frozen=True)
class Unbalanced(Delays):
    """The first floor(sqrt(k n / ln k)) rounds report only at the end, the others at once (TCS19)."""

    @property
    def depends_on_horizon(self) -> bool:
        return True

    def draw(self, n_arms: int, n_rounds: int, generator: np.random.Generator) -> Integers:
        if n_arms < 2:
            raise InvalidInput("the unbalanced example needs at least 2 arms")
        held = math.floor(math.sqrt(n_arms * n_rounds / math.log(n_arms)))
        rounds = np.arange(1, n_rounds + 1)
        return np.where(rounds <= held, n_rounds - rounds, 0)


@final
@dataclass(frozen=True)
class Held(Delays):
    """The first share of the rounds reports only when a part of the game is over, the others at once."""

    share: float = 0.01
    until: float = 0.2

    def __post_init__(self) -> None:
        if not 0 <= as_float(self.share) <= as_float(self.until) <= 1:
            raise InvalidInput(f"share and until must satisfy 0 <= share <= until <= 1, got {self!r}")

    @property
    def depends_on_horizon(self) -> bool:
        return True

    def draw(self, n_arms: int, n_rounds: int, generator: np.random.Generator) -> Integers:
        rounds = np.arange(n_rounds)
        return np.where(rounds < math.floor(self.share * n_rounds), math.floor(self.until * n_rounds) - rounds, 0)


@final
@dataclass(frozen=True)
class Permuted(Delays):
    """The delays of another rule in random order."""

    of: Delays

    def __post_init__(self) -> None:
        _check_inside("permuted", self.of)

    @property
    def typical(self) -> int | None:
        return self.of.typical

    @property
    def depends_on_horizon(self) -> bool:
        return True  # the order is drawn for the whole game

    def draw(self, n_arms: int, n_rounds: int, generator: np.random.Generator) -> Integers:
        return generator.permutation(self.of.draw(n_arms, n_rounds, generator))

    def loaded(self) -> "Permuted":
        return Permuted(self.of.loaded())


@final
@dataclass(frozen=True)
class Lagged(Delays):
    """The delays of another rule plus `lag`, as replicas of a service see them (docs/replicas.md)."""

    of: Delays
    lag: int = 20

    def __post_init__(self) -> None:
        _check_inside("lagged", self.of)
        whole_number("lag", self.lag, 0)

    @property
    def typical(self) -> int | None:
        return self.of.typical  # the losses do not change more slowly because we lag

    @property
    def depends_on_horizon(self) -> bool:
        return self.of.depends_on_horizon

    def draw(self, n_arms: int, n_rounds: int, generator: np.random.Generator) -> Integers:
        delays = as_delays(self.of.draw(n_arms, n_rounds, generator))
        return np.minimum(delays + self.lag, NEVER)

    def loaded(self) -> "Lagged":
        return Lagged(self.of.loaded(), self.lag)


@final
@dataclass(frozen=True)
class Replicated(Delays):
    """The delays d of another rule as one of R replicas sees them, which knows its own rounds at once.

    d with probability 1 / R, d + lag with probability 1 - 1 / R                                (docs/replicas.md)
    """

    of: Delays
    replicas: int = 2
    lag: int = 20

    def __post_init__(self) -> None:
        _check_inside("replicated", self.of)
        whole_number("replicas", self.replicas, 1)
        whole_number("lag", self.lag, 0)

    @property
    def typical(self) -> int | None:
        return self.of.typical

    @property
    def depends_on_horizon(self) -> bool:
        return self.of.depends_on_horizon

    def draw(self, n_arms: int, n_rounds: int, generator: np.random.Generator) -> Integers:
        delays = as_delays(self.of.draw(n_arms, n_rounds, generator))
        is_own = generator.integers(0, self.replicas, delays.size) == 0
        return np.minimum(np.where(is_own, delays, delays + self.lag), NEVER)

    def loaded(self) -> "Replicated":
        return Replicated(self.of.loaded(), self.replicas, self.lag)
