"""What the certificate charges (docs/theory/certificate.md). clock.py keeps the sums."""

import math

from belated.kernels.compiling import Policies, Record, compiled
from belated.kernels.shadow import has_shadow


@compiled
def step(n_arms: int, is_shadow: bool, alpha: float, beta: float) -> float:
    """What a round decided with these rates costs for each round whose feedback it did not know.

    1 / (4 beta + 2 sqrt(2) alpha) for two arms, 1 / (4 beta) if alpha = 0, and 1 / (beta + alpha / 2) otherwise. A
    shadow pays the last one, because its alarm allows that.
    """
    if is_shadow or (n_arms > 2 and alpha > 0):
        return min(1.0, 1 / (beta + alpha / 2))  # more than 1 at once would only cost digits
    return min(1.0, 1 / (4 * beta + 2 * math.sqrt(2.0) * alpha))


@compiled
def is_only_shadow(policies: Policies) -> bool:
    """Whether there is a shadow without means."""
    return bool(policies.shape[0] == 2)


@compiled
def stability(policies: Policies, alpha: float, beta: float, mixed: float) -> float:
    """k / (alpha sqrt(k) + 2 beta), what a round decided with these rates costs by itself.

    It is divided by the share of the decisions that comes from the tuning (docs/theory/mixing.md).
    """
    n_arms: int = policies.shape[2]
    entropy = 0.0 if has_shadow(policies) else beta  # a shadow may play any beta from 0 to beta_t
    own = n_arms / (alpha * math.sqrt(n_arms) + 2 * entropy)
    return min(1.0, own / (1 - mixed)) if mixed < 1 else 1.0


@compiled
def penalty(n_arms: int, alpha: float, beta: float) -> float:
    """2 alpha_n (sqrt(k) - 1) + beta_n ln k, what the regularizer itself costs by the end."""
    return 2 * alpha * (math.sqrt(n_arms) - 1) + beta * math.log(n_arms)


@compiled
def closed_charge(clock: Record) -> float:
    """What the reported rounds have cost.

    A round without a report is not among them, even if its charge has reached 1.
    """
    return float(clock.charge - (clock.round - clock.reported - clock.charged))
