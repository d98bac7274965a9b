"""Proven bounds on the regret. ZS20's theorems, the certificate of a whole delay sequence, and lower bounds.

ZS20: Zimmert & Seldin, An Optimal Algorithm for Adversarial Bandits with Arbitrary Delays, AISTATS 2020. Natural
logarithms throughout. Delays are clipped to the game, because nothing arrives after round n. All guarantees are for
losses AND delays fixed in advance (oblivious). They do not cover a delay that depends on the drawn arm.

>>> from belated import bounds
>>> bounds.theorem_1(10, [0] * 100)
126.49110640673517
>>> bounds.best_skipping(10, [3] * 100).rounds
0
"""

import math
from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from belated import kernels
from belated.arrays import Floats, Integers
from belated.errors import InvalidInput
from belated.tunings import Means, Schedule, Shadow, Tuning, as_tuning, outstanding_counts, schedule
from belated.validation import as_delays, whole_number


def clip(delays: ArrayLike) -> Integers:
    """Delays no longer than the game, so that d_t <= n - t."""
    waits = as_delays(delays)
    return np.minimum(waits, np.arange(waits.size - 1, -1, -1))


def theorem_1(n_arms: int, delays: ArrayLike) -> float:
    """The bound of the simple tuning. Reg <= 4 sqrt(kn) + sqrt(8 D ln k) (ZS20, Theorem 1)."""
    n_arms, waits = whole_number("n_arms", n_arms, 1), clip(delays)
    return 4 * math.sqrt(n_arms * waits.size) + math.sqrt(8 * float(waits.sum()) * math.log(n_arms))


def theorem_3(n_arms: int, delays: ArrayLike, beta: ArrayLike, skipped: Collection[int] = ()) -> float:
    """Any proper rule and any set S of rounds (ZS20, Theorem 3). An empty S gives the general form of Theorem 1.

    Reg <= 4 sqrt(kn) + beta_n ln k + |S| + sum_{t not in S} o_t^{notS} / beta_t
    """
    n_arms, waits, rates = whole_number("n_arms", n_arms, 1), clip(delays), np.asarray(beta, np.float64)
    if rates.shape != waits.shape:
        raise InvalidInput(f"one beta for each of the {waits.size} delays is needed, got shape {rates.shape}")
    if not (np.diff(rates, prepend=0.0) >= 0).all():
        raise InvalidInput("beta must be non-negative and never decrease, because the theorem is for proper rules")
    kept = np.ones(waits.size, bool)
    for round in skipped:
        kept[whole_number("a skipped round", round, 1, waits.size) - 1] = False
    outstanding = outstanding_counts(np.where(kept, waits, 0))
    charged = kept & (outstanding > 0)
    with np.errstate(divide="ignore"):
        drift = (outstanding[charged] / rates[charged]).sum()
    n_skipped = waits.size - np.count_nonzero(kept)
    return float(4 * math.sqrt(n_arms * waits.size) + rates[-1] * math.log(n_arms) + n_skipped + drift)


class Skipping(NamedTuple):
    """The best set of rounds to leave out. It holds the `rounds` longest delays."""

    value: float
    rounds: int


def best_skipping(n_arms: int, delays: ArrayLike) -> Skipping:
    """m = min over S of |S| + sqrt(D_notS ln k), exactly. For each size the best S holds the longest delays."""
    n_arms, longest_first = whole_number("n_arms", n_arms, 1), np.sort(clip(delays))[::-1]
    rest = longest_first.sum() - np.concatenate(([0], np.cumsum(longest_first)))
    values = np.arange(rest.size) + np.sqrt(rest * math.log(n_arms))
    best = int(values.argmin())
    return Skipping(float(values[best]), best)


def theorem_2(n_arms: int, delays: ArrayLike) -> float:
    """The bound of the advanced tuning. Reg <= 4 sqrt(kn) + 10 max{m, 2 ln k} (ZS20, Theorem 2)."""
    n_arms, waits = whole_number("n_arms", n_arms, 1), clip(delays)
    m = best_skipping(n_arms, waits).value
    return 4 * math.sqrt(n_arms * waits.size) + 10 * max(m, 2 * math.log(n_arms))


