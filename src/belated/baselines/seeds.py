"""Random generators and independent seeds, all derived from one seed."""

import math
from typing import final

import numpy as np

from belated.validation import whole_number


def generator_of(seed: int | None) -> np.random.Generator:
    """The random generator of a seed, or a fresh one for None."""
    return np.random.default_rng(None if seed is None else whole_number("seed", seed, 0, math.inf))


@final
class Seeds:
    """Independent seeds, numbered 0, 1, 2, ..., all derived from one seed."""

    def __init__(self, seed: int | None) -> None:
        root = None if seed is None else whole_number("seed", seed, 0, math.inf)
        self._entropy = np.random.SeedSequence(root).entropy

    def __getitem__(self, index: int) -> int:
        return int(np.random.SeedSequence(self._entropy, spawn_key=(index,)).generate_state(1, np.uint64)[0])
