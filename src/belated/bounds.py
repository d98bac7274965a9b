"""What is proven about the regret: ZS20's theorems, the certificate of a whole delay sequence, lower bounds.

ZS20: Zimmert & Seldin, An Optimal Algorithm for Adversarial Bandits with Arbitrary Delays, AISTATS 2020. Natural
logarithms throughout. Delays are clipped to the game: nothing arrives after round n. All guarantees are for losses AND
delays fixed in advance (oblivious): a delay that depends on the drawn arm is outside them.
"""

import math
from collections.abc import Collection
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from belated.errors import InvalidInput
from belated.tunings import Advanced, Tuning, outstanding_counts, schedule
from belated.validation import as_delays, whole_number


def clip(delays: ArrayLike) -> NDArray[np.int64]:
    """Delays no longer than the game: d_t <= n - t."""
    waits = as_delays(delays)
    return np.minimum(waits, np.arange(waits.size - 1, -1, -1))


def theorem_1(n_arms: int, delays: ArrayLike) -> float:
    """The simple tuning: Reg <= 4 sqrt(kn) + sqrt(8 D ln k) (ZS20, Theorem 1)."""
    n_arms, waits = whole_number("n_arms", n_arms, 1), clip(delays)
    return 4 * math.sqrt(n_arms * waits.size) + math.sqrt(8 * float(waits.sum()) * math.log(n_arms))


def theorem_3(n_arms: int, delays: ArrayLike, beta: ArrayLike, skipped: Collection[int] = ()) -> float:
    """Any proper rule and any set S of rounds (ZS20, Theorem 3; with S empty the general form of Theorem 1).

    Reg <= 4 sqrt(kn) + beta_n ln k + |S| + sum_{t not in S} o_t^{notS} / beta_t
    """
    n_arms, waits, rates = whole_number("n_arms", n_arms, 1), clip(delays), np.asarray(beta, np.float64)
    if rates.shape != waits.shape:
        raise InvalidInput(f"one beta for each of the {waits.size} delays is needed, got shape {rates.shape}")
    if not (np.diff(rates, prepend=0.0) >= 0).all():
        raise InvalidInput("beta must be non-negative and never decrease: the theorem is for proper rules")
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
    """The best set of rounds to leave out: the `rounds` longest delays."""

    value: float
    rounds: int


def best_skipping(n_arms: int, delays: ArrayLike) -> Skipping:
    """m = min over S of |S| + sqrt(D_notS ln k), exactly: for each size the best S holds the longest delays."""
    n_arms, longest_first = whole_number("n_arms", n_arms, 1), np.sort(clip(delays))[::-1]
    rest = longest_first.sum() - np.concatenate(([0], np.cumsum(longest_first)))
    values = np.arange(rest.size) + np.sqrt(rest * math.log(n_arms))
    best = int(values.argmin())
    return Skipping(float(values[best]), best)


def theorem_2(n_arms: int, delays: ArrayLike) -> float:
    """The advanced tuning: Reg <= 4 sqrt(kn) + 10 max{m, 2 ln k} (ZS20, Theorem 2)."""
    n_arms, waits = whole_number("n_arms", n_arms, 1), clip(delays)
    m = best_skipping(n_arms, waits).value
    return 4 * math.sqrt(n_arms * waits.size) + 10 * max(m, 2 * math.log(n_arms))


def theorem_2_sharp(n_arms: int, delays: ArrayLike) -> float:
    """The advanced tuning with the certificate's constant: Reg <= 4 sqrt(kn) + 3 m + 3 ln k (docs/certificate.md)."""
    n_arms, waits = whole_number("n_arms", n_arms, 1), clip(delays)
    return 4 * math.sqrt(n_arms * waits.size) + 3 * best_skipping(n_arms, waits).value + 3 * math.log(n_arms)


