"""What a learner keeps between rounds: arrays that the kernels change in place."""

import math
from typing import Any, NamedTuple

import numpy as np

from belated import kernels
from belated.arrays import Floats
from belated.tunings import Shadow, Tuning


class State(NamedTuple):
    """All of a learner."""

    n_arms: int
    tuning: Tuning
    refresh: int
    clock: Any
    policies: Floats
    ledger: Any
    generator: np.random.Generator
    uniforms: list[float]


def blank(n_arms: int, tuning: Tuning) -> tuple[Any, Floats]:
    """The clock and the policies before the first round: one, or with a shadow a bold and a careful one."""
    clock, policies = np.zeros(1, kernels.CLOCK), np.zeros((1, kernels.ROWS, n_arms))
    if isinstance(tuning, Shadow) and n_arms > 1:
        clock["switch_threshold"] = tuning.switch_threshold
        policies = np.zeros((2, kernels.ROWS, n_arms))
    policies[:, kernels.V] = 0.5 * math.log(n_arms)
    return clock, policies
