"""A problem: losses x delays, a number of arms and of rounds. The same seed gives the same problem."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from belated.lab.delays import Delays
from belated.lab.losses import Losses, Matrix
from belated.validation import whole_number


@final
@dataclass(frozen=True)
class Problem:
    """A game an oblivious adversary has prepared: `losses` and `delays`, `n_arms` and `n_rounds`."""

    losses: Losses
    delays: Delays
    n_arms: int = 10
    n_rounds: int = 10_000

    def __post_init__(self) -> None:
        whole_number("n_arms", self.n_arms, 1)
        whole_number("n_rounds", self.n_rounds, 1)

    def draw_delays(self, seed: int) -> NDArray[np.int64]:
        """d_1..d_n of the problem with this seed."""
        return self.delays.draw(self.n_arms, self.n_rounds, np.random.default_rng([seed, 0]))

    def loss_blocks(self, seed: int, delays: NDArray[np.int64]) -> Iterator[Matrix]:
        """The rows of the loss matrix of the problem with this seed, a block at a time."""
        typical = self.delays.typical
        if typical is None:
            reported = delays[delays < self.n_rounds]
            typical = int(np.median(reported)) if reported.size else 0
        return self.losses.blocks(self.n_arms, self.n_rounds, typical, np.random.default_rng([seed, 1]))
