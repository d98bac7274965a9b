"""Learning rates and bounds of algorithms in the table that have no module of their own."""

import math
from collections.abc import Callable

import numpy as np

from belated import baselines, bounds
from belated.baselines import constant_rate, epsilon_greedy, explore_then_commit, mixed_exp3, patient_bandits, skipper
from belated.lab.algorithms.algorithm import Player, Setting
from belated.lab.problems.bernoulli import Bernoulli
from belated.lab.problems.shuffled import Shuffled
from belated.learner.ftrl import FTRL
from belated.tunings import Exp3, Tsallis


def best_beta(setting: Setting) -> int:
    """Skipper's beta with the least bound, among the quantiles of the delays."""
    quantiles = np.quantile(setting.delays, np.linspace(0, 1, 33)).astype(int)
    return int(
        min({int(q) + 1 for q in quantiles}, key=lambda beta: skipper.bound(setting.n_arms, setting.delays, beta))
    )


def gaps(setting: Setting) -> list[float] | None:
    """The gaps of independent, identically distributed losses, 0 for the best arm, or None for other losses."""
    losses = setting.problem.losses
    while isinstance(losses, Shuffled):
        losses = losses.of
    if not isinstance(losses, Bernoulli):
        return None
    means = losses.arm_means(setting.n_arms)
    above = means - means.min()
    return above.tolist() if above.any() else None


def stochastic(bound: Callable[..., float]) -> Callable[[Setting], float | None]:
    """A bound that needs the gaps, so it exists for stochastic losses only."""

    def of(setting: Setting) -> float | None:
        known = gaps(setting)
        return None if known is None else bound(known, setting.n_rounds, setting.most_outstanding)

    return of


def rate_ngmm(setting: Setting) -> float:
    """The eta <= 1 / (k e (d + 1)) that minimises the bound for a uniform delay d (NGMM16)."""
    k, n, d = setting.n_arms, setting.n_rounds, setting.longest_delay
    slope = n * (math.e * k / (2 * (1 - 1 / math.e)) + 3 * (d + 1))
    return min(math.sqrt(setting.log_k / slope), 1 / (k * math.e * (d + 1)))


def bound_ngmm(setting: Setting) -> float | None:
    """2 d + ln k / eta + eta n (e k / (2 (1 - 1/e)) + 3 (d + 1)), for a uniform delay only."""
    if (setting.drawn_delays != setting.drawn_delays[0]).any():
        return None
    k, n, d, eta = setting.n_arms, setting.n_rounds, setting.longest_delay, rate_ngmm(setting)
    return 2 * d + setting.log_k / eta + eta * n * (math.e * k / (2 * (1 - 1 / math.e)) + 3 * (d + 1))


def rate_bzcbb(setting: Setting) -> float:
    """eta = sqrt(ln k / (k n / 2 + D)) for constant-rate Exp3 with n and D known (BZCBB19, as commonly quoted)."""
    return math.sqrt(setting.log_k / (setting.n_arms * setting.n_rounds / 2 + setting.total_delay))


def bound_bzcbb(setting: Setting) -> float:
    """ln k / eta + eta (k n / 2 + D / 4) (docs/theory/baselines.md)."""
    return constant_rate.bound(setting.n_arms, setting.n_rounds, setting.total_delay, rate_bzcbb(setting))


def bound_adaptive_exp3(setting: Setting) -> float:
    """2 sqrt((k n + 2 D) ln k)."""
    return 2 * math.sqrt((setting.n_arms * setting.n_rounds + 2 * setting.total_delay) * setting.log_k)


def bound_tsallis(setting: Setting) -> float:
    """4 sqrt(kn) + 1 without delays, and its certificate with delays."""
    if setting.total_delay:
        return bounds.certificate(setting.n_arms, setting.delays, Tsallis())
    return 4 * math.sqrt(setting.n_arms * setting.n_rounds) + 1


def make_skipper(setting: Setting) -> Player:
    """Skipper over DEW with the beta of the least bound."""
    beta = best_beta(setting)
    eta = skipper.dew_rate(setting.n_arms, setting.delays, beta)
    return lambda k, seed: baselines.Skipper(k, beta, lambda k, seed: FTRL(k, Exp3(eta), seed=seed), seed=seed)


def smallest_gap(setting: Setting) -> float:
    """The smallest gap if there is one, and otherwise 0.1."""
    return min(gaps(setting) or [0.1], key=lambda one: one or math.inf)


def make_epsilon_greedy(setting: Setting) -> Player:
    """Epsilon-greedy with the smallest gap."""
    gap = smallest_gap(setting)
    return lambda k, seed: baselines.EpsilonGreedy(k, gap=gap, seed=seed)


def bound_epsilon_greedy(setting: Setting) -> float | None:
    """The bound for the gaps and the delays of the game."""
    known = gaps(setting)
    return None if known is None else epsilon_greedy.bound(known, setting.delays, smallest_gap(setting))


def make_explore_then_commit(setting: Setting) -> Player:
    """Explore-then-commit with an m for all gaps."""
    m = explore_then_commit.exploration(setting.n_arms, setting.n_rounds)
    return lambda k, seed: baselines.ExploreThenCommit(k, m, seed=seed)


def bound_explore_then_commit(setting: Setting) -> float | None:
    """The bound for the gaps and the delays of the game."""
    known, m = gaps(setting), explore_then_commit.exploration(setting.n_arms, setting.n_rounds)
    return None if known is None else explore_then_commit.bound(known, m, setting.delays)


def bound_mixed_exp3(setting: Setting) -> float | None:
    """The bound with the best gamma, for no delays only."""
    if setting.total_delay:
        return None
    gamma = mixed_exp3.best_gamma(setting.n_arms, setting.n_rounds)
    return mixed_exp3.bound(setting.n_arms, setting.n_rounds, gamma)


def bound_patient_bandits(setting: Setting) -> float | None:
    """The bound with alpha = 1/2. Fixed delays of 0 and 1 have such a tail."""
    known = gaps(setting)
    if known is None or setting.longest_delay > 1:
        return None
    return patient_bandits.bound(known, setting.n_rounds, 0.5)
