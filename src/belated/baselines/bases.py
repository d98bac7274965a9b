"""What the wrappers among the baselines are built from: a base learner, how to make one, and its seed."""

import math
from collections.abc import Callable
from typing import Any, Protocol, final

import numpy as np
from numpy.typing import NDArray

from belated.errors import InvalidInput
from belated.learner.ftrl import Learner
from belated.validation import whole_number

Floats = NDArray[np.float64]


class Base(Learner, Protocol):
    """A learner that also tells the probabilities of its coming draw."""

    @property
    def round(self) -> int:
        """t: decisions made so far."""

    def distribution(self) -> Floats:
        """The probability of each arm in the coming round; asking changes nothing."""


MakeBase = Callable[[int, int], Base]  # from the number of arms and a seed


def as_maker(base: Any, default: MakeBase) -> MakeBase:
    """The maker of base learners, or the default if there is none."""
    if base is None:
        return default
    if not callable(base):
        raise InvalidInput(f"base must make a learner from a number of arms and a seed, got {base!r}")
    maker: MakeBase = base
    return maker


def generator_of(seed: int | None) -> np.random.Generator:
    """The generator of a seed; None: a fresh one."""
    return np.random.default_rng(None if seed is None else whole_number("seed", seed, 0, math.inf))


@final
class Seeds:
    """Independent seeds 0, 1, 2, ... that all follow from one."""

    def __init__(self, seed: int | None) -> None:
        root = None if seed is None else whole_number("seed", seed, 0, math.inf)
        self._entropy = np.random.SeedSequence(root).entropy

    def __getitem__(self, index: int) -> int:
        return int(np.random.SeedSequence(self._entropy, spawn_key=(index,)).generate_state(1, np.uint64)[0])


def one_hot(n_arms: int, arm: int) -> Floats:
    """The distribution of a draw that is settled already."""
    x = np.zeros(n_arms)
    x[arm] = 1.0
    return x