def theorem_2_sharp(n_arms: int, delays: ArrayLike) -> float:
    """Advanced tuning, the certificate's constant. Reg <= 4 sqrt(kn) + 3 m + 3 ln k (docs/theory/certificate.md)."""
    n_arms, waits = whole_number("n_arms", n_arms, 1), clip(delays)
    return 4 * math.sqrt(n_arms * waits.size) + 3 * best_skipping(n_arms, waits).value + 3 * math.log(n_arms)


def certificate(n_arms: int, delays: ArrayLike, tuning: Tuning | None = None) -> float:
    """The number the expected regret of a tuning (Means by default) does not exceed on a delay sequence.

    cert = min{ n, 2 alpha_n (sqrt(k) - 1) + beta_n ln k + sum_s min{ 1, k / (alpha_s sqrt(k) + 2 beta_s) + H_s } }
    H_s = sum_{t = s+1}^{min(s + d_s, n)} of what round t costs for each round that it did not know (`drifts`)

    A round that the tuning skips and discards costs 1 once its feedback has come (docs/theory/certificate.md). With a
    shadow the rates are its careful ones, and more is added (docs/theory/shadow.md). On means it is the number of a
    game in which no alarm is raised (docs/theory/means.md).
    """
    n_arms, waits = whole_number("n_arms", n_arms, 1), as_delays(delays)
    return min(float(waits.size), uncapped_certificate(n_arms, waits, as_tuning(tuning))) if n_arms > 1 else 0.0


def uncapped_certificate(n_arms: int, waits: Integers, tuning: Tuning) -> float:
    """The certificate without the trivial bound n."""
    rates = schedule(tuning, n_arms, waits)
    n, rounds = waits.size, np.arange(1, waits.size + 1)
    arrives = rounds + np.minimum(waits, n)
    if isinstance(tuning, Means):
        known = int(np.count_nonzero(arrives < n))  # by the last solve
        return kernels.allowance(n_arms, n, int(rates.backlog[-1])) + n - known
    if isinstance(tuning, Shadow):
        return shadow_certificate(n_arms, waits, rates)
    charge = charges(n_arms, waits, rates)
    if tuning.discard:
        charge[(rates.skipped_in > 0) & (rates.skipped_in <= arrives) & (arrives <= n)] = 1.0
    return kernels.penalty(n_arms, rates.alpha[-1], rates.beta[-1]) + float(charge.sum())


def drifts(n_arms: int, rates: Schedule, *, is_shadow: bool) -> Floats:
    """The sum over t <= r, for r = 0..n, of what round t costs for each round whose feedback it did not know.

    1 / (4 beta_t + 2 sqrt(2) alpha_t) for two arms, 1 / (4 beta_t) if alpha_t = 0, and 1 / (beta_t + alpha_t / 2)
    otherwise and with a shadow. More than 1 at once would only cost digits.
    """
    is_quarter = not is_shadow and ((rates.alpha == 0) | (n_arms == 2))
    slow, fast = rates.beta + rates.alpha / 2, 4 * rates.beta + 2 * math.sqrt(2.0) * rates.alpha
    return np.append(0.0, np.cumsum(np.minimum(1.0, 1 / np.where(is_quarter, fast, slow))))


def stability(n_arms: int, alpha: Floats, beta: Any) -> Floats:
    """k / (alpha_s sqrt(k) + 2 beta_s) of every round s, at most 1."""
    return np.asarray(np.minimum(1.0, n_arms / (alpha * math.sqrt(n_arms) + 2 * beta)))


def charges(n_arms: int, waits: Integers, rates: Schedule, *, is_shadow: bool = False) -> Floats:
    """min{ 1, k / (alpha_s sqrt(k) + 2 beta_s) + H_s } of every round s. With a shadow without beta."""
    n, rounds, drift = waits.size, np.arange(1, waits.size + 1), drifts(n_arms, rates, is_shadow=is_shadow)
    waiting = drift[np.minimum(rounds + np.minimum(waits, n), n)] - drift[rounds]
    return np.minimum(1.0, stability(n_arms, rates.alpha, 0.0 if is_shadow else rates.beta) + waiting)


