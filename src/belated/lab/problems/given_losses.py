"""Losses that are given as an array or a file. Their arms stay in their order."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np

from belated.arrays import Floats
from belated.errors import InvalidInput
from belated.lab.problems.files import read_matrix
from belated.lab.problems.losses import Deterministic, spans
from belated.lab.problems.texts import text_of_array
from belated.validation import as_numbers


@final
@dataclass(frozen=True, eq=False, repr=False)
class GivenLosses(Deterministic):
    """A matrix of losses with a row for each round and a column for each arm. The arms stay in their order.

    It is copied. So the game stays the same if you change your array afterwards.
    """

    matrix: Floats

    def __repr__(self) -> str:
        return f"GivenLosses({text_of_array(self.matrix)})"

    def __post_init__(self) -> None:
        try:
            matrix = as_numbers(self.matrix)
        except InvalidInput as error:
            raise InvalidInput(f"losses must be a matrix of numbers, but {error}") from None
        if matrix.ndim != 2 or matrix.size == 0:
            raise InvalidInput(f"losses must be a matrix with a row for each round, got shape {matrix.shape}")
        if not ((matrix >= 0) & (matrix <= 1)).all():
            row, column = np.argwhere(~((matrix >= 0) & (matrix <= 1)))[0]
            raise InvalidInput(f"losses must lie in [0, 1], got {matrix[row, column]} in round {row + 1}, arm {column}")
        object.__setattr__(self, "matrix", matrix.copy())

    def blocks(self, n_arms: int, n_rounds: int, delay: int, generator: np.random.Generator) -> Iterator[Floats]:
        if self.matrix.shape[1] != n_arms or self.matrix.shape[0] < n_rounds:
            rows, columns = self.matrix.shape
            game = f"the game has {n_rounds:,} rounds and {n_arms} arms"
            raise InvalidInput(f"the losses are for {rows:,} rounds and {columns} arms, but {game}. Set both to fit")
        for start, stop in spans(n_rounds, n_arms):
            yield self.matrix[start:stop]


@final
@dataclass(frozen=True)
class LossesFile(Deterministic):
    """Losses from a CSV, Parquet or npy file with a row for each round and a column for each arm.

    The arms stay in their order.
    """

    path: Path

    def blocks(self, n_arms: int, n_rounds: int, delay: int, generator: np.random.Generator) -> Iterator[Floats]:
        return self.loaded().blocks(n_arms, n_rounds, delay, generator)

    def loaded(self) -> GivenLosses:
        return GivenLosses(read_matrix(Path(self.path)))
