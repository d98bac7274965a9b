"""The proof's own decomposition of the regret, computed along a real game (ZS20, Section 4).

With Phi_t(L) = max over the simplex of -<x, L> - F_t(x), Lobs_t what has arrived and L_t = sum_{s<t} lhat_s all of it:

    (A)_t = <x_t, lhat_t> + Phi_t(Lobs_t + lhat_t) - Phi_t(Lobs_t)                                     Lemma 1
    (B)_t = Phi_t(Lobs_t) - Phi_t(Lobs_t + lhat_t) - Phi_t(L_t) + Phi_t(L_t + lhat_t)                  Lemma 3
    (C)   = sum_t ( Phi_t(L_t) - Phi_t(L_{t+1}) ) - min_i L_{n+1,i}                                    Lemma 2

(A) and (B) are given in expectation over the arm of the round, exactly, by solving for every arm.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from belated import kernels, lab
from belated.bounds import clip
from belated.lab.compiled import Compiled
from belated.tunings import Tuning, outstanding_counts, schedule

Floats = NDArray[np.float64]
NOISE = 1e-11  # of differences of potentials, relative to L


class Terms(NamedTuple):
    """Of every round: the terms, what the lemmas allow them, and what is needed to judge the estimates."""

    a: Floats
    b: Floats
    b_limit: Floats  # sum_i l_i x_i missing_i / beta_t, whose mean is at most o_t / beta_t
    c: Floats  # (C) of the game that ends with round t
    alpha: Floats
    beta: Floats
    noise: Floats  # rounding errors of the potentials, whose size is that of L
    outstanding: NDArray[np.int64]
    largest_gap: float  # between Lobs_t of the game and the estimates by their definition
    bias: float  # sum of drawn losses - L_{n+1} of the best arm - regret: 0 on average
    variance: float  # of the bias, from the distributions: chance may not have shown it


class Potential:
    """Phi for the rates of a round, from the last solution."""

    def __init__(self, n_arms: int) -> None:
        self._policy = np.zeros((kernels.ROWS, n_arms))
        self._policy[kernels.V] = 0.5 * np.log(n_arms)

    def __call__(self, losses: Floats, alpha: float, beta: float) -> float:
        self._policy[kernels.LOSSES] = losses
        kernels.argmin(self._policy, alpha, beta, 0)
        return float(kernels.potential(self._policy, alpha, beta))


def follow(tuning: Tuning, problem: lab.Problem, seed: int) -> Terms:
    """Play a game round by round, and compute the terms of each."""
    k, n = problem.n_arms, problem.n_rounds
    delays = clip(problem.draw_delays(seed))
    losses = np.vstack(list(problem.loss_blocks(seed, delays)))
    rates, game, potential = schedule(tuning, k, delays), Compiled(tuning, problem, delays, seed), Potential(k)
    everything, arrived = np.zeros(k), np.zeros((n + 1, k))  # L_t; what arrives at the end of each round
    best = int(losses.sum(axis=0).argmin())
    rows, observed, gap, bias, variance = [], np.zeros(k), 0.0, 0.0, 0.0
    for t in range(n):
        phi = [float(rates.alpha[t]), float(rates.beta[t])]
        known = game.policy[kernels.LOSSES].copy()
        gap = max(gap, float(np.abs(known - observed).max() / max(1.0, observed.max())))
        game.play(losses[t : t + 1])
        x, arm = game.policy[kernels.X].copy(), int(game.arms[t])
        rows.append(_round(potential, phi, losses[t], x, known, everything))
        estimate = losses[t, arm] / x[arm]
        before = potential(everything, *phi)
        everything[arm] += estimate
        rows[-1] += [before - potential(everything, *phi), everything.min(), everything.max()]
        arrived[t + delays[t], arm] += estimate
        observed = observed + arrived[t]
        errors = losses[t] - np.where(np.arange(k) == best, losses[t] / x, 0.0)  # of each arm, were it drawn
        errors -= float(x @ losses[t]) - losses[t, best]
        bias, variance = bias + float(errors[arm]), variance + float(x @ errors**2)
    a, b, limit, falls, least, most = np.array(rows).T
    noise = NOISE * np.maximum(1.0, most)
    counts = outstanding_counts(delays)
    return Terms(a, b, limit, np.cumsum(falls) - least, rates.alpha, rates.beta, noise, counts, gap, bias, variance)


def _round(
    potential: Potential, phi: list[float], losses: Floats, x: Floats, known: Floats, all_: Floats
) -> list[float]:
    """E_t (A)_t, E_t (B)_t and the latter's limit given what is missing."""
    at_known, at_all = potential(known, *phi), potential(all_, *phi)
    a = b = 0.0
    for i in np.flatnonzero(losses):
        step = np.zeros(x.size)
        step[i] = losses[i] / x[i]
        after = potential(known + step, *phi) - at_known
        a += x[i] * (losses[i] + after)
        b += x[i] * (potential(all_ + step, *phi) - at_all - after)
    missing = float((losses * x * (all_ - known)).sum())
    return [a, b, missing / phi[1] if phi[1] > 0 else 0.0]
