"""A whole game against known losses and delays: the compiled twin of ask and tell."""

from belated.kernels.argmin import LOSSES, X, argmin
from belated.kernels.compiling import Floats, Integers, compiled
from belated.kernels.draw import draw, normalise


@compiled
def expectation(x: Floats, losses: Floats) -> float:
    """<x, l>, one arm after the other."""
    mean = 0.0
    for i in range(x.shape[0]):
        mean += x[i] * losses[i]
    return mean


@compiled
def play_block(
    start: int,
    losses: Floats,
    alpha: Floats,
    beta: Floats,
    uniforms: Floats,
    order: Integers,
    arrives_at: Integers,
    policy: Floats,
    cdf: Floats,
    arms: Integers,
    estimates: Floats,
    expected: Floats,
    suffered: Floats,
    reported: int,
) -> int:
    """Play the rounds start, start + 1, ... (from 0), one for each row of losses; returns how many reports have come.

    `order` lists the rounds by (arrival, round), `arrives_at` the round at whose end each of those arrives. `estimates`
    keeps loss / probability of every decision until its report comes.
    """
    for i in range(losses.shape[0]):
        t = start + i
        argmin(policy, alpha[t], beta[t])
        normalise(policy[X], cdf)
        arm = draw(policy[X], cdf, uniforms[i])
        arms[t] = arm
        estimates[t] = losses[i, arm] / policy[X, arm]
        expected[i] = expectation(policy[X], losses[i])
        suffered[i] = losses[i, arm]
        while reported < order.shape[0] and arrives_at[reported] <= t:
            s = order[reported]
            policy[LOSSES, arms[s]] += estimates[s]
            reported += 1
    return reported
