"""A round: take in what has arrived, solve, draw, enter the decision."""

import numpy as np

from belated.kernels.argmin import X, argmin
from belated.kernels.clock import count, enter, settle
from belated.kernels.compiling import Floats, Integers, Record, Records, compiled
from belated.kernels.draw import accumulate, draw


@compiled
def solve(clock: Record, policy: Floats, cdf: Floats, alpha: float, beta: float) -> None:
    """Take in what has arrived and compute the distribution for the rates (alpha, beta)."""
    settle(clock)
    clock.solves += 1
    clock.alpha = alpha
    clock.beta = beta
    argmin(policy, alpha, beta)
    accumulate(policy[X], cdf)


@compiled
def decide(
    clocks: Records, ledger: Records, policy: Floats, cdf: Floats, patience: float, uniform: float
) -> tuple[int, float]:
    """One decision from the distribution in force: the arm and its probability."""
    clock = clocks[0]
    count(clock, ledger, patience)
    arm = draw(policy[X], cdf, uniform)
    probability = policy[X, arm]
    enter(clock, ledger, policy.shape[1], arm, probability)
    return arm, probability


@compiled
def solve_and_decide(
    clocks: Records,
    ledger: Records,
    policy: Floats,
    cdf: Floats,
    patience: float,
    uniform: float,
    alpha: float,
    beta: float,
) -> tuple[int, float]:
    """A fresh distribution and one decision from it: the arm and its probability."""
    solve(clocks[0], policy, cdf, alpha, beta)
    return decide(clocks, ledger, policy, cdf, patience, uniform)


@compiled
def decide_batch(
    clocks: Records, ledger: Records, policy: Floats, cdf: Floats, patience: float, uniforms: Floats
) -> Integers:
    """One decision for each uniform, all from the distribution in force: the arms."""
    arms = np.empty(uniforms.shape[0], np.int64)
    for i in range(uniforms.shape[0]):
        arms[i], _ = decide(clocks, ledger, policy, cdf, patience, uniforms[i])
    return arms


@compiled
def solve_once(clocks: Records, policy: Floats, cdf: Floats, alpha: float, beta: float) -> None:
    """A fresh distribution, for a batch of decisions."""
    solve(clocks[0], policy, cdf, alpha, beta)