def certificate(n_arms: int, delays: ArrayLike, tuning: Tuning | None = None) -> float:
    """The number the expected regret of a tuning (default: Advanced) does not exceed on a delay sequence.

    cert = min{ n, 2 alpha_n (sqrt(k) - 1) + beta_n ln k + sum_s min{ 1, k / (alpha_s sqrt(k) + 2 beta_s) + H_s } }
    H_s = sum_{t = s+1}^{min(s + d_s, n)} 1 / (beta_t + alpha_t / 2)

    A round that the tuning has skipped and discards costs 1 once its feedback has come (docs/certificate.md).
    """
    n_arms, waits = whole_number("n_arms", n_arms, 1), as_delays(delays)
    return min(float(waits.size), uncapped_certificate(n_arms, waits, tuning or Advanced())) if n_arms > 1 else 0.0


def uncapped_certificate(n_arms: int, waits: NDArray[np.int64], tuning: Tuning) -> float:
    """The certificate without the trivial bound n."""
    if not isinstance(tuning, Tuning):
        raise InvalidInput(f"tuning must be a belated.Tuning, such as belated.Advanced(), got {tuning!r}")
    alpha, beta, _, skipped_in = schedule(tuning, n_arms, waits)
    n, rounds = waits.size, np.arange(1, waits.size + 1)
    arrives = rounds + np.minimum(waits, n)
    drift = np.append(0.0, np.cumsum(np.minimum(1.0, 1 / (beta + alpha / 2))))  # more than 1 would only cost digits
    waiting = drift[np.minimum(arrives, n)] - drift[rounds]
    charge = np.minimum(1.0, n_arms / (alpha * math.sqrt(n_arms) + 2 * beta) + waiting)
    if tuning.discard:
        charge[(skipped_in > 0) & (skipped_in <= arrives) & (arrives <= n)] = 1.0
    return penalty(n_arms, alpha[-1], beta[-1]) + float(charge.sum())


def penalty(n_arms: int, alpha: float, beta: float) -> float:
    """What the regularizer itself costs by the end: 2 alpha_n (sqrt(k) - 1) + beta_n ln k."""
    return float(2 * alpha * (math.sqrt(n_arms) - 1) + beta * math.log(n_arms))


def lower_bound(n_arms: int, n_rounds: int) -> float:
    """No algorithm has less than 0.1365 sqrt(kn) on every problem without delays (constant quoted, not rederived)."""
    n_arms, n_rounds = whole_number("n_arms", n_arms, 1), whole_number("n_rounds", n_rounds, 1)
    return 0.1365 * math.sqrt(n_arms * n_rounds) if n_arms > 1 else 0.0


def lower_bound_uniform_delay(n_arms: int, n_rounds: int, delay: int) -> float:
    """Blocks of d + 1 rounds that share one fair coin per arm: every algorithm has exactly this expected regret.

    (d + 1) E[ max_i (N/2 - Bin_i(N, 1/2)) ],  N = floor(n / (d + 1))
    """
    n_arms, n_rounds = whole_number("n_arms", n_arms, 1), whole_number("n_rounds", n_rounds, 1)
    n_blocks = n_rounds // (whole_number("delay", delay, 0) + 1)
    return (delay + 1) * _expected_lead(n_arms, n_blocks)


def _expected_lead(n_arms: int, n_coins: int) -> float:
    """E[ max_i (N/2 - Bin_i) ] = N/2 - sum_{j >= 0} P(Bin > j)^k, from the ratios of neighbouring probabilities."""
    if n_coins == 0:
        return 0.0
    j = np.arange(n_coins)
    log_odds = np.concatenate(([0.0], np.cumsum(np.log((n_coins - j) / (j + 1)))))  # ln C(N, j)
    weights = np.exp(log_odds - log_odds.max())
    above = 1 - np.cumsum(weights) / weights.sum()
    return float(n_coins / 2 - (np.maximum(above, 0.0) ** n_arms).sum())
