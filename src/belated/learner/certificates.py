"""Bounds on a learner's regret, read off its arrays (docs/theory).

proven       bounds the mean regret over runs, for delays fixed in advance     certificate.md, shadow.md, means.md
proven_any   the same for any delays                                           any-delays.md
measured     this run's own evidence. Its mean bounds the mean regret          any-delays.md
run_bounds   bound the regret of this run with a given confidence              any-delays.md
"""

import math
from typing import Any, NamedTuple

import numpy as np

from belated import kernels
from belated.arrays import Floats
from belated.learner.state import has_means, has_shadow


class Arrays(NamedTuple):
    """What a stretch of rounds has left in a learner."""

    clock: Any  # a record, not an array
    ledger: Any
    policies: Floats
    bets: Floats
    head_start: float

    @property
    def n_arms(self) -> int:
        return int(self.policies.shape[2])

    @property
    def is_trivial(self) -> bool:
        """Whether there is nothing to regret."""
        return self.n_arms == 1 or self.clock["round"] == 0

    @property
    def is_provisional(self) -> bool:
        """Whether open decisions count, so that means depend on arms before their reports."""
        return has_means(self.policies) and bool(self.clock["means"]["provisional"] >= 0)


def uncapped(clock: Any, policies: Floats) -> float:
    """The proven certificate for fixed delays, without the trivial bound n.

    2 alpha_n (sqrt(k) - 1) + beta_n ln k + sum_s min{ 1, k / (alpha_s sqrt(k) + 2 beta_s) + H_s }
    H_s = sum over the rounds t > s decided without the feedback of s of what each of them costs (kernels/charges.py)

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


def _allowed(clock: Any, n_arms: int) -> float:
    return kernels.allowance(n_arms, int(clock["round"]), int(clock["backlog"])) + float(clock["mix_charge"])


def without_alarm(clock: Any, n_arms: int) -> float:
    """The proven certificate on means of all runs that raise no alarm. It depends on the delays alone."""
    return _allowed(clock, n_arms) + float(clock["round"] - clock["means"]["settled"])


def proven(arrays: Arrays) -> float:
    """The number that the expected regret so far provably does not exceed, for delays fixed in advance. In O(1).

    It is cut off at n, the trivial bound. On means it is a random number, so it is n in all runs or in none. Then it
    may exceed n after an alarm. With provisional outcomes its proof needs what any delays need.
    """
    clock, policies, n = arrays.clock, arrays.policies, float(arrays.clock["round"])
    if arrays.is_trivial:
        return 0.0
    if arrays.is_provisional:
        return proven_any(arrays)
    if has_means(policies):
        return n if without_alarm(clock, arrays.n_arms) >= n else uncapped(clock, policies)
    return min(n, uncapped(clock, policies) + arrays.head_start)


def proven_any(arrays: Arrays) -> float:
    """A number whose mean over runs is at least the expected regret, for any delays. It may exceed n.

    On means it is what the alarm allows, and what the rounds without a report could add to that. With rates it is the
    penalty and the charges of kernels/any_delays.py. A shadow pays what its alarm allows, and 1 for every open round.
    """
    clock, policies = arrays.clock, arrays.policies
    if arrays.is_trivial:
        return 0.0
    if not has_shadow(policies) or clock["shadow"]["alarm"]:
        penalty = kernels.penalty(arrays.n_arms, clock["alpha"], clock["beta"])
        return penalty + float(clock["any_charge"]) + arrays.head_start
    if not has_means(policies):
        return uncapped(clock, policies) + arrays.head_start
    means = clock["means"]
    if means["is_over"]:
        return float(means["lead"] + means["over_open"] + clock["round"] - means["over_round"])
    return _allowed(clock, arrays.n_arms) + max(0.0, float(_unreported(arrays).max()))


def _unreported(arrays: Arrays) -> Floats:
    """What the rounds without a report could add to the lead against each arm, on means."""
    added: Floats = kernels.unreported(arrays.clock, arrays.ledger, arrays.policies)
    return added


class Measured(NamedTuple):
    """The measured certificate in two parts."""

    known: float  # what the reports show
    open: float  # what the rounds without a report could still add


def measured(arrays: Arrays) -> Measured:
    """The sum of the losses + Phi(L) - 2 alpha, where every round without a report counts with its worst outcome.

    Phi(L) = max over the simplex of -<x, L> + 2 alpha sum_i sqrt(x_i),  alpha = 2 sqrt(n)

    On means the losses and the estimates L are centred, which has less noise.
    """
    if arrays.is_trivial:
        return Measured(0.0, 0.0)
    clock, on_means = arrays.clock, has_means(arrays.policies)
    estimates = arrays.policies[kernels.ON_MEANS if on_means else 0, kernels.LOSSES]
    suffered = float(clock["suffered"] - clock["means"]["centres"])
    # any alpha is valid: a larger one leaves more room for chance, and a smaller one is tighter
    alpha = 2 * math.sqrt(clock["round"])
    known = suffered + _potential(estimates, alpha) + arrays.head_start
    if not on_means:
        return Measured(known, float(clock["round"] - clock["reported"]))
    total = suffered + _potential(estimates - _unreported(arrays), alpha) + arrays.head_start
    return Measured(known, total - known)


def _potential(estimates: Floats, alpha: float) -> float:
    """Phi(L) - 2 alpha. It is at least -L_i for every arm i."""
    policy = np.zeros((kernels.ROWS, estimates.size))
    policy[kernels.V] = 0.5 * math.log(estimates.size)
    lowest = min(0.0, float(estimates.min()))
    policy[kernels.LOSSES] = estimates - lowest
    kernels.argmin(policy, alpha, 0.0, 0)
    return float(kernels.potential(policy, alpha, 0.0) - lowest - 2 * alpha)


def logarithms(arrays: Arrays) -> Floats:
    """For each g and arm, the logarithm of the product of (1 + g U), where a round without a report has U = -1."""
    sums = np.log(arrays.bets[:, 0]) + arrays.bets[:, 1]
    missing = float(arrays.clock["round"] - arrays.clock["reported"])
    return np.asarray(sums[:-1] + sums[-1] + missing * np.log1p(-kernels.GRID)).T


def run_bounds(logs: Floats, surprise: float | Floats) -> Floats:
    """For each column, the regret R at which the average over g of exp(logs_g + g R) is exp(surprise).

    With surprise = ln(1 / delta), the average stays below that at all times with probability 1 - delta. So the regret
    stays below R.
    """
    grid, log_size = kernels.GRID[:, None], math.log(kernels.GRID.size)
    exponents = logs - log_size - surprise
    high = (-exponents / grid).min(axis=0)  # one g alone reaches it here
    low = ((-exponents - log_size) / grid).min(axis=0)  # and all of them together not before here
    for _ in range(60):
        middle = (low + high) / 2
        is_below = np.exp(np.minimum(exponents + grid * middle, 0.0)).sum(axis=0) < 1
        low, high = np.where(is_below, middle, low), np.where(is_below, high, middle)
    return np.asarray(high)
