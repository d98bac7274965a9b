"""A whole game of a learner with a shadow: its rates depend on the losses, so they are found while it plays."""

from belated.kernels.argmin import LOSSES, X
from belated.kernels.compiling import Floats, Policies, Records, compiled
from belated.kernels.draw import draw
from belated.kernels.game import Links, expectation
from belated.kernels.rounds import compute
from belated.kernels.shadow import measure, watch


@compiled
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
    carefuls: Floats,
    expected: Floats,
    suffered: Floats,
) -> None:
    """Play the rounds start, start + 1, ... (from 0), one for each row of losses: `play_block` with a shadow.

    alpha and beta are the shadow's careful rates, `allowed` what its guarantee grants the rounds reported before each
    round. `reports` keeps the loss of every decision until it arrives, `carefuls` the shadow's probability of its arm.
    """
    clock = clocks[0]
    for i in range(losses.shape[0]):
        t = start + i
        clock.alpha = alpha[t]
        clock.beta = beta[t]
        clock.bold_beta = watch(clock, policies[1], alpha[t], beta[t], allowed[t])
        compute(clock, policies, cdf)
        arm = draw(policies[0, X], cdf, uniforms[i])
        arms[t] = arm
        probabilities[t] = policies[0, X, arm]
        carefuls[t] = policies[1, X, arm]
        reports[t] = losses[i, arm]
        expected[i] = expectation(policies[0, X], losses[i])
        suffered[i] = losses[i, arm]
        s = first[t]
        while s >= 0:
            for j in range(policies.shape[0]):
                policies[j, LOSSES, arms[s]] += reports[s] / probabilities[s]
            measure(clock, reports[s], probabilities[s], carefuls[s])
            clock.reported += 1
            clock.suffered += reports[s]
            s = following[s]
