"""A round. Take in what has arrived, solve, draw, and enter the decision."""

import math

import numpy as np

from belated.arrays import Floats, Integers
from belated.kernels.any_delays import UNKNOWN, begin_rates, charge_missing, charge_of_alarm, has_rates
from belated.kernels.argmin import LARGEST_RATE, SMALLEST_RATE, X, argmin, potential
from belated.kernels.charges import closed_charge, is_only_shadow, penalty, stability, step
from belated.kernels.clock import count, enter, settle
from belated.kernels.compiling import Policies, Record, Records, compiled
from belated.kernels.draw import draw, draw_mixed, normalise
from belated.kernels.means import choose_stage, has_means
from belated.kernels.shadow import CAREFUL, bold_advantage, choose, has_shadow


@compiled
def solve(clock: Record, policies: Policies, cdf: Floats, alpha: float, beta: float) -> None:
    """Take in what has arrived and compute the distribution for the rates (alpha, beta)."""
    settle(clock)
    clock.alpha = alpha
    clock.beta = beta
    if has_means(policies):
        _choose_stage(clock, policies)
    elif has_shadow(policies):
        _choose_policy(clock, policies)
    else:
        argmin(policies[0], alpha, beta, clock.solves)
    clock.solves += 1
    normalise(policies[clock.shadow.played, X], cdf)
    charge_missing(clock, policies)


@compiled
def _choose_policy(clock: Record, policies: Policies) -> None:
    """Solve for a learner with a shadow."""
    was_alarmed = clock.shadow.alarm
    choose(clock, policies, penalty(policies.shape[2], clock.alpha, clock.beta) + closed_charge(clock))
    if clock.shadow.alarm and not was_alarmed:
        lead = clock.suffered + potential(policies[CAREFUL], clock.alpha, clock.beta) - 2 * clock.alpha
        begin_rates(clock, policies, charge_of_alarm(clock, policies, lead))


@compiled
def _choose_stage(clock: Record, policies: Policies) -> None:
    """Solve for a learner on means. At an alarm every round outside the lead costs 1 (docs/theory/means.md)."""
    was_alarmed = clock.shadow.alarm
    choose_stage(clock, policies, clock.round + 1, clock.backlog + clock.counted)
    if clock.shadow.alarm and not was_alarmed:
        means = clock.means
        begin_rates(clock, policies, means.lead + means.over_open + (clock.round - means.over_round))
        clock.charge = means.lead + (clock.round - means.known)
        clock.capped = clock.round
        clock.next_cap = clock.rows
        clock.charged = 0
        clock.base = 0.0
    if clock.shadow.alarm:  # never above the tuning's own rates, from which they differ in the last bit
        clock.alpha = min(clock.alpha, clock.means.alpha)
        clock.beta = min(clock.beta, clock.means.beta)


@compiled
def _write_down(
    clock: Record, ledger: Records, policies: Policies, patience: float, arm: int, probability: float
) -> None:
    """Count the round and enter its decision, wherever it was drawn. Needs room in the ledger."""
    count(clock, ledger, patience, 0)
    advantage = bold_advantage(policies, arm, probability)
    cost = step(policies.shape[2], is_only_shadow(policies), clock.alpha, clock.beta)
    enter(clock, ledger, policies, arm, probability, advantage, cost)
    clock.left -= 1


@compiled
def decide(
    clocks: Records, ledger: Records, policies: Policies, cdf: Floats, patience: float, uniform: float
) -> tuple[int, int, float]:
    """Decide from the distribution in force. Returns round, arm and probability, or round 0 if the ledger is full."""
    clock = clocks[0]
    if clock.rows == ledger.shape[0]:
        return 0, 0, 0.0
    x = policies[clock.shadow.played, X]
    if clock.mixed > 0:
        arm = draw_mixed(x, cdf, clock.mixed, uniform)
        probability = clock.even + (1 - clock.mixed) * x[arm]
    else:
        arm = draw(x, cdf, uniform)
        probability = x[arm]
    _write_down(clock, ledger, policies, patience, arm, probability)
    return clock.round, arm, probability


@compiled
def record(clocks: Records, ledger: Records, policies: Policies, patience: float, arm: int, probability: float) -> int:
    """Enter a decision made elsewhere from the distribution in force. Returns its round. Needs room in the ledger."""
    _write_down(clocks[0], ledger, policies, patience, arm, probability)
    return int(clocks[0].round)


@compiled
def solve_and_record(
    clocks: Records,
    ledger: Records,
    policies: Policies,
    cdf: Floats,
    patience: float,
    arm: int,
    probability: float,
    alpha: float,
    beta: float,
    refresh: int,
) -> int:
    """Solve for `refresh` decisions, and enter the first, made elsewhere. Needs room in the ledger."""
    solve(clocks[0], policies, cdf, alpha, beta)
    clocks[0].left = refresh
    return record(clocks, ledger, policies, patience, arm, probability)


@compiled
def record_batch(
    clocks: Records, ledger: Records, policies: Policies, patience: float, arms: Integers, probabilities: Floats
) -> int:
    """Enter decisions made elsewhere from the distribution in force. Returns the first round. Needs room for all."""
    first = clocks[0].round + 1
    for i in range(arms.shape[0]):
        _write_down(clocks[0], ledger, policies, patience, arms[i], probabilities[i])
    return int(first)


