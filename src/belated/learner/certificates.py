"""Bounds on a learner's regret, read off its clock (docs/theory/certificate.md, docs/theory/shadow.md).

The proven certificate bounds the expected regret. It depends on the delays and the rates alone. The measured one is
this run's own evidence. Its mean over runs is at least the mean regret.
"""

import math
from typing import Any

from belated import kernels
from belated.arrays import Floats


def uncapped(clock: Any, n_arms: int, *, has_shadow: bool) -> float:
    """The proven certificate without the trivial bound n.

    2 alpha_n (sqrt(k) - 1) + beta_n ln k + sum_s min{ 1, k / (alpha_s sqrt(k) + 2 beta_s) + H_s }
    H_s = sum of 1 / (beta_t + alpha_t / 2) over the rounds t > s decided without the feedback of s

    With a shadow beta is the careful policy's, the stability term is sqrt(k) / alpha_s, and W + 1 is added.
    """
    charge = clock["charge"] + clock["charged"] * clock["drift"] - clock["base"]
    certificate = kernels.penalty(n_arms, clock["alpha"], clock["beta"]) + float(charge)
    return certificate + float(clock["peak_uncharged"]) + 1 if has_shadow else certificate


def proven(clock: Any, n_arms: int, *, has_shadow: bool) -> float:
    """The number that the expected regret so far provably does not exceed, in O(1)."""
    if n_arms == 1:
        return 0.0
    return min(float(clock["round"]), uncapped(clock, n_arms, has_shadow=has_shadow))


def measured(clock: Any, policy: Floats) -> float:
    """The sum of the reported losses + Phi(Lobs) - 2 alpha + 1 for every round that is unreported or discarded.

    Phi(L) = max over the simplex of -<x, L> + 2 alpha sum_i sqrt(x_i),  alpha = 2 sqrt(n)

    `policy` is a copy of a learner's policy. Its solution is overwritten.
    """
    if policy.shape[1] == 1 or clock["round"] == 0:
        return 0.0
    # any alpha is valid: a larger one leaves more room for chance, and a smaller one is tighter
    alpha = 2 * math.sqrt(clock["round"])
    kernels.argmin(policy, alpha, 0.0, 0)
    lead = clock["suffered"] + kernels.potential(policy, alpha, 0.0) - 2 * alpha
    return float(lead + clock["round"] - clock["reported"])
