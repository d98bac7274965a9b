"""Delays that are given as an array or a file."""

from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np

from belated.arrays import Integers
from belated.errors import InvalidInput
from belated.lab.problems.delays import NEVER, Delays
from belated.lab.problems.files import read_column
from belated.lab.problems.texts import text_of_array
from belated.validation import as_delays


@final
@dataclass(frozen=True, eq=False, repr=False)
class GivenDelays(Delays):
    """An array of delays, which is copied. A longer game repeats it."""

    values: Integers

    def __repr__(self) -> str:
        return f"GivenDelays({text_of_array(self.values)})"

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", as_delays(self.values).copy())

    def draw(self, n_arms: int, n_rounds: int, generator: np.random.Generator) -> Integers:
        return np.resize(self.values, n_rounds)


@final
@dataclass(frozen=True)
class DelaysFile(Delays):
    """Delays from a CSV, Parquet or npy file, from the column `delay` or the only one.

    An empty cell means never. A longer game repeats the delays.
    """

    path: Path
    column: str = "delay"

    def draw(self, n_arms: int, n_rounds: int, generator: np.random.Generator) -> Integers:
        return self.loaded().draw(n_arms, n_rounds, generator)

    def loaded(self) -> GivenDelays:
        values = read_column(Path(self.path), self.column)
        whole = np.where(np.isnan(values), NEVER, np.minimum(values, NEVER))
        wrong = whole[~((whole >= 0) & (whole == np.floor(whole)))]
        if wrong.size:
            raise InvalidInput(f"{self.path}: delays must be whole numbers of rounds from 0, got {wrong[0]}")
        return GivenDelays(whole.astype(np.int64))
