"""A whole game of a learner on means. Which policy decides depends on the losses."""

import numpy as np
from numpy.typing import NDArray

from belated.arrays import Floats, Integers
from belated.kernels.argmin import X
from belated.kernels.compiling import Policies, Records, compiled_first
from belated.kernels.draw import draw, normalise
from belated.kernels.game import Links, expectation
from belated.kernels.means import MISSING, ON_MEANS, centre, choose_stage, learn
from belated.kernels.shadow import bold_advantage


@compiled_first
def play_means_block(
    start: int,
    losses: Floats,
    is_lost: NDArray[np.bool_],
    backlog: Integers,
    uniforms: Floats,
    first: Links,
    following: Links,
    clocks: Records,
    policies: Policies,
    cdf: Floats,
    arms: Links,
    probabilities: Floats,
    reports: Floats,
    bold_advantages: Floats,
    centres: Floats,
    expected: Floats,
    suffered: Floats,
) -> None:
    """Play the rounds start, start + 1, ... (from 0), one for each row of losses, as `play_shadow_block` does.

    `backlog` has D_t of every round. If `is_lost` has rows, the report of the drawn arm never comes where it is true.
    """
    clock = clocks[0]
    for i in range(losses.shape[0]):
        t = start + i
        choose_stage(clock, policies, t + 1, backlog[t])
        clock.solves += 1
        x = policies[clock.shadow.played, X]
        normalise(x, cdf)
        arm = draw(x, cdf, uniforms[i])
        arms[t] = arm
        probabilities[t] = x[arm]
        bold_advantages[t] = bold_advantage(policies, arm, x[arm])
        centres[t] = centre(clock)
        policies[ON_MEANS, MISSING, arm] += 1
        reports[t] = -1.0 if is_lost.shape[0] > 0 and is_lost[i, arm] else losses[i, arm]
        expected[i] = expectation(x, losses[i])
        suffered[i] = losses[i, arm]
        s = first[t]
        while s >= 0:
            if reports[s] >= 0:
                drawn = arms[s], probabilities[s], bold_advantages[s], centres[s]
                learn(clock, policies, s + 1, *drawn, reports[s], t + 1, backlog[t])
                clock.reported += 1
                clock.suffered += reports[s]
            s = following[s]
