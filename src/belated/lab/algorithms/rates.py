"""Learning rates and bounds of algorithms in the table that have no module of their own."""

import math
from collections.abc import Callable

import numpy as np

from belated import baselines, bounds
from belated.baselines import skipper
from belated.lab.algorithms.algorithm import Player, Setting
from belated.lab.problems.delays import Fixed, NoDelay
from belated.lab.problems.losses import Bernoulli
from belated.learner.ftrl import FTRL
from belated.tunings import Exp3, Tsallis


def best_beta(setting: Setting) -> int:
    """Skipper's beta with the least bound, among the quantiles of the delays."""
    quantiles = np.quantile(setting.delays, np.linspace(0, 1, 33)).astype(int)
    return int(
        min({int(q) + 1 for q in quantiles}, key=lambda beta: skipper.bound(setting.n_arms, setting.delays, beta))
    )


def gaps(setting: Setting) -> list[float] | None:
    """The gaps of independent, identically distributed losses, or None for other losses."""
    losses = setting.problem.losses
    return [losses.gap] * (setting.n_arms - 1) if isinstance(losses, Bernoulli) and losses.gap > 0 else None


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
    if not isinstance(setting.problem.delays, Fixed | NoDelay):
        return None
    k, n, d, eta = setting.n_arms, setting.n_rounds, setting.longest_delay, rate_ngmm(setting)
    return 2 * d + setting.log_k / eta + eta * n * (math.e * k / (2 * (1 - 1 / math.e)) + 3 * (d + 1))


def rate_bzcbb(setting: Setting) -> float:
    """eta = sqrt(ln k / (k n / 2 + D)) for constant-rate Exp3 with n and D known (BZCBB19)."""
    return math.sqrt(setting.log_k / (setting.n_arms * setting.n_rounds / 2 + setting.total_delay))


def bound_bzcbb(setting: Setting) -> float:
    """ln k / eta + eta (k n / 2 + D) = 2 sqrt((k n / 2 + D) ln k)."""
    return 2 * math.sqrt((setting.n_arms * setting.n_rounds / 2 + setting.total_delay) * setting.log_k)


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
