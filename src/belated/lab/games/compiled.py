"""Compiled games of a tuning. One kernel call plays all rounds of a block."""

from typing import final

import numpy as np
from numpy.typing import NDArray

from belated import bounds, kernels
from belated.arrays import Floats, Integers
from belated.lab.problems.delays import NEVER
from belated.lab.problems.problem import Problem
from belated.learner.state import blank
from belated.tunings import Means, Shadow, Tuning, schedule


@final
class Compiled:
    """A game with all rates computed beforehand, so that one compiled loop serves every tuning."""

    def __init__(self, tuning: Tuning, problem: Problem, delays: Integers, seed: int) -> None:
        n, k = problem.n_rounds, problem.n_arms
        self.alpha, self.beta, _, skipped_in = schedule(tuning, k, delays)
        if tuning.discard:  # discarded reports never arrive
            delays = np.where((skipped_in > 0) & (skipped_in <= np.arange(1, n + 1) + delays), NEVER, delays)
        self.arrivals = kernels.arrivals(delays)
        self.generator = np.random.default_rng(seed)
        self.policy = np.zeros((kernels.ROWS, k))
        self.policy[kernels.V] = 0.5 * np.log(k)
        self.cdf = np.empty(-(-k // kernels.BLOCK))
        self.arms, self.estimates = np.empty(n, np.int32), np.empty(n)
        self.t = 0

    def play(self, losses: Floats) -> tuple[Floats, Floats]:
        """Play a round for each row. Returns <x_t, l_t> and the loss of the drawn arm."""
        rounds = len(losses)
        expected, suffered = np.empty(rounds), np.empty(rounds)
        kernels.play_block(
            self.t,
            np.ascontiguousarray(losses),
            self.alpha,
            self.beta,
            self.generator.random(rounds),
            *self.arrivals,
            self.policy,
            self.cdf,
            self.arms,
            self.estimates,
            expected,
            suffered,
        )
        self.t += rounds
        return expected, suffered


@final
class CompiledShadow:
    """A game with a shadow. The careful rates and what their guarantee allows are computed beforehand."""

    def __init__(self, tuning: Shadow, problem: Problem, delays: Integers, seed: int) -> None:
        n, k = problem.n_rounds, problem.n_arms
        rates = schedule(tuning, k, delays)
        self.alpha, self.beta = rates.alpha, rates.beta
        self.allowed = bounds.allowances(k, delays, rates)
        self.arrivals = kernels.arrivals(delays)
        self.generator = np.random.default_rng(seed)
        self.clock, self.policies = blank(k, tuning)
        self.cdf = np.empty(-(-k // kernels.BLOCK))
        self.arms = np.empty(n, np.int32)
        self.probabilities, self.reports, self.bold_advantages = np.empty(n), np.empty(n), np.empty(n)
        self.t = 0

    def play(self, losses: Floats) -> tuple[Floats, Floats]:
        """Play a round for each row. Returns <x_t, l_t> and the loss of the drawn arm."""
        rounds = len(losses)
        expected, suffered = np.empty(rounds), np.empty(rounds)
        kernels.play_shadow_block(
            self.t,
            np.ascontiguousarray(losses),
            self.alpha,
            self.beta,
            self.allowed,
            self.generator.random(rounds),
            *self.arrivals,
            self.clock,
            self.policies,
            self.cdf,
            self.arms,
            self.probabilities,
            self.reports,
            self.bold_advantages,
            expected,
            suffered,
        )
        self.t += rounds
        return expected, suffered


@final
class CompiledMeans:
    """A game of a learner on means. The backlogs are computed beforehand."""

    def __init__(self, tuning: Means, problem: Problem, delays: Integers, seed: int) -> None:
        n, k = problem.n_rounds, problem.n_arms
        self.backlog = schedule(tuning, k, delays).backlog
        self.arrivals = kernels.arrivals(delays)
        self.generator = np.random.default_rng(seed)
        self.clock, self.policies = blank(k, tuning)
        self.cdf = np.empty(-(-k // kernels.BLOCK))
        self.arms = np.empty(n, np.int32)
        self.probabilities, self.reports, self.bold_advantages, self.centres = (np.empty(n) for _ in range(4))
        self.t = 0

    def play(self, losses: Floats, is_lost: NDArray[np.bool_] | None = None) -> tuple[Floats, Floats]:
        """Play a round for each row. Returns <x_t, l_t> and the loss of the drawn arm.

        Where `is_lost`, the report of the arm never comes if it is drawn.
        """
        rounds = len(losses)
        lost = np.zeros((0, losses.shape[1]), np.bool_) if is_lost is None else np.ascontiguousarray(is_lost)
        expected, suffered = np.empty(rounds), np.empty(rounds)
        kernels.play_means_block(
            self.t,
            np.ascontiguousarray(losses),
            lost,
            self.backlog,
            self.generator.random(rounds),
            *self.arrivals,
            self.clock,
            self.policies,
            self.cdf,
            self.arms,
            self.probabilities,
            self.reports,
            self.bold_advantages,
            self.centres,
            expected,
            suffered,
        )
        self.t += rounds
        return expected, suffered
