"""What certificates need if delays depend on arms and outcomes (docs/theory/any-delays.md).

A round without a report could add loss_s - lhat_{s,i} to the lead against arm i. Its loss is not known, but

    loss_s - lhat_{s,i}  <=  1 - c_s             if i was not drawn
    loss_s - lhat_{s,i}  <=  c_s (1 / x_s - 1)   if i was drawn

A learner with rates pays for its missing rounds by their arms. Let N_i be the sum of 1 / x_s over the rounds s of arm i
whose estimates the distribution in force does not know. Then a round with the rates (alpha, beta) costs at most

    k / (alpha sqrt(k) + 2 beta) + sum_i N_i w(x_i),     w(x) = x / (beta + alpha x^(-1/2) / 2).

With a shadow and on means this holds after an alarm, for the rounds since then.
"""

import numpy as np

from belated.arrays import Floats
from belated.kernels.argmin import OPEN, X, Y
from belated.kernels.charges import penalty, stability
from belated.kernels.compiling import Policies, Record, Records, compiled
from belated.kernels.means import LOST, ON_MEANS
from belated.kernels.shadow import CAREFUL, has_shadow

UNKNOWN = 1e300  # the charge is not known. Finite, so that it survives JSON


@compiled
def lose(clock: Record, policies: Policies, row: Record) -> None:
    """A round was given up, so its report never joins the lead."""
    clock.means.lost += 1 - row.centre
    policies[ON_MEANS, LOST, row.arm] += row.centre * (1 / row.probability - 1) - (1 - row.centre)


@compiled
def unreported(clock: Record, ledger: Records, policies: Policies) -> Floats:
    """For each arm, what all rounds without a report could add to the lead against it."""
    own = np.zeros(policies.shape[2])
    common = clock.means.lost
    for i in range(clock.rows):
        row = ledger[i]
        if row.probability > 0:
            common += 1 - row.centre
            own[row.arm] += row.centre * (1 / row.probability - 1) - (1 - row.centre)
    for i in range(own.shape[0]):
        own[i] += common + policies[ON_MEANS, LOST, i]
    return own


@compiled
def close_lead(clock: Record, ledger: Records, policies: Policies) -> None:
    """The lead has just passed what is allowed. Note what open rounds could have added."""
    worst = 0.0
    for more in unreported(clock, ledger, policies):
        worst = max(worst, more)
    clock.means.over_open = worst
    clock.means.over_round = clock.round


@compiled
def has_rates(clock: Record, policies: Policies) -> bool:
    """Whether one policy with rates plays, as ZS20's proof needs it. With a shadow and on means, after an alarm."""
    return bool(not has_shadow(policies) or clock.shadow.alarm)


@compiled
def _weight(clock: Record, policy: Floats, i: int) -> float:
    """w(x_i) = x_i / (beta + alpha x_i^(-1/2) / 2)."""
    return float(policy[X, i] / (clock.beta + 0.5 * clock.alpha * policy[Y, i]))


@compiled
def charge_missing(clock: Record, policies: Policies) -> None:
    """After a solve, what each decision from it pays for the missing rounds. sum_i N_i w(x_i)."""
    if not has_rates(clock, policies):
        return
    policy, cost = policies[min(CAREFUL, policies.shape[0] - 1)], 0.0
    for i in range(policy.shape[1]):
        cost += policy[OPEN, i] * _weight(clock, policy, i)
    clock.any_step = min(cost, UNKNOWN)


@compiled
def open_round(clock: Record, policies: Policies, arm: int, probability: float) -> None:
    """Charge a decision from the distribution in force. From now on it is missing itself."""
    if not has_rates(clock, policies):
        return
    policy = policies[min(CAREFUL, policies.shape[0] - 1)]
    own = stability(policies, clock.alpha, clock.beta, clock.mixed) + clock.mix_cost
    clock.any_charge = min(clock.any_charge + clock.any_step + own, UNKNOWN)
    clock.any_step = min(clock.any_step + _weight(clock, policy, arm) / probability, UNKNOWN)
    policy[OPEN, arm] = min(policy[OPEN, arm] + 1 / probability, UNKNOWN)


@compiled
def close_round(clock: Record, policies: Policies, round: int, arm: int, probability: float) -> None:
    """The estimate of this round is known from the next solve on."""
    if has_rates(clock, policies) and round > clock.any_start:
        policy = policies[min(CAREFUL, policies.shape[0] - 1)]
        policy[OPEN, arm] = max(0.0, policy[OPEN, arm] - 1 / probability)


@compiled
def begin_rates(clock: Record, policies: Policies, charge: float) -> None:
    """An alarm was raised. The rounds so far have cost this much, and the careful policy decides from now on."""
    clock.any_charge = min(charge, UNKNOWN)
    clock.any_start = clock.round
    for i in range(policies.shape[2]):
        policies[CAREFUL, OPEN, i] = 0.0


@compiled
def charge_of_alarm(clock: Record, policies: Policies, lead: float) -> float:
    """What the rounds before a shadow's alarm have cost, without the penalty that the certificate adds."""
    return float(lead + clock.round - clock.reported - penalty(policies.shape[2], clock.alpha, clock.beta))