def shadow_certificate(n_arms: int, waits: Integers, rates: Schedule) -> float:
    """penalty_n + sum_s min{ 1, sqrt(k) / alpha_s + H_s } + W + 1 with the shadow's rates (docs/theory/shadow.md)."""
    charge = charges(n_arms, waits, rates, is_shadow=True)
    total = kernels.penalty(n_arms, rates.alpha[-1], rates.beta[-1]) + float(charge.sum())
    return total + peak_uncharged(n_arms, waits, rates) + 1


def peak_uncharged(n_arms: int, waits: Integers, rates: Schedule) -> float:
    """W = max_t of the sum of (1 - charge_s so far) over the rounds s open after decision t (docs/theory/shadow.md)."""
    n, rounds, drift = waits.size, np.arange(1, waits.size + 1), drifts(n_arms, rates, is_shadow=True)
    base = drift[rounds] - stability(n_arms, rates.alpha, 0.0)
    capped = np.searchsorted(drift, base + 1)  # the first t with drift_t - base_s >= 1
    until = np.maximum(np.minimum(np.minimum(rounds + np.minimum(waits, n), n) + 1, capped), rounds)
    open_rounds, bases = np.zeros(n + 2), np.zeros(n + 2)
    for sums, values in ((open_rounds, np.ones(n)), (bases, base)):
        np.add.at(sums, rounds, values)
        np.add.at(sums, until, -values)
    return float((np.cumsum(open_rounds) * (1 - np.append(drift, 0.0)) + np.cumsum(bases)).max())


def allowances(n_arms: int, waits: Integers, rates: Schedule) -> Floats:
    """For each round t the penalty so far plus the charges of the rounds reported before it (docs/theory/shadow.md)."""
    n, arrives = waits.size, np.arange(waits.size) + waits
    closed = np.zeros(n + 1)
    in_time = arrives < n
    np.add.at(closed, arrives[in_time] + 1, charges(n_arms, waits, rates, is_shadow=True)[in_time])
    penalties = 2 * rates.alpha * (math.sqrt(n_arms) - 1) + rates.beta * math.log(n_arms)
    return np.asarray(penalties + np.cumsum(closed)[:n])


def shadow_worst_case(n_arms: int, delays: ArrayLike, tuning: Shadow | None = None) -> float:
    """Shadow with refresh = 1 and no batches. Reg <= 4 sqrt(kn) + (scale + 2 / scale) sqrt(D ln k) + sqrt(2 D) + 2."""
    n_arms, waits, scale = whole_number("n_arms", n_arms, 1), clip(delays), (tuning or Shadow()).scale
    total = float(waits.sum())
    of_delay = (scale + 2 / scale) * math.sqrt(total * math.log(n_arms)) + math.sqrt(2 * total)
    return 4 * math.sqrt(n_arms * waits.size) + of_delay + 2


def means_worst_case(n_arms: int, delays: ArrayLike, tuning: Means | None = None) -> float:
    """Means with refresh = 1 and no batches (docs/theory/means.md). With its default settings

    Reg <= 20.4 sqrt(kn) + 3.81 sqrt(D ln k) + sqrt(2 D) + k + 1
    """
    n_arms, waits, scale = whole_number("n_arms", n_arms, 1), clip(delays), (tuning or Means()).scale
    total = float(waits.sum())
    of_rounds = math.hypot(kernels.ALARM + 1 / kernels.FLOOR, 4) * math.sqrt(n_arms * waits.size)
    of_delay = math.hypot(1, scale + 2 / scale) * math.sqrt(total * math.log(n_arms))
    return of_rounds + of_delay + math.sqrt(2 * total) + n_arms + 1


