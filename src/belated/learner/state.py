"""What a learner keeps between rounds: arrays that the kernels change in place."""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from belated import kernels
from belated.tunings import Shadow, Tuning


class State(NamedTuple):
    """All of a learner."""

    n_arms: int
    tuning: Tuning
    refresh: int
    clock: Any
    policies: NDArray[np.float64]
    ledger: Any
    generator: np.random.Generator
    uniforms: list[float]


def blank(n_arms: int, tuning: Tuning) -> tuple[Any, NDArray[np.float64]]:
    """The clock and the policies before the first round: one, or with a shadow a bold and a careful one."""
    clock, policies = np.zeros(1, kernels.CLOCK), np.zeros((1, kernels.ROWS, n_arms))
    if isinstance(tuning, Shadow) and n_arms > 1:
        clock["doubt"] = tuning.doubt
        policies = np.zeros((2, kernels.ROWS, n_arms))
    policies[:, kernels.V] = 0.5 * math.log(n_arms)
    return clock, policies
