"""How long the feedback of a log takes, as delays in rounds computed from clock times."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from belated.arrays import Floats, Integers
from belated.bounds import best_skipping, clip
from belated.errors import InvalidInput
from belated.lab.problems.delays import NEVER
from belated.replay.decision_log import Log
from belated.tunings import outstanding_counts

LEVELS = (0.5, 0.9, 0.99, 1.0)


class Quantiles(NamedTuple):
    """Quantiles of a waiting time, NaN if nothing came."""

    median: float
    nine_in_ten: float
    all_but_one_in_a_hundred: float
    largest: float


class WaitingTimes(NamedTuple):
    """The waiting times of a log in numbers."""

    n_arms: int  # k
    n_rounds: int  # n
    rounds: Quantiles  # d_t, of the feedback that came before the last decision
    seconds: Quantiles  # of all feedback that came, in the file's unit if its times are plain numbers
    share_never: float  # no outcome at all, and none is waited for
    share_open: float  # no outcome yet, as the log itself says
    share_after: float  # it came, but no later decision could use it
    largest_backlog: int  # max o_t
    total: int  # D, delays clipped to the game
    best_skipping: float  # m = min over S of |S| + sqrt(D_notS ln k)
    skipped: int  # |S|


def delays_in_rounds(times: Floats, outcome_times: Floats) -> Integers:
    """d_t, the number of rounds between a decision and the first later one that can use its feedback.

    The feedback of round t can be used in the first round u > t with time_u >= outcome_time_t. Then d_t = u - t - 1, or
    NEVER if there is no such round. Times must not decrease.

    >>> delays_in_rounds(np.array([0.0, 10.0, 20.0, 30.0]), np.array([10.0, 25.0, 40.0, 31.0])) == [0, 1, NEVER, NEVER]
    array([ True,  True,  True,  True])
    """
    if (np.diff(times) < 0).any():
        raise InvalidInput("times must not decrease. Sort the decisions first")
    rounds = np.arange(times.size)
    usable = np.maximum(np.searchsorted(times, outcome_times), rounds + 1)
    return np.where(usable < times.size, usable - rounds - 1, NEVER)


def measure(log: Log) -> WaitingTimes:
    """The waiting times of a log."""
    return measure_times(log.n_arms, log.times, log.outcome_times, log.is_open)


def measure_times(
    n_arms: int, times: Floats, outcome_times: Floats, is_open: NDArray[np.bool_] | None = None
) -> WaitingTimes:
    """The waiting times between decisions and their outcomes. An outcome time is infinite if none came.

    `is_open` says which of those without an outcome are still waited for.
    """
    delays = delays_in_rounds(times, outcome_times)
    came, in_time = np.isfinite(outcome_times), delays < NEVER
    is_awaited = np.zeros_like(came) if is_open is None else is_open & ~came
    skipping = best_skipping(n_arms, delays)
    return WaitingTimes(
        n_arms=n_arms,
        n_rounds=delays.size,
        rounds=quantiles(delays[in_time]),
        seconds=quantiles((outcome_times - times)[came]),
        share_never=float((~came & ~is_awaited).mean()),
        share_open=float(is_awaited.mean()),
        share_after=float((came & ~in_time).mean()),
        largest_backlog=int(outstanding_counts(clip(delays)).max()),
        total=int(clip(delays).sum()),
        best_skipping=skipping.value,
        skipped=skipping.rounds,
    )


def quantiles(values: Floats | Integers) -> Quantiles:
    """The quantiles at LEVELS. Each is a value that occurs, never an average of two."""
    if values.size == 0:
        return Quantiles(*[float("nan")] * 4)
    return Quantiles(*map(float, np.quantile(values, LEVELS, method="inverted_cdf")))
