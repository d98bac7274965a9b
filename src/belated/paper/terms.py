"""The decomposition of the regret in ZS20's proof (Section 5), computed along a real game.

F_t is the regularizer, and Phi_t(L) is the maximum over the simplex of -<x, L> - F_t(x). S is any set of rounds. Lobs_t
is the sum of the estimates that have arrived. L_t has those too, and also the missing ones outside S. The terms are

    (A)_t = <x_t, lhat_t> + Phi_t(Lobs_t + lhat_t) - Phi_t(Lobs_t)                                     Lemma 1
    (B)_t = Phi_t(Lobs_t) - Phi_t(Lobs_t + lhat_t) - Phi_t(L_t) + Phi_t(L_t + lhat_t)   for t not in S    Lemma 3
    (C)   = sum over t not in S of ( Phi_t(L_t) - Phi_t(L_t + lhat_t) ) - min_i L_i of the end            Lemma 2

(A) and (B) are exact expectations over the arm of the round, computed by solving for every arm.

That the three add up to the regret is true for any function Phi. So it says nothing. What a wrong Phi fails is
Phi_t(Lobs_t) = -<x_t, Lobs_t> - F_t(x_t), with x_t as the game drew from it and F_t as the paper prints it.
"""

from collections.abc import Callable, Collection
from typing import NamedTuple

import numpy as np

from belated import kernels, lab
from belated.arrays import Floats, Integers
from belated.bounds import clip
from belated.paper.claim import Effort
from belated.tunings import Tuning, outstanding_counts, schedule

NOISE = 1e-11  # rounding error of differences of potentials, relative to L


class Terms(NamedTuple):
    """The terms of every round, their limits by the lemmas, and the numbers needed to judge the estimates."""

    a: Floats
    b: Floats  # 0 in the rounds of S
    b_largest: Floats  # over the arms that may be drawn
    b_limit: Floats  # sum_i l_i x_i missing_i / beta_t, whose mean is at most o_t / beta_t
    c: Floats  # (C) of the game that ends with round t
    beta: Floats
    outstanding: Integers  # rounds outside S, and 0 in the rounds of S
    noise: Floats  # rounding errors of the potentials, whose size is that of L
    conjugate_gap: Floats  # Phi_t(Lobs_t) + <x_t, Lobs_t> + F_t(x_t). It should be 0
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

    @property
    def x(self) -> Floats:
        """Where the last maximum is attained."""
        return np.asarray(self._policy[kernels.X] / self._policy[kernels.X].sum())


def regularizer(x: Floats, alpha: float, beta: float) -> float:
    """F(x) = -2 alpha sum_i sqrt(x_i) + beta sum_i x_i ln x_i, as the paper prints it."""
    entropy = x * np.log(np.where(x > 0, x, 1.0))
    return float(-2 * alpha * np.sqrt(x).sum() + beta * entropy.sum())


def follow(
    tuning: Tuning,
    problem: lab.Problem,
    seed: int,
    effort: Effort,
    left_out: Collection[int] = (),
    make_potential: Callable[[int], Potential] = Potential,
) -> Terms:
    """Play a game round by round and compute the terms of each round. S is `left_out`, counted from 1."""
    delays = clip(problem.draw_delays(seed))
    losses = np.vstack(list(problem.loss_blocks(seed, delays)))
    best, n = int(losses.sum(axis=0).argmin()), problem.n_rounds
    is_in = ~np.isin(np.arange(1, n + 1), list(left_out))
    rates, game = schedule(tuning, problem.n_arms, delays), effort.game(tuning, problem, delays, seed)
    potential = make_potential(problem.n_arms)
    all_known, observed = np.zeros(problem.n_arms), np.zeros(problem.n_arms)  # L_t and Lobs_t by their definitions
    arrived, late = np.zeros_like(losses), np.zeros_like(losses)  # at the end of each round, all of them and those of S
    rows = []
    for t, row in enumerate(losses):
        phi = float(rates.alpha[t]), float(rates.beta[t])
        known = game.policy[kernels.LOSSES].copy()
        game.play(row[None, :])
        x, arm = game.policy[kernels.X].copy(), int(game.arms[t])
        attained = potential(known, *phi) + float(x @ known) + regularizer(x, *phi)
        gap = np.abs(known - observed).max() / max(1.0, observed.max())
        a, b = _terms(potential, phi, row, x, known, all_known)
        limit = float((row * x * (all_known - known)).sum()) / phi[1] if phi[1] > 0 else 0.0
        before, estimate = potential(all_known, *phi), row[arm] / x[arm]
        arrived[t + delays[t], arm] += estimate
        if is_in[t]:
            all_known[arm] += estimate
        else:
            late[t + delays[t], arm] += estimate
        fall = before - potential(all_known, *phi)  # 0 in the rounds of S
        sizes = all_known.min(), all_known.max()
        shown = (x @ b, b.max(), limit) if is_in[t] else (0.0, 0.0, 0.0)
        rows.append((x @ a, *shown, fall, *sizes, attained, gap, *_chance(row, x, arm, best)))
        observed, all_known = observed + arrived[t], all_known + late[t]
    mean_a, mean_b, b_largest, b_limit, falls, least, most, attained_, gaps, bias, variance = np.array(rows).T
    noise = NOISE * np.maximum(1.0, most)
    c, counts = np.cumsum(falls) - least, np.where(is_in, outstanding_counts(np.where(is_in, delays, 0)), 0)
    parts = mean_a, mean_b, b_largest, b_limit, c
    return Terms(*parts, rates.beta, counts, noise, attained_, gaps, bias, variance)


def _terms(
    potential: Potential, phi: tuple[float, float], losses: Floats, x: Floats, known: Floats, all_known: Floats
) -> tuple[Floats, Floats]:
    """(A)_t and (B)_t for every arm, as if it were drawn. Both are 0 if the loss is 0 or the arm cannot be drawn."""
    a, b = np.zeros(x.size), np.zeros(x.size)
    at_known, at_all = potential(known, *phi), potential(all_known, *phi)
    for i in np.flatnonzero((losses > 0) & (x > 0)):
        step = np.zeros(x.size)
        step[i] = losses[i] / x[i]
        after = potential(known + step, *phi) - at_known
        a[i] = losses[i] + after
        b[i] = potential(all_known + step, *phi) - at_all - after
    return a, b


def _chance(losses: Floats, x: Floats, arm: int, best: int) -> tuple[float, float]:
    """The deviation of the drawn loss minus the best arm's estimate from its mean, and the variance of that."""
    estimate = losses[best] / x[best] if x[best] > 0 else 0.0
    errors = losses - np.where(np.arange(x.size) == best, estimate, 0.0)  # for each arm, as if it were drawn
    errors -= float(x @ losses) - losses[best]
    return float(errors[arm]), float(x @ errors**2)