@compiled
def solve_and_record_batch(
    clocks: Records,
    ledger: Records,
    policies: Policies,
    cdf: Floats,
    patience: float,
    arms: Integers,
    probabilities: Floats,
    alpha: float,
    beta: float,
    refresh: int,
) -> int:
    """A fresh distribution and decisions made elsewhere from it. Needs room for all."""
    solve(clocks[0], policies, cdf, alpha, beta)
    clocks[0].left = refresh
    return record_batch(clocks, ledger, policies, patience, arms, probabilities)


@compiled
def enter_more_stale(
    clocks: Records,
    ledger: Records,
    policies: Policies,
    patience: float,
    arms: Integers,
    probabilities: Floats,
    bold_advantages: Floats,
    alpha: float,
    beta: float,
    dip: float,
    missed: int,
    surcharge: float,
) -> None:
    """Enter decisions drawn with the rates (alpha, beta) of an older state. Needs room for all.

    bold_advantages come from the state they were drawn from. If there are none, the present ones are used.
    dip is by how much beta may have been lower for others meanwhile.
    missed rounds were open then and are not now. Each pays once more for each of these decisions.
    surcharge is 1 if an alarm was raised since then, else 0 (docs/theory/certificate.md, "Replicas").
    """
    clock, is_given = clocks[0], bold_advantages.shape[0] > 0
    cost = step(policies.shape[2], is_only_shadow(policies), alpha, beta - dip)
    own = stability(policies, alpha, beta, clock.mixed)
    excess = max(0.0, own - stability(policies, clock.alpha, clock.beta, clock.mixed))
    for i in range(arms.shape[0]):
        count(clock, ledger, patience, missed)
        advantage = bold_advantages[i] if is_given else bold_advantage(policies, arms[i], probabilities[i])
        clock.charge += missed * cost + excess + surcharge
        enter(clock, ledger, policies, arms[i], probabilities[i], advantage, cost)
        clock.left -= 1
    if has_rates(clock, policies):  # the whole distribution of their copy would be needed
        clock.any_charge = UNKNOWN


@compiled
def enter_stale(
    clocks: Records,
    ledger: Records,
    policies: Policies,
    cdf: Floats,
    patience: float,
    arms: Integers,
    probabilities: Floats,
    bold_advantages: Floats,
    alpha: float,
    beta: float,
    fall: float,
    alarm: int,
    old_alpha: float,
    old_beta: float,
    dip: float,
    missed: int,
) -> float:
    """Solve for (alpha, beta), then enter decisions drawn from an older state. Needs room for all.

    fall is what the dip of beta costs once. alarm is 1 if the older state was already alarmed.
    Returns the surcharge of each decision. The solve itself may raise the alarm.
    """
    clock = clocks[0]
    solve(clock, policies, cdf, alpha, beta)
    clock.left = 0
    clock.charge += fall
    surcharge = 1.0 if clock.shadow.alarm > alarm else 0.0
    enter_more_stale(
        clocks,
        ledger,
        policies,
        patience,
        arms,
        probabilities,
        bold_advantages,
        old_alpha,
        old_beta,
        dip,
        missed,
        surcharge,
    )
    return surcharge


@compiled
def solve_and_decide(
    clocks: Records,
    ledger: Records,
    policies: Policies,
    cdf: Floats,
    patience: float,
    uniform: float,
    alpha: float,
    beta: float,
    refresh: int,
) -> tuple[int, int, float]:
    """Solve for `refresh` decisions, and make the first. Its round is -1 if the rates are improper."""
    clock = clocks[0]
    is_rising = clock.alpha <= alpha and clock.beta <= beta
    if not (is_rising and max(alpha, beta) <= LARGEST_RATE and alpha + beta >= SMALLEST_RATE):
        return -1, 0, 0.0
    if clock.rows < ledger.shape[0]:
        solve(clock, policies, cdf, alpha, beta)
        clock.left = refresh
    return decide(clocks, ledger, policies, cdf, patience, uniform)


@compiled
def ask_next(
    clocks: Records,
    ledger: Records,
    policies: Policies,
    cdf: Floats,
    patience: float,
    refresh: int,
    scale: float,
    log_k: float,
    uniform: float,
) -> tuple[int, int, float]:
    """Decide with the rates of a `RootTuning`. Its round is 0 if the ledger is full, and -1 if they are improper."""
    clock = clocks[0]
    if clock.left >= 1:
        return decide(clocks, ledger, policies, cdf, patience, uniform)
    backlog = clock.backlog + clock.counted - clock.late_counted
    alpha, beta = math.sqrt(clock.round + 1), scale * math.sqrt(backlog / log_k)
    return solve_and_decide(clocks, ledger, policies, cdf, patience, uniform, alpha, beta, refresh)


@compiled
def decide_batch(
    clocks: Records, ledger: Records, policies: Policies, cdf: Floats, patience: float, uniforms: Floats
) -> tuple[Integers, Floats]:
    """Decide once for each uniform, from the distribution in force. Returns arms and probabilities. Needs room."""
    arms = np.empty(uniforms.shape[0], np.int64)
    probabilities = np.empty(uniforms.shape[0])
    for i in range(uniforms.shape[0]):
        _, arms[i], probabilities[i] = decide(clocks, ledger, policies, cdf, patience, uniforms[i])
    return arms, probabilities


@compiled
def solve_and_decide_batch(
    clocks: Records,
    ledger: Records,
    policies: Policies,
    cdf: Floats,
    patience: float,
    uniforms: Floats,
    alpha: float,
    beta: float,
    refresh: int,
) -> tuple[Integers, Floats]:
    """A fresh distribution and a batch of decisions from it. Needs room for all."""
    solve(clocks[0], policies, cdf, alpha, beta)
    clocks[0].left = refresh
    return decide_batch(clocks, ledger, policies, cdf, patience, uniforms)
