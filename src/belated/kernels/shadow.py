"""The shadow: a bold and a careful learner on the same estimates, the one ahead decides (docs/theory/shadow.md).

    y_t  bold:     the rates (alpha_t, 0), Tsallis-INF
    z_t  careful:  the rates (alpha_t, b_t), ZS20

Both know only what has been reported. x_t, from which the arm is drawn, is one of them. When round s is reported, an
estimate of what z would have saved joins a sum; z decides while the sum is beyond chance, y otherwise:

    saving_s = (loss_s - mean loss reported before) (y_s[A_s] - z_s[A_s]) / x_s[A_s],     on average <y_s - z_s, l_s>
    x_t = z_t  if  sum of savings > switch_threshold sqrt(1 + sum of squared savings),
               or after an alarm
"""

import math

from belated.kernels.argmin import X, Y, argmin, potential
from belated.kernels.compiling import Policies, Record, compiled

BOLD, CAREFUL = 0, 1  # the rows of `policies`
LARGEST_SQUARES = 1e300  # finite, so that it survives JSON


@compiled
def measure(clock: Record, loss: float, bold_advantage: float) -> None:
    """Take in a report; bold_advantage = (y[A] - z[A]) / x[A] of the round it is about."""
    saving = (loss - clock.suffered / max(1, clock.reported)) * bold_advantage
    clock.savings += saving
    clock.squares = min(clock.squares + saving * saving, LARGEST_SQUARES)


@compiled
def choose(clock: Record, policies: Policies, allowed: float) -> None:
    """Solve for both, raise the alarm if more has been lost than the careful guarantee allows, and say who decides.

    alarm:  sum of reported losses + Phi_t(Lobs_t) - 2 alpha_t  >  allowed + 1,
    Phi_t the careful one's potential; the 1 is far above rounding errors, and part of the guarantee.
    """
    argmin(policies[BOLD], clock.alpha, 0.0, clock.solves)
    if clock.beta == 0:  # nothing has been late: both are the same
        policies[CAREFUL, X : Y + 1] = policies[BOLD, X : Y + 1]
    else:
        argmin(policies[CAREFUL], clock.alpha, clock.beta, clock.solves)
    lead = clock.suffered + potential(policies[CAREFUL], clock.alpha, clock.beta) - 2 * clock.alpha
    if lead > allowed + 1:
        clock.alarm = 1
    is_ahead = clock.savings > clock.switch_threshold * math.sqrt(1 + clock.squares)
    clock.played = CAREFUL if clock.alarm or is_ahead else BOLD


@compiled
def bold_advantage(policies: Policies, arm: int, probability: float) -> float:
    """(y[A] - z[A]) / x[A]; `probability` is x[A], what the arm was drawn with."""
    return float((policies[BOLD, X, arm] - policies[CAREFUL, X, arm]) / probability)
