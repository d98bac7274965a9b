"""A whole game against known losses and delays. The compiled twin of ask and tell."""

import numpy as np
from numpy.typing import NDArray

from belated.arrays import Floats, Integers
from belated.kernels.argmin import LOSSES, X, argmin
from belated.kernels.compiling import compiled, compiled_first
from belated.kernels.draw import draw, normalise

Links = NDArray[np.int32]
TOLERANCE = 1e-6  # of the sum of a distribution, and of the probability of an arm
ROUNDING = 1e-9  # a sum that differs from 1 by more is divided out


@compiled
def expectation(x: Floats, losses: Floats) -> float:
    """<x, l> in four lanes."""
    whole = x.shape[0] - x.shape[0] % 4
    s0 = s1 = s2 = s3 = 0.0
    for i in range(0, whole, 4):
        s0 += x[i] * losses[i]
        s1 += x[i + 1] * losses[i + 1]
        s2 += x[i + 2] * losses[i + 2]
        s3 += x[i + 3] * losses[i + 3]
    for i in range(whole, x.shape[0]):
        s0 += x[i] * losses[i]
    return (s0 + s1) + (s2 + s3)


@compiled_first
def weigh(x: Floats, losses: Floats, arms: Integers, probabilities: Floats, expected: Floats, variances: Floats) -> int:
    """The mean and the variance of every round's loss under its row of x.

    Returns the first row that is no distribution, or does not fit its drawn arm, or -1. An arm's probability may be
    NaN, which says nothing.
    """
    for t in range(x.shape[0]):
        total = square = 0.0
        for i in range(x.shape[1]):
            total += x[t, i] if x[t, i] >= 0.0 else np.nan
            square += x[t, i] * losses[t, i] * losses[t, i]
        chance = x[t, arms[t]]
        if not abs(total - 1.0) <= TOLERANCE or chance == 0.0 or abs(chance - probabilities[t]) > TOLERANCE:
            return t
        mean = expectation(x[t], losses[t])
        if abs(total - 1.0) > ROUNDING:
            mean, square = mean / total, square / total
        expected[t], variances[t] = mean, max(0.0, square - mean * mean)
    return -1


@compiled
def arrivals(delays: Integers) -> tuple[Links, Links]:
    """For each round (from 0) the first round whose feedback arrives at its end, and for that one the next, or -1.

    Rounds that arrive together are in their own order.
    """
    n = delays.shape[0]
    first = np.full(n, -1, np.int32)
    following = np.full(n, -1, np.int32)
    for s in range(n - 1, -1, -1):
        if delays[s] < n - s:
            t = s + delays[s]
            following[s] = first[t]
            first[t] = s
    return first, following


@compiled_first
def play_block(
    start: int,
    losses: Floats,
    alpha: Floats,
    beta: Floats,
    uniforms: Floats,
    first: Links,
    following: Links,
    policy: Floats,
    cdf: Floats,
    arms: Links,
    estimates: Floats,
    expected: Floats,
    suffered: Floats,
) -> None:
    """Play the rounds start, start + 1, ... (from 0), one for each row of losses.

    `first` and `following` are the `arrivals`. `estimates` keeps loss / probability of every decision until its report
    comes. `expected` and `suffered` receive <x_t, l_t> and the loss of the drawn arm.
    """
    for i in range(losses.shape[0]):
        t = start + i
        argmin(policy, alpha[t], beta[t], t)
        normalise(policy[X], cdf)
        arm = draw(policy[X], cdf, uniforms[i])
        arms[t] = arm
        estimates[t] = losses[i, arm] / policy[X, arm]
        expected[i] = expectation(policy[X], losses[i])
        suffered[i] = losses[i, arm]
        s = first[t]
        while s >= 0:
            policy[LOSSES, arms[s]] += estimates[s]
            s = following[s]
