"""The shadow: a careful twin of the learner that shows what boldness costs (docs/shadow.md).

The shadow z plays ZS20's rates (alpha_t, b_t) on the same estimates, the learner x the rates (alpha_t, beta_t),
beta_t <= b_t. Both know only what has been reported. When round s is reported, an estimate of what the shadow would
have saved joins a sum, and the learner becomes as careful as the sum has ever been beyond chance:

    saving_s = (loss_s - mean loss reported before) (1 - z_s[A_s] / x_s[A_s]),     on average <x_s - z_s, l_s>
    damage   = running maximum of  sum of savings - doubt sqrt(sum of squared savings),  from 0
    beta_t   = min{ b_t, gain * damage },   or b_t for ever once the alarm has been raised
"""

import math

from belated.kernels.argmin import argmin, potential
from belated.kernels.compiling import Floats, Record, compiled

LARGEST_SQUARES = 1e300  # finite, so that it survives JSON


@compiled
def measure(clock: Record, loss: float, probability: float, careful: float) -> None:
    """Take in a reported round that x drew with `probability` and z would have drawn with probability `careful`."""
    saving = (loss - clock.suffered / max(1, clock.reported)) * (1 - careful / probability)
    clock.savings += saving
    clock.squares = min(clock.squares + saving * saving, LARGEST_SQUARES)
    clock.damage = max(clock.damage, clock.savings - clock.doubt * math.sqrt(clock.squares))


@compiled
def watch(clock: Record, shadow: Floats, alpha: float, careful: float, allowed: float) -> float:
    """Solve for the shadow, raise the alarm if more has been lost than its guarantee allows, and return beta_t.

    alarm:  sum of reported losses + Phi_t(Lobs_t) - 2 alpha_t  >  allowed + 1,
    Phi_t the shadow's potential; the 1 is far above rounding errors, and part of the guarantee.
    """
    argmin(shadow, alpha, careful, clock.solves)
    if clock.suffered + potential(shadow, alpha, careful) - 2 * alpha > allowed + 1:
        clock.alarm = 1
    return careful if clock.alarm else min(careful, clock.gain * clock.damage)
