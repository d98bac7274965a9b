"""The evidence that a sum is above its mean, from three sums of powers (docs/theory/verdicts.md, "The inequality").

For |W| <= B and g = l B < 1,

    l W + ln(1 - g^2) / 2 (W / B)^2 + (artanh(g) - g) (W / B)^3  <=  ln(1 + l W),

with equality at W = -B, 0 and B. So the sums of W, W^2 and W^3 bound the wealth of a bet of l on every term from below.
The evidence is a mixture of these bounds over a fixed grid of rates l.
"""

from typing import Final, NamedTuple

import numpy as np

from belated.arrays import Floats

STEEPEST: Final = 0.95  # rates with l B above this do not count
RATES: Final = 3.0 * 1.6 ** -np.arange(24.0)  # 3 ... 6e-5
LOG_WEIGHTS: Final = -1.5 * np.log(np.arange(24) + 3.0) - np.log(np.sum((np.arange(24) + 3.0) ** -1.5))
MOST_STEPS: Final = 100
ROWS: Final = 2048  # at once, so that they stay in the processor's cache
CLOSE: Final = 1e-10  # to the logarithm of the level


class Powers(NamedTuple):
    """For each row, a bound that no |W| exceeds, and the sums of W, W^2 and W^3."""

    bound: Floats
    first: Floats
    second: Floats
    third: Floats


def _fixed_parts(powers: Powers) -> Floats:
    """The exponents of all rates without l S. A rate that does not count has -inf."""
    bounds, place = np.unique(powers.bound, return_inverse=True)  # many rows share a bound
    steps = RATES * bounds[:, None]
    is_allowed = steps <= STEEPEST
    steps = np.where(is_allowed, steps, 0.0)
    weights = np.where(is_allowed, LOG_WEIGHTS, -np.inf)
    for_squares, for_cubes = 0.5 * np.log1p(-(steps**2)), np.arctanh(steps) - steps
    squares, cubes = powers.second / powers.bound**2, powers.third / powers.bound**3
    return np.asarray(weights[place] + (for_squares[place] * squares[:, None] + for_cubes[place] * cubes[:, None]))


def log_evidence(powers: Powers) -> Floats:
    """The logarithm of the evidence of each row that the means of its terms are not all <= 0."""
    parts = [Powers(*(column[at : at + ROWS] for column in powers)) for at in range(0, powers.first.size, ROWS)]
    return np.concatenate([_log_evidence(part) for part in parts])


def _log_evidence(powers: Powers) -> Floats:
    exponents = _fixed_parts(powers) + RATES * powers.first[:, None]
    most = exponents.max(axis=1)
    return np.asarray(most + np.log(np.exp(exponents - most[:, None]).sum(axis=1)))


def excesses(powers: Powers, log_level: float) -> Floats:
    """The first power of each row at which its evidence would be exp(log_level) > 1.

    The logarithm of the evidence is convex in the first power and grows. So Newton's steps from above stay above.
    """
    fixed = _fixed_parts(powers)
    found = ((log_level - fixed) / RATES).min(axis=1)  # where one rate alone is enough
    for _ in range(MOST_STEPS):
        exponents = fixed + RATES * found[:, None]
        most = exponents.max(axis=1)
        parts = np.exp(exponents - most[:, None])
        total = parts.sum(axis=1)
        above = most + np.log(total) - log_level
        if (above < CLOSE).all():
            break
        found = found - above * total / (parts @ RATES)
    return np.asarray(found)
