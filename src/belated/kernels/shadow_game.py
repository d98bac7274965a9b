"""A whole game of a learner with a shadow. Which of the two policies decides depends on the losses."""

from belated.arrays import Floats
from belated.kernels.argmin import LOSSES, X
from belated.kernels.compiling import Policies, Records, compiled_first
from belated.kernels.draw import draw, normalise
from belated.kernels.game import Links, expectation
from belated.kernels.shadow import bold_advantage, choose, measure


@compiled_first
def play_shadow_block(
    start: int,
    losses: Floats,
    alpha: Floats,
    beta: Floats,
    allowed: Floats,
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
    expected: Floats,
    suffered: Floats,
) -> None:
    """Play the rounds start, start + 1, ... (from 0), one for each row of losses, as `play_block` does.

    alpha and beta are the careful rates. `allowed` is what their guarantee grants the earlier reported rounds.
    `reports` keeps the loss of every decision until it arrives, and `bold_advantages` how much likelier the bold policy
    was to draw it.
    """
    clock = clocks[0]
    for i in range(losses.shape[0]):
        t = start + i
        clock.alpha = alpha[t]
        clock.beta = beta[t]
        choose(clock, policies, allowed[t])
        clock.solves += 1
        x = policies[clock.shadow.played, X]
        normalise(x, cdf)
        arm = draw(x, cdf, uniforms[i])
        arms[t] = arm
        probabilities[t] = x[arm]
        bold_advantages[t] = bold_advantage(policies, arm, x[arm])
        reports[t] = losses[i, arm]
        expected[i] = expectation(x, losses[i])
        suffered[i] = losses[i, arm]
        s = first[t]
        while s >= 0:
            for j in range(policies.shape[0]):
                policies[j, LOSSES, arms[s]] += reports[s] / probabilities[s]
            measure(clock, reports[s], bold_advantages[s])
            clock.reported += 1
            clock.suffered += reports[s]
            s = following[s]
