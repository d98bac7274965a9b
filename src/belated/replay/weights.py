"""Tests whether the mean weight of a policy is 1, as it is if the logged probabilities are the ones really used.

Given the past, w_t = x_t[A_t] / p_t then has the mean 1. With u = sum w_t - n, the largest weight b, and

    V = n var(w) / mean(w),   z^2 = u^2 / (V + b |u| / 3)

z is compared with a normal distribution. For weights of a single arm whose p_t = p never changes, V is close to
n (1/p - 1), the true variance, even if the arm was drawn too rarely by chance. The plain n var(w) would then be too
small. The term b |u| / 3 is that of Bernstein's inequality. It allows for weights that are rare and large.
"""

import math

from belated.arrays import Floats


def chance_of(weights: Floats) -> float:
    """The chance of a mean weight at least so far from 1, if the logged probabilities are right.

    >>> import numpy as np
    >>> drawn = np.arange(1000) % 10 < 3  # an arm in 300 of 1,000 decisions
    >>> [f"{chance_of(drawn / p):.2g}" for p in (0.3, 0.31, 0.36)]
    ['1', '0.5', '0.00027']
    """
    excess = abs(float(weights.sum()) - weights.size)
    if excess == 0 or not weights.any():
        return 1.0
    variance = weights.size * float(weights.var()) / float(weights.mean())
    return math.erfc(excess / math.sqrt(2 * (variance + float(weights.max()) * excess / 3)))
