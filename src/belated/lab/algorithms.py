"""Every system of ZS20's Table 1 and related work that the lab can play, by name.

An algorithm is data: what it is, where it is from, what it must be told in advance, what is proven, and how to make it.
Marks: read (from the paper's own text), derived (for this project), recalled (constants as commonly quoted).
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, final

import numpy as np
from numpy.typing import NDArray

from belated import baselines, bounds
from belated.baselines import bold, composite, delayed_ucb, doubling, queued, skipper, solid, tsallis_reduced_variance
from belated.lab.problems.delays import Fixed, NoDelay
from belated.lab.problems.losses import Bernoulli, Matrix
from belated.lab.problems.problem import Problem
from belated.learner.ftrl import FTRL, Learner
from belated.suggestions import unknown_name
from belated.tunings import (
    AdaptiveExp3,
    Advanced,
    Exp3,
    Masoudian2022,
    Shadow,
    Simple,
    Tsallis,
    Tuning,
    outstanding_counts,
)

Player = Tuning | Callable[[int, int], Learner]


@final
@dataclass(frozen=True, eq=False)
class Setting:
    """A game before it begins. An algorithm that needs to know something in advance reads it here."""

    problem: Problem
    seed: int
    drawn_delays: NDArray[np.int64]

    @cached_property
    def delays(self) -> NDArray[np.int64]:
        """The delays, clipped to the game."""
        return bounds.clip(self.drawn_delays)

    @property
    def n_arms(self) -> int:
        """k."""
        return self.problem.n_arms

    @property
    def n_rounds(self) -> int:
        """n."""
        return self.delays.size

    @property
    def total_delay(self) -> int:
        """D."""
        return int(self.delays.sum())

    @property
    def longest_delay(self) -> int:
        """d_max."""
        return int(self.delays.max())

    @property
    def most_outstanding(self) -> int:
        """G = max_t o_t."""
        return int(outstanding_counts(self.delays).max())

    @property
    def log_k(self) -> float:
        """ln k."""
        return math.log(self.n_arms)

    def best_arm(self) -> int:
        """The arm with the least total loss, from the losses themselves."""
        blocks = self.loss_blocks()
        return int(np.sum([block.sum(axis=0) for block in blocks], axis=0).argmin())

    def loss_blocks(self) -> Iterator[Matrix]:
        """The rows of the loss matrix, a block at a time."""
        return self.problem.loss_blocks(self.seed, self.drawn_delays)


def setting_of(problem: Problem, seed: int) -> Setting:
    """The setting of the game with this seed. Draws the delays."""
    return Setting(problem, seed, problem.draw_delays(seed))


@final
@dataclass(frozen=True)
class Algorithm:
    """One row of the table."""

    name: str
    summary: str
    citation: str
    needs: str  # in advance; "nothing" is the best there is
    mark: Literal["read", "derived", "recalled", "-"]
    player: Callable[[Setting], Player]
    bound: Callable[[Setting], float | None] = lambda _: None
    fingerprint: str | None = None  # of one of your own: a text that you change with its code (docs/sweeps.md)


def best_beta(setting: Setting) -> int:
    """The beta of Skipper with the least bound, among the quantiles of the delays."""
    quantiles = np.quantile(setting.delays, np.linspace(0, 1, 33)).astype(int)
    return int(
        min({int(q) + 1 for q in quantiles}, key=lambda beta: skipper.bound(setting.n_arms, setting.delays, beta))
    )


def gaps(setting: Setting) -> list[float] | None:
    """The gaps of independent, identically distributed losses."""
    losses = setting.problem.losses
    return [losses.gap] * (setting.n_arms - 1) if isinstance(losses, Bernoulli) and losses.gap > 0 else None


def stochastic(bound: Callable[..., float]) -> Callable[[Setting], float | None]:
    """A bound by the gaps, for stochastic losses only."""

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
    """eta = sqrt(ln k / (k n / 2 + D)): constant-rate Exp3 with n and D known (BZCBB19)."""
    return math.sqrt(setting.log_k / (setting.n_arms * setting.n_rounds / 2 + setting.total_delay))


def bound_bzcbb(setting: Setting) -> float:
    """ln k / eta + eta (k n / 2 + D) = 2 sqrt((k n / 2 + D) ln k)."""
    return 2 * math.sqrt((setting.n_arms * setting.n_rounds / 2 + setting.total_delay) * setting.log_k)


def bound_adaptive_exp3(setting: Setting) -> float:
    """2 sqrt((k n + 2 D) ln k)."""
    return 2 * math.sqrt((setting.n_arms * setting.n_rounds + 2 * setting.total_delay) * setting.log_k)


def bound_tsallis(setting: Setting) -> float:
    """4 sqrt(kn) + 1 without delays; with them what its certificate says."""
    if setting.total_delay:
        return bounds.certificate(setting.n_arms, setting.delays, Tsallis())
    return 4 * math.sqrt(setting.n_arms * setting.n_rounds) + 1


def make_skipper(setting: Setting) -> Player:
    """Skipper over DEW with the beta of the least bound."""
    beta = best_beta(setting)
    eta = skipper.dew_rate(setting.n_arms, setting.delays, beta)
    return lambda k, seed: baselines.Skipper(k, beta, lambda k, seed: FTRL(k, Exp3(eta), seed=seed), seed=seed)


ZS20, ZS19 = "Zimmert & Seldin 2020", "Zimmert & Seldin 2019"
TCS19, BZCBB19 = "Thune, Cesa-Bianchi & Seldin 2019", "Bistritz, Zhou, Chen, Bambos & Blanchet 2019"
JGS13 = "Joulani, Gyorgy & Szepesvari 2013"
ALGORITHMS = (
    Algorithm(
        "zs20-simple",
        "hybrid regularizer, rate by all that is outstanding",
        f"{ZS20}, Theorem 1",
        "nothing",
        "read",
        lambda _: Simple(),
        lambda setting: bounds.theorem_1(setting.n_arms, setting.delays),
    ),
    Algorithm(
        "zs20-advanced",
        "the same, but stops waiting for excessive delays",
        f"{ZS20}, Algorithm 2",
        "nothing",
        "read",
        lambda _: Advanced(),
        lambda setting: bounds.theorem_2_sharp(setting.n_arms, setting.delays),
    ),
    Algorithm(
        "zs20-discard",
        "the same, and throws away what it no longer waits for",
        f"{ZS20}, Algorithm 2",
        "nothing",
        "read",
        lambda _: Advanced(discard=True),
        lambda setting: bounds.theorem_2(setting.n_arms, setting.delays),
    ),
    Algorithm(
        "shadow",
        "tsallis-inf and a careful learner side by side, and the one ahead decides",
        "Belated, docs/theory/shadow.md",
        "nothing",
        "derived",
        lambda _: Shadow(),
        lambda setting: bounds.certificate(setting.n_arms, setting.delays, Shadow()),
    ),
    Algorithm(
        "tsallis-inf",
        "blind to delays, importance-weighted",
        ZS19,
        "nothing",
        "read",
        lambda _: Tsallis(),
        bound_tsallis,
    ),
    Algorithm(
        "exp3-adaptive",
        "exponential weights, rate by what is outstanding",
        "Gyorgy & Joulani 2021",
        "nothing",
        "derived",
        lambda _: AdaptiveExp3(),
        bound_adaptive_exp3,
    ),
    Algorithm(
        "tsallis-rv",
        "Tsallis-INF with the reduced-variance estimator",
        ZS19,
        "nothing",
        "recalled",
        lambda _: lambda k, seed: baselines.TsallisReducedVariance(k, paper_rates=True, seed=seed),
        lambda s: None if s.total_delay else tsallis_reduced_variance.bound(s.n_arms, s.n_rounds),
    ),
    Algorithm(
        "exp3-coop",
        "Exp3 for one uniform delay, constant rate",
        "Cesa-Bianchi, Gentile, Mansour & Minora 2016 (NGMM16)",
        "n, d",
        "read",
        lambda setting: Exp3(rate_ngmm(setting)),
        bound_ngmm,
    ),
    Algorithm(
        "dew",
        "delayed exponential weights, constant rate",
        TCS19,
        "n, D, d_max",
        "recalled",
        lambda s: Exp3(skipper.dew_rate(s.n_arms, s.delays)),
        lambda s: skipper.bound(s.n_arms, s.delays),
    ),
    Algorithm(
        "skipper",
        "the same, without the rounds that take beta or longer",
        TCS19,
        "beta, n, D, delay at action time",
        "recalled",
        make_skipper,
        lambda s: skipper.bound(s.n_arms, s.delays, best_beta(s)),
    ),
    Algorithm(
        "doubling",
        "the same in epochs that double",
        TCS19,
        "delay at action time",
        "recalled",
        lambda _: lambda k, seed: baselines.Doubling(k, seed=seed),
        lambda s: doubling.bound(s.n_arms, s.delays),
    ),
    Algorithm(
        "doubling-waiting",
        "the same with ZS20's skipping: the time waited in place of the delay",
        f"{ZS20}, footnote",
        "nothing",
        "derived",
        lambda _: lambda k, seed: baselines.WaitingDoubling(k, seed=seed),
        lambda s: doubling.bound(s.n_arms, s.delays, known=False),
    ),
    Algorithm(
        "exp3-known",
        "constant-rate Exp3 with n and D known",
        BZCBB19,
        "n, D",
        "recalled",
        lambda setting: Exp3(rate_bzcbb(setting)),
        bound_bzcbb,
    ),
    Algorithm(
        "exp3-doubling",
        "Exp3 in epochs by what is missing; its analysis is disputed, so no bound",
        BZCBB19,
        "nothing",
        "recalled",
        lambda _: lambda k, seed: baselines.BZCBBDoubling(k, seed=seed),
    ),
    Algorithm(
        "composite",
        "wrapper for composite anonymous feedback: sees only sums",
        "Cesa-Bianchi, Gentile & Mansour 2018 (CGM18)",
        "d",
        "read",
        lambda s: lambda k, seed: baselines.Composite(k, max(2, s.longest_delay + 1), seed=seed),
        lambda s: composite.bound(s.n_arms, s.n_rounds, max(2, s.longest_delay + 1)),
    ),
    Algorithm(
        "solid",
        "full information: Hedge fed with whole loss vectors as they arrive",
        "Joulani, Gyorgy & Szepesvari 2016 (JGS16)",
        "the losses of all arms",
        "derived",
        lambda _: lambda k, seed: baselines.SOLID(k, seed=seed),
        lambda s: solid.bound(s.n_arms, s.n_rounds, s.total_delay),
    ),
    Algorithm(
        "bold",
        "a pool of Tsallis-INF learners, each waiting for its own feedback",
        JGS13,
        "nothing",
        "read",
        lambda _: lambda k, seed: baselines.BOLD(k, seed=seed),
        lambda s: bold.bound(s.n_arms, s.n_rounds, s.most_outstanding),
    ),
    Algorithm(
        "delayed-ucb1",
        "UCB1 on what has been observed",
        JGS13,
        "stochastic losses",
        "read",
        lambda _: lambda k, seed: baselines.DelayedUCB1(k, seed=seed),
        stochastic(delayed_ucb.bound),
    ),
    Algorithm(
        "qpm-d",
        "UCB1 behind a queue of observations for each arm",
        JGS13,
        "stochastic losses",
        "read",
        lambda _: lambda k, seed: baselines.Queued(k, seed=seed),
        stochastic(queued.bound),
    ),
    Algorithm(
        "masoudian-2022",
        "best of both worlds with a known largest delay",
        "Masoudian, Zimmert & Seldin 2022",
        "d_max",
        "recalled",
        lambda s: Masoudian2022(s.longest_delay),
        lambda s: bounds.certificate(s.n_arms, s.delays, Masoudian2022(s.longest_delay)),
    ),
    Algorithm(
        "masoudian-2024",
        "best of both worlds, robust to excessive delays",
        "Masoudian, Zimmert & Seldin 2024",
        "nothing",
        "read",
        lambda _: lambda k, seed: baselines.Masoudian2024(k, seed=seed),
    ),
    Algorithm(
        "uniform",
        "every arm alike",
        "-",
        "nothing",
        "-",
        lambda _: lambda k, seed: baselines.UniformRandom(k, seed=seed),
        lambda s: s.n_rounds * (1 - 1 / s.n_arms),
    ),
    Algorithm(
        "best-arm",
        "the best single arm in hindsight",
        "-",
        "all losses",
        "-",
        lambda s: lambda k, seed: baselines.OneArm(k, s.best_arm(), seed=seed),
        lambda _: 0.0,
    ),
)
BY_NAME = {algorithm.name: algorithm for algorithm in ALGORITHMS}


def find(name: str) -> Algorithm:
    """An algorithm by its name; a wrong one gets the nearest right ones suggested."""
    if name not in BY_NAME:
        raise unknown_name("algorithm", str(name), BY_NAME)
    return BY_NAME[name]
