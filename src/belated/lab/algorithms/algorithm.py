"""An algorithm of the lab, and the setting of a game that it may look at before the game begins."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol, final, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from belated import bounds
from belated.arrays import Floats, Integers
from belated.errors import InvalidInput
from belated.lab.problems.problem import NOT_KNOWN, Problem
from belated.learner.decisions import MakeLearner
from belated.tunings import Tuning, outstanding_counts


@runtime_checkable
class Game(Protocol):
    """A game under way. A block of losses is played with each call. `arms` has the arms of all rounds, in order."""

    arms: NDArray[np.int32]

    def play(self, losses: Floats) -> tuple[Floats, Floats]:
        """Play a round for each row. Returns <x_t, l_t> and the loss of the drawn arm."""


Player = Tuning | MakeLearner | Game  # a game is made for one setting only


@final
@dataclass(frozen=True, eq=False)
class Setting:
    """A game before it begins. An algorithm that needs to know something in advance reads it here."""

    problem: Problem
    seed: int
    drawn_delays: Integers

    @cached_property
    def delays(self) -> Integers:
        """The delays, clipped to the game. Refused if they depend on what is played."""
        if not self.problem.has_fixed_delays:
            self.problem.draw_delays(self.seed)
        return bounds.clip(self.drawn_delays)

    @property
    def n_arms(self) -> int:
        """k."""
        return self.problem.n_arms

    @property
    def n_rounds(self) -> int:
        """n."""
        return self.problem.n_rounds

    @property
    def total_delay(self) -> int:
        """D."""
        return int(self.delays.sum())

    @property
    def longest_delay(self) -> int:
        """d_max."""
        return int(self.delays.max())

    @property
    def most_outstanding(self) -> int:
        """G = max_t o_t."""
        return int(outstanding_counts(self.delays).max())

    @property
    def log_k(self) -> float:
        """ln k."""
        return math.log(self.n_arms)

    def best_arm(self) -> int:
        """The arm with the least total loss."""
        blocks = self.loss_blocks()
        return int(np.sum([block.sum(axis=0) for block in blocks], axis=0).argmin())

    def loss_blocks(self) -> Iterator[Floats]:
        """The rows of the loss matrix, a block at a time."""
        return self.problem.loss_blocks(self.seed, self.drawn_delays)


def setting_of(problem: Problem, seed: int) -> Setting:
    """The setting of the game with this seed. Draws the delays, if they are fixed before the game begins."""
    return Setting(problem, seed, problem.draw_delays(seed) if problem.has_fixed_delays else NOT_KNOWN)


@final
@dataclass(frozen=True)
class Algorithm:
    """A system that the lab can play, as data.

    It says where the system is from, what it must know in advance, what is proven, and how to make it.
    """

    name: str
    summary: str
    citation: str
    needs: str  # in advance
    mark: Literal["read", "derived", "recalled", "-"]  # where the constants come from
    player: Callable[[Setting], Player]
    bound: Callable[[Setting], float | None] = lambda _: None
    fingerprint: str | None = None  # of your own algorithm. Change it with the code (docs/sweeps.md)
    has_lower_bound: bool = True  # False if it sees more than the losses of the arms that it plays

    def __post_init__(self) -> None:
        if not (isinstance(self.name, str) and self.name.strip() and self.name.isprintable()):
            raise InvalidInput(f"the name of an algorithm must be a text in one line, got {self.name!r}")
        for field in ("summary", "citation", "needs"):
            if not isinstance(getattr(self, field), str):
                raise InvalidInput(f"{self.name}: {field} must be a text, got {getattr(self, field)!r:.80}")
        for field in ("player", "bound"):
            if not callable(getattr(self, field)):
                what = f"{field} must be a function of a lab.Setting, got {getattr(self, field)!r:.80}"
                raise InvalidInput(f"{self.name}: {what}")