def lower_bound(n_arms: int, n_rounds: int) -> float:
    """No learner that sees only the losses of its own arms has less on every problem (docs/theory/lower-bound.md).

    max over e of n e (1 - 1/k - sqrt(-(n/k) ln(1 - 4 e^2)) / 2), which is about (1 - 1/k)^2 / 4 sqrt(kn)

    >>> from belated import bounds
    >>> round(bounds.lower_bound(10, 10_000), 1)
    64.0
    """
    k, n = whole_number("n_arms", n_arms, 1), whole_number("n_rounds", n_rounds, 1)
    gap = np.geomspace(1e-6, 0.5, 2000, endpoint=False)
    missed = 1 - 1 / k - np.sqrt(-n / k * np.log1p(-4 * gap**2)) / 2  # share of the rounds, at least
    return max(0.0, float((n * gap * missed).max()))


def lower_bound_uniform_delay(n_arms: int, n_rounds: int, delay: int) -> float:
    """Blocks of d + 1 rounds share one fair coin per arm, and every algorithm has exactly this expected regret.

    (d + 1) E[ max_i (N/2 - Bin_i(N, 1/2)) ],  N = floor(n / (d + 1))
    """
    n_arms, n_rounds = whole_number("n_arms", n_arms, 1), whole_number("n_rounds", n_rounds, 1)
    n_blocks = n_rounds // (whole_number("delay", delay, 0) + 1)
    return (delay + 1) * _expected_lead(n_arms, np.ones(n_blocks, np.int64))


def lower_bound_of_delays(n_arms: int, delays: ArrayLike) -> float:
    """No learner has less on every problem with these delays (docs/theory/lower-bound.md).

    The larger of `lower_bound` and of E[ max_i sum_G |G| (1/2 - coin_{G,i}) ] over the groups of `coin_groups`.

    >>> from belated import bounds
    >>> round(bounds.lower_bound_of_delays(10, [100] * 10_000))
    772
    """
    n_arms, waits = whole_number("n_arms", n_arms, 1), clip(delays)
    if n_arms == 1:
        return 0.0
    return max(lower_bound(n_arms, waits.size), _expected_lead(n_arms, np.bincount(coin_groups(waits))))


def coin_groups(delays: ArrayLike) -> Integers:
    """Each round's group. No round of a group is reported before the last one of it is decided.

    >>> from belated import bounds
    >>> bounds.coin_groups([4, 0, 2, 0, 0]).tolist()
    [0, 1, 0, 0, 2]
    """
    waits = clip(delays)
    return kernels.groups(np.arange(waits.size) + waits)


CELLS = 2**20  # of a distribution, so that a long game takes no longer than a second
NEGLIGIBLE = 1e-20  # of a characteristic function


def _expected_lead(n_arms: int, sizes: Integers) -> float:
    """E[ max_i sum_G |G| (1/2 - coin_{G,i}) ], from the distribution of one arm's sum.

    The distribution comes from its characteristic function, the product of cos(angle |G| / 2), modulo a period of 24
    standard deviations. Smaller groups give less, so in a long game sizes are rounded down to fewer cells.
    """
    spread = math.sqrt(float((sizes.astype(np.float64) ** 2).sum())) / 2
    grain = max(1, math.floor(24 * spread / CELLS))
    values, counts = np.unique(sizes // grain, return_counts=True)
    period = 2 ** math.ceil(math.log2(24 * spread / grain + 2))
    angles, odd = np.arange(period // 2 + 1) * (2 * math.pi / period), int((values * counts).sum()) % 2
    transform, left = np.exp(-0.5j * odd * angles), np.arange(angles.size)
    for value, count in zip(values.tolist(), counts.tolist(), strict=True):
        transform[left] *= np.cos(angles[left] * (value / 2)) ** count
        is_small = np.abs(transform[left]) < NEGLIGIBLE
        transform[left[is_small]], left = 0, left[~is_small]
    below = np.clip(np.cumsum(np.fft.fftshift(np.fft.irfft(transform, period))), 0, 1)
    return float(grain * (period / 2 - 1 - (below[:-1] ** n_arms).sum() - odd / 2))
