"""A problem is losses and delays for a number of arms and rounds. The same seed gives the same problem."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import numpy as np

from belated.arrays import Floats, Integers
from belated.errors import InvalidInput
from belated.lab.problems.delays import Delays
from belated.lab.problems.losses import Losses
from belated.validation import as_delays, whole_number


@final
@dataclass(frozen=True)
class Problem:
    """Losses and delays that are fixed before the game begins, for `n_arms` and `n_rounds`.

    >>> from belated import lab
    >>> problem = lab.Problem(lab.Bernoulli(gap=0.2), lab.Fixed(3), n_arms=2, n_rounds=5)
    >>> problem.draw_delays(seed=1)
    array([3, 3, 3, 3, 3])
    """

    losses: Losses
    delays: Delays
    n_arms: int = 10
    n_rounds: int = 10_000

    def __post_init__(self) -> None:
        whole_number("n_arms", self.n_arms, 1)
        whole_number("n_rounds", self.n_rounds, 1)

    def loaded(self) -> "Problem":
        """The same problem with its files read into memory. It can then be played where the files are not."""
        return Problem(self.losses.loaded(), self.delays.loaded(), self.n_arms, self.n_rounds)

    def draw_delays(self, seed: int) -> Integers:
        """The delays d_1..d_n of the game with this seed."""
        delays = as_delays(self.delays.draw(self.n_arms, self.n_rounds, _generator(seed, 0)))
        if delays.size != self.n_rounds:
            raise InvalidInput(f"{self.delays!r} gave {delays.size} delays for {self.n_rounds} rounds")
        return delays

    def loss_blocks(self, seed: int, delays: Integers) -> Iterator[Floats]:
        """The rows of the loss matrix of the game with this seed, a block at a time."""
        typical = self.delays.typical
        if typical is None:
            reported = delays[delays < self.n_rounds]
            typical = int(np.median(reported)) if reported.size else 0
        rows, is_built_in = 0, type(self.losses).__module__ == Losses.__module__
        for block in self.losses.blocks(self.n_arms, self.n_rounds, typical, _generator(seed, 1)):
            rows += len(block)
            if block.ndim != 2 or block.shape[1] != self.n_arms or rows > self.n_rounds:
                raise InvalidInput(
                    f"{self.losses!r:.80} gave losses of the wrong shape {block.shape} up to round {rows}"
                )
            if not (is_built_in or (block.min() >= 0 and block.max() <= 1)):
                raise InvalidInput(f"{self.losses!r:.80} gave losses outside [0, 1] up to round {rows}")
            yield block
        if rows != self.n_rounds:
            raise InvalidInput(f"{self.losses!r:.80} gave losses for {rows} of {self.n_rounds} rounds")


def _generator(seed: int, part: int) -> np.random.Generator:
    """Independent streams for delays (0) and losses (1). The learner's own stream is default_rng(seed)."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(part,)))
