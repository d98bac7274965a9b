"""The decomposition of the regret in ZS20's proof (Section 4), computed along a real game.

Let Phi_t(L) be the maximum over the simplex of -<x, L> - F_t(x). Let Lobs_t be the sum of the estimates that have
arrived, and L_t = sum_{s<t} lhat_s the sum of all of them. The three terms are

    (A)_t = <x_t, lhat_t> + Phi_t(Lobs_t + lhat_t) - Phi_t(Lobs_t)                                     Lemma 1
    (B)_t = Phi_t(Lobs_t) - Phi_t(Lobs_t + lhat_t) - Phi_t(L_t) + Phi_t(L_t + lhat_t)                  Lemma 3
    (C)   = sum_t ( Phi_t(L_t) - Phi_t(L_{t+1}) ) - min_i L_{n+1,i}                                    Lemma 2

(A) and (B) are exact expectations over the arm of the round, computed by solving for every arm.
"""

from typing import NamedTuple

import numpy as np

from belated import kernels, lab
from belated.arrays import Floats, Integers
from belated.bounds import clip
from belated.lab.games.compiled import Compiled
from belated.tunings import Tuning, outstanding_counts, schedule

NOISE = 1e-11  # rounding error of differences of potentials, relative to L


class Terms(NamedTuple):
    """The terms of every round, their limits by the lemmas, and the numbers needed to judge the estimates."""

    a: Floats
    b: Floats
    b_limit: Floats  # sum_i l_i x_i missing_i / beta_t, whose mean is at most o_t / beta_t
    c: Floats  # (C) of the game that ends with round t
    beta: Floats
    outstanding: Integers
    noise: Floats  # rounding errors of the potentials, whose size is that of L
    identity_gap: Floats  # (A) + (B) + the growth of (C), with the drawn arm, minus its loss. It should be 0
    estimate_gap: Floats  # between Lobs_t of the game and the estimates by their definition, relative
    bias: Floats  # drawn loss - estimate of the best arm, minus what both are on average
    variance: Floats  # of the bias, computed from the distributions, because a sample may miss it


class Potential:
    """Phi for the rates of a round. The solver starts from the last solution."""

    def __init__(self, n_arms: int) -> None:
        self._policy = np.zeros((kernels.ROWS, n_arms))
        self._policy[kernels.V] = 0.5 * np.log(n_arms)

    def __call__(self, losses: Floats, alpha: float, beta: float) -> float:
        self._policy[kernels.LOSSES] = losses
        kernels.argmin(self._policy, alpha, beta, 0)
        return float(kernels.potential(self._policy, alpha, beta))


def follow(tuning: Tuning, problem: lab.Problem, seed: int) -> Terms:
    """Play a game round by round and compute the terms of each round."""
    delays = clip(problem.draw_delays(seed))
    losses = np.vstack(list(problem.loss_blocks(seed, delays)))
    best = int(losses.sum(axis=0).argmin())
    rates, game = schedule(tuning, problem.n_arms, delays), Compiled(tuning, problem, delays, seed)
    potential = Potential(problem.n_arms)
    everything, observed = np.zeros(problem.n_arms), np.zeros(problem.n_arms)  # L_t and Lobs_t by their definitions
    arrived = np.zeros_like(losses)  # at the end of each round
    rows = []
    for t, row in enumerate(losses):
        phi = float(rates.alpha[t]), float(rates.beta[t])
        known = game.policy[kernels.LOSSES].copy()
        game.play(row[None, :])
        x, arm = game.policy[kernels.X].copy(), int(game.arms[t])
        a, b = _terms(potential, phi, row, x, known, everything)
        limit = float((row * x * (everything - known)).sum()) / phi[1] if phi[1] > 0 else 0.0
        before, estimate = potential(everything, *phi), row[arm] / x[arm]
        everything[arm] += estimate
        fall = before - potential(everything, *phi)
        gap = np.abs(known - observed).max() / max(1.0, observed.max())
        drawn = a[arm] + b[arm] + fall - row[arm]
        rows.append(
            (x @ a, x @ b, limit, fall, everything.min(), everything.max(), drawn, gap, *_chance(row, x, arm, best))
        )
        arrived[t + delays[t], arm] += estimate
        observed = observed + arrived[t]
    mean_a, mean_b, b_limit, falls, least, most, identity, gaps, bias, variance = np.array(rows).T
    noise = NOISE * np.maximum(1.0, most)
    c, counts = np.cumsum(falls) - least, outstanding_counts(delays)
    return Terms(mean_a, mean_b, b_limit, c, rates.beta, counts, noise, identity, gaps, bias, variance)


def _terms(
    potential: Potential, phi: tuple[float, float], losses: Floats, x: Floats, known: Floats, everything: Floats
) -> tuple[Floats, Floats]:
    """(A)_t and (B)_t for every arm, as if it were drawn. Both are 0 if the loss is 0."""
    a, b = np.zeros(x.size), np.zeros(x.size)
    at_known, at_all = potential(known, *phi), potential(everything, *phi)
    for i in np.flatnonzero(losses):
        step = np.zeros(x.size)
        step[i] = losses[i] / x[i]
        after = potential(known + step, *phi) - at_known
        a[i] = losses[i] + after
        b[i] = potential(everything + step, *phi) - at_all - after
    return a, b


def _chance(losses: Floats, x: Floats, arm: int, best: int) -> tuple[float, float]:
    """The deviation of the drawn loss minus the best arm's estimate from its mean, and the variance of that."""
    errors = losses - np.where(np.arange(x.size) == best, losses / x, 0.0)  # for each arm, as if it were drawn
    errors -= float(x @ losses) - losses[best]
    return float(errors[arm]), float(x @ errors**2)
