"""Whether the losses that a learner's distribution promises fit the losses of the arms that it draws.

If they fit, D = sum_t (<x_t, l_t> - l_t[A_t]) is a martingale whose steps lie in [-1, 1]. V is the sum of the variances
of l_t[A_t] under x_t. By Freedman (1975), exp(r D - (e^r - 1 - r) V) has an expectation of at most 1 for every r >= 0,
and so has exp(-r D - (e^r - 1 - r) V). So has their average over several r, and the product of these averages over
the games of several seeds. By Markov's inequality it exceeds 1 / FALSE_ALARM with a chance of at most FALSE_ALARM.
"""

import math
import warnings
from collections.abc import Iterable

import numpy as np

from belated.errors import MismatchWarning

FALSE_ALARM = 1e-6  # the largest chance that an honest learner is called suspicious, over all its games together
RATES = 4.0 * 0.5 ** np.arange(14)  # r. The least is the best for about ten million rounds
PRICES = np.expm1(RATES) - RATES


def log_evidence(difference: float, variance: float) -> float:
    """The logarithm of the evidence of one game against its learner, from D and V.

    >>> log_evidence(0.0, 100.0) < 0 < log_evidence(60.0, 100.0)
    True
    """
    exponents = np.concatenate([RATES * difference, -RATES * difference]) - np.tile(PRICES * variance, 2)
    most = float(exponents.max())
    return most + math.log(float(np.exp(exponents - most).mean()))


def is_suspicious(games: Iterable[float]) -> bool:
    """Whether the games of a learner, each with its evidence, contradict its distribution beyond chance."""
    return math.fsum(games) > -math.log(FALSE_ALARM)


def warning_of(name: str) -> str:
    """What to say of a suspicious learner."""
    return (
        f"{name}: distribution() does not fit the arms that ask() draws, so the expected regret means nothing. Look at "
        "the suffered one (docs/players.md)"
    )


def warn_of(messages: Iterable[str], kind: type[Warning] = MismatchWarning) -> None:
    """Warn the caller of the caller, once with each message."""
    for message in dict.fromkeys(messages):
        warnings.warn(message, kind, stacklevel=3)
