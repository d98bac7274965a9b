"""What exponential weights with a constant rate lose under delays. Several baselines add it up."""

import math


def bound(n_arms: int, n_rounds: int, total_delay: float, eta: float) -> float:
    """Reg <= ln k / eta + eta (k n / 2 + D / 4), for every constant eta > 0 (docs/theory/baselines.md) [derived]."""
    if n_arms == 1:
        return 0.0
    return math.log(n_arms) / eta + eta * (n_arms * n_rounds / 2 + total_delay / 4)
