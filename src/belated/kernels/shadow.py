"""A bold and a careful policy on the same estimates. The one that is ahead decides (docs/theory/shadow.md).

    y_t  bold:     the rates (alpha_t, 0), Tsallis-INF
    z_t  careful:  the rates (alpha_t, b_t), ZS20

Both know only what has been reported. The arm is drawn from x_t, which is one of them. When round s is reported, an
estimate of what z would have saved joins a sum. z decides while the sum is beyond chance, and y decides otherwise.

    saving_s = (loss_s - mean loss reported before) (y_s[A_s] - z_s[A_s]) / x_s[A_s],     on average <y_s - z_s, l_s>
    x_t = z_t  if  sum of savings > switch_threshold sqrt(1 + sum of squared savings),  or ever after an alarm

A learner without a shadow has one policy. Its bold advantages are 0, and so the sums stay 0.
"""

import math

import numpy as np

from belated.kernels.argmin import X, Y, argmin, potential
from belated.kernels.compiling import Policies, Record, compiled

BOLD, CAREFUL = 0, 1  # the rows of `policies`
LARGEST_SQUARES = 1e300  # finite, so that it survives JSON

SHADOW = np.dtype(
    [
        ("switch_threshold", np.float64),
        ("savings", np.float64),  # the sum of savings
        ("squares", np.float64),  # the sum of their squares
        ("alarm", np.int64),  # 1 after an alarm
        ("played", np.int64),  # the policy that decides: BOLD or CAREFUL
    ]
)


@compiled
def has_shadow(policies: Policies) -> bool:
    """Whether there is a careful policy beside the bold one."""
    return bool(policies.shape[0] > 1)


@compiled
def measure(clock: Record, loss: float, advantage: float) -> None:
    """Take in a report of a round with this bold advantage."""
    shadow = clock.shadow
    saving = (loss - clock.suffered / max(1, clock.reported)) * advantage
    shadow.savings += saving
    shadow.squares = min(shadow.squares + saving * saving, LARGEST_SQUARES)


@compiled
def is_careful_ahead(shadow: Record) -> bool:
    """Whether the savings are beyond chance."""
    return bool(shadow.savings > shadow.switch_threshold * math.sqrt(1 + shadow.squares))


@compiled
def copy_solution(policies: Policies, source: int, target: int) -> None:
    """Let a policy have what `argmin` has found for another one."""
    for row in range(X, Y + 1):
        for i in range(policies.shape[2]):
            policies[target, row, i] = policies[source, row, i]


@compiled
def choose(clock: Record, policies: Policies, allowed: float) -> None:
    """Solve for both policies, raise the alarm if needed, and choose the one that decides.

    alarm:  sum of reported losses + Phi_t(Lobs_t) - 2 alpha_t  >  allowed + 1

    Phi_t is the careful policy's potential, and `allowed` is what its guarantee grants. The 1 is far above rounding
    errors, and part of the guarantee.
    """
    shadow = clock.shadow
    argmin(policies[BOLD], clock.alpha, 0.0, clock.solves)
    if clock.beta == 0:  # nothing has been late, so both are the same
        copy_solution(policies, BOLD, CAREFUL)
    else:
        argmin(policies[CAREFUL], clock.alpha, clock.beta, clock.solves)
    lead = clock.suffered + potential(policies[CAREFUL], clock.alpha, clock.beta) - 2 * clock.alpha
    if lead > allowed + 1:
        shadow.alarm = 1
    shadow.played = CAREFUL if shadow.alarm or is_careful_ahead(shadow) else BOLD


@compiled
def bold_advantage(policies: Policies, arm: int, probability: float) -> float:
    """(y[A] - z[A]) / x[A], where `probability` is x[A]. 0 without a shadow, because y and z are then the same."""
    careful = min(CAREFUL, policies.shape[0] - 1)
    return float((policies[BOLD, X, arm] - policies[careful, X, arm]) / probability)
