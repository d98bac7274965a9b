"""Puts the arms of any losses in random order."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import numpy as np

from belated.arrays import Floats
from belated.errors import InvalidInput
from belated.lab.problems.losses import Losses


@final
@dataclass(frozen=True)
class Shuffled(Losses):
    """The losses of another rule, whose arms the seed puts in random order."""

    of: Losses

    def __post_init__(self) -> None:
        if not isinstance(self.of, Losses):
            raise InvalidInput(f"only losses that are fixed before the game can be shuffled, got {self.of!r:.80}")

    @property
    def depends_on_horizon(self) -> bool:
        return self.of.depends_on_horizon

    @property
    def follows_delay(self) -> bool:
        return self.of.follows_delay

    def blocks(self, n_arms: int, n_rounds: int, delay: int, generator: np.random.Generator) -> Iterator[Floats]:
        order = generator.permutation(n_arms)
        for block in self.of.blocks(n_arms, n_rounds, delay, generator):
            yield block[:, order]

    def mean_blocks(
        self, n_arms: int, n_rounds: int, delay: int, generator: np.random.Generator
    ) -> Iterator[Floats] | None:
        order = generator.permutation(n_arms)
        means = self.of.mean_blocks(n_arms, n_rounds, delay, generator)
        return None if means is None else (block[:, order] for block in means)

    def loaded(self) -> "Shuffled":
        return Shuffled(self.of.loaded())
