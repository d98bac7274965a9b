"""Bounds on a learner's regret, read off its clock (docs/theory/certificate.md, shadow.md and means.md).

The proven certificate bounds the expected regret. It depends on the delays and the rates alone, and for a learner on
means also on when the alarm was raised. The measured one is this run's own evidence. Its mean over runs is at least the
mean regret.
"""

import math
from typing import Any

import numpy as np

from belated import kernels
from belated.arrays import Floats
from belated.learner.state import has_means, has_shadow


def uncapped(clock: Any, policies: Floats) -> float:
    """The proven certificate without the trivial bound n.

    2 alpha_n (sqrt(k) - 1) + beta_n ln k + sum_s min{ 1, k / (alpha_s sqrt(k) + 2 beta_s) + H_s }
    H_s = sum of 1 / (beta_t + alpha_t / 2) over the rounds t > s decided without the feedback of s

    With a shadow beta is the careful policy's, the stability term is sqrt(k) / alpha_s, and W + 1 is added.
    On means it is what the alarm allows the rounds that the last solve knew, and 1 for each other one. After an alarm
    it is the lead that raised it, 1 for each round outside the lead, and the careful policy's certificate since then.
    """
    if has_means(policies) and not clock["shadow"]["alarm"]:
        means = clock["means"]
        if means["is_over"]:
            return float(means["lead"] + clock["round"] - means["known"])
        return without_alarm(clock, policies.shape[2])
    charge = clock["charge"] + clock["charged"] * clock["drift"] - clock["base"]
    certificate = kernels.penalty(policies.shape[2], clock["alpha"], clock["beta"]) + float(charge)
    if has_shadow(policies) and not has_means(policies):
        return certificate + float(clock["peak_uncharged"]) + 1
    return certificate


def without_alarm(clock: Any, n_arms: int) -> float:
    """The proven certificate on means of all runs that raise no alarm. It depends on the delays alone."""
    allowed = kernels.allowance(n_arms, int(clock["round"]), int(clock["backlog"]))
    return allowed + float(clock["round"] - clock["means"]["settled"])


def proven(clock: Any, policies: Floats, head_start: float = 0.0) -> float:
    """The number that the expected regret so far provably does not exceed, in O(1).

    It is cut off at n, the trivial bound. On means it is a random number, so it is n in all runs or in none. Then it
    may exceed n after an alarm.
    """
    n, n_arms = float(clock["round"]), policies.shape[2]
    if n_arms == 1 or n == 0:
        return 0.0
    if has_means(policies):
        return n if without_alarm(clock, n_arms) >= n else uncapped(clock, policies)
    return min(n, uncapped(clock, policies) + head_start)


def measured(clock: Any, policies: Floats, head_start: float = 0.0) -> float:
    """The sum of the reported losses + Phi(Lobs) - 2 alpha + 1 for every round that is unreported or discarded.

    Phi(L) = max over the simplex of -<x, L> + 2 alpha sum_i sqrt(x_i),  alpha = 2 sqrt(n)

    Centred estimates and losses give the same kind of number, with less noise.
    """
    n_arms = policies.shape[2]
    if n_arms == 1 or clock["round"] == 0:
        return 0.0
    policy = np.zeros((kernels.ROWS, n_arms))
    policy[kernels.V] = 0.5 * math.log(n_arms)
    estimates = policies[kernels.ON_MEANS if has_means(policies) else 0, kernels.LOSSES]
    lowest = min(0.0, float(estimates.min()))
    policy[kernels.LOSSES] = estimates - lowest
    # any alpha is valid: a larger one leaves more room for chance, and a smaller one is tighter
    alpha = 2 * math.sqrt(clock["round"])
    kernels.argmin(policy, alpha, 0.0, 0)
    suffered = float(clock["suffered"] - clock["means"]["centres"])
    lead = suffered + kernels.potential(policy, alpha, 0.0) - lowest - 2 * alpha
    return float(lead + clock["round"] - clock["reported"]) + head_start
