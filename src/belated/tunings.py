"""Rules that turn the round and the outstanding counts into the two inverse learning rates.

    x_t = argmin over the simplex of  <x, Lobs_t> - 2 alpha_t sum_i sqrt(x_i) + beta_t sum_i x_i ln x_i

A tuning sees delays, never losses. Only `Means` and `Shadow` let the learner look at its reports too. A tuning is
proper (ZS20, Section 3) when alpha_t and beta_t never decrease.

>>> import belated
>>> learner = belated.FTRL(3, belated.tunings.Advanced(scale=2), seed=1)
>>> learner.status.tuning
Advanced(scale=2.0, discard=False)
>>> alpha, beta = belated.tunings.Simple().rates(n_arms=3, round=9, outstanding=4, backlog=70)
>>> alpha
3.0

ZS20: Zimmert & Seldin, An Optimal Algorithm for Adversarial Bandits with Arbitrary Delays, AISTATS 2020.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, final

import numpy as np
from numpy.typing import ArrayLike

from belated import kernels
from belated.arrays import Floats, Integers
from belated.errors import InvalidInput
from belated.proper import check_pure, proper_arrays, proper_patience, proper_rates, rates_at_once
from belated.validation import as_delays, positive_number, truth, whole_number

SquareRoot = Callable[[Any], Any]  # math.sqrt for a round, np.sqrt for all rounds at once: IEEE demands the same bits


class Tuning(ABC):
    """A learning-rate rule. Subclass it and write `rates` to plug in your own."""

    discard: bool = False  # throw away the feedback of skipped rounds
    elementwise: ClassVar[bool] = False  # `rates` also takes arrays of rounds and counts, with sqrt=np.sqrt

    @abstractmethod
    def rates(self, n_arms: int, round: int, outstanding: int, backlog: int) -> tuple[float, float]:
        """(alpha_t, beta_t) from the round t, the outstanding count o_t and the backlog D_t = sum_{s<=t} o_s."""

    def patience(self, n_arms: int) -> float:
        """A round counts for at most patience * sqrt(D_t) rounds, and is then skipped. Infinite means never."""
        return math.inf

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"


class RootTuning(Tuning):
    """The rates of ZS20's Algorithm 2. With means or a shadow they are those of the careful policy.

    alpha_t = sqrt(t),  beta_t = scale sqrt(D_t / ln k),  D_t counting a round s only while t - s <= beta_t

    A kernel computes them too (`ask_next`), because a call of `rates` takes as long as a fifth of a round.
    """

    scale: float
    elementwise = True

    def __init_subclass__(cls, **settings: Any) -> None:
        super().__init_subclass__(**settings)
        if cls.rates is not RootTuning.rates:
            raise InvalidInput(
                f"{cls.__name__} changes the rates of {cls.__mro__[1].__name__}, which are compiled. Inherit from "
                "belated.tunings.Tuning"
            )

    def rates(
        self, n_arms: int, round: int, outstanding: int, backlog: int, sqrt: SquareRoot = math.sqrt
    ) -> tuple[float, float]:
        return sqrt(round), self.scale * sqrt(backlog / math.log(n_arms))

    def patience(self, n_arms: int) -> float:
        return self.scale / math.sqrt(math.log(n_arms))  # patience * sqrt(D_t) = beta_t


@final
@dataclass(frozen=True)
class Simple(Tuning):
    """ZS20's simple tuning. Reg <= 4 sqrt(kn) + sqrt(8 D ln k) (Theorem 1).

    alpha_t = sqrt(t),  beta_t = scale sqrt(2 D_t / ln k)
    """

    scale: float = 1.0
    elementwise = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", positive_number("scale", self.scale))

    def rates(
        self, n_arms: int, round: int, outstanding: int, backlog: int, sqrt: SquareRoot = math.sqrt
    ) -> tuple[float, float]:
        return sqrt(round), self.scale * sqrt(2 * backlog / math.log(n_arms))


@final
@dataclass(frozen=True)
class Advanced(RootTuning):
    """ZS20's advanced tuning (Algorithm 2). It stops waiting for excessive delays.

    alpha_t = sqrt(t),  beta_t = scale sqrt(D_t / ln k),  D_t counting a round s only while t - s <= beta_t

    Reg <= 4 sqrt(kn) + 10 max{m, 2 ln k} (Theorem 2), m = min over S of |S| + sqrt(D_notS ln k). By the certificate,
    3 m + 3 ln k may replace the term with the maximum. `discard=True` throws the feedback of skipped rounds away. By
    default it is used when it comes.
    """

    scale: float = 1.0
    discard: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", positive_number("scale", self.scale))
        object.__setattr__(self, "discard", truth("discard", self.discard))


@final
@dataclass(frozen=True)
class Means(RootTuning):
    """The default. Plays by the arms' means while the world stands still, and hands over when it does not.

    means:   x_i in proportion to exp(-boldness n_i kl(mean_i, lowest mean)), and a small uniform share
    moving:  Shadow(scale, switch_threshold) from scratch, on centred estimates. Begins when reports come in runs
    alarm:   alpha_t = sqrt(t), beta_t = scale sqrt(D_t / ln k) from scratch, for ever. Begins when more is lost than
             10 sqrt(kt) + sqrt(D_t ln k) + k

    A decision without a report counts as average, not as perfect (docs/theory/means.md).
    Reg <= 20.4 sqrt(kn) + 3.81 sqrt(D ln k) + sqrt(2 D) + k + 1, without refresh and batches
    """

    boldness: float = 1.5
    scale: float = 3.0
    switch_threshold: float = 0.5  # the world moves already, so less evidence is needed than in Shadow

    def __post_init__(self) -> None:
        for name in ("boldness", "scale", "switch_threshold"):
            object.__setattr__(self, name, positive_number(name, getattr(self, name)))


@final
@dataclass(frozen=True)
class Shadow(RootTuning):
    """Pays only for the delay that really hurts. A bold and a careful policy run together, and the one ahead decides.

    bold:    alpha_t = sqrt(t),  beta_t = 0                             (Tsallis)
    careful: alpha_t = sqrt(t),  beta_t = scale sqrt(D_t / ln k)        (Advanced)

    The careful one decides while its lead in the rounds reported so far exceeds `switch_threshold` standard deviations.
    It decides forever once more is lost than its guarantee allows (docs/theory/shadow.md).
    Reg <= 4 sqrt(kn) + (scale + 2 / scale) sqrt(D ln k) + sqrt(2 D) + 2, without refresh and batches
    """

    scale: float = 3.0
    switch_threshold: float = 1.5

    def __post_init__(self) -> None:
        for name in ("scale", "switch_threshold"):
            object.__setattr__(self, name, positive_number(name, getattr(self, name)))


@final
@dataclass(frozen=True)
class Tsallis(Tuning):
    """Tsallis-INF (Zimmert & Seldin 2019), blind to delays. Without them Reg <= 4 sqrt(kn) + 1.

    alpha_t = sqrt(t),  beta_t = 0
    """

    elementwise = True

    def rates(
        self, n_arms: int, round: int, outstanding: int, backlog: int, sqrt: SquareRoot = math.sqrt
    ) -> tuple[float, float]:
        return sqrt(round), 0.0 * backlog


@final
@dataclass(frozen=True)
class Exp3(Tuning):
    """Exponential weights with a constant learning rate eta (Auer et al. 2002, with delays Neu et al. 2010).

    alpha_t = 0,  beta_t = 1 / eta,  Reg <= ln k / eta + eta (k n / 2 + D)
    """

    eta: float
    elementwise = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "eta", positive_number("eta", self.eta))

    def rates(
        self, n_arms: int, round: int, outstanding: int, backlog: int, sqrt: SquareRoot = math.sqrt
    ) -> tuple[float, float]:
        return 0.0 * round, 1 / self.eta + 0.0 * backlog


@final
@dataclass(frozen=True)
class AdaptiveExp3(Tuning):
    """Delay-adaptive exponential weights (Gyorgy & Joulani 2021, with derived constants).

    alpha_t = 0,  beta_t = 1 / eta_t = scale sqrt((k t + 2 D_t) / ln k),  Reg <= 2 sqrt((kn + 2D) ln k)
    """

    scale: float = 1.0
    elementwise = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", positive_number("scale", self.scale))

    def rates(
        self, n_arms: int, round: int, outstanding: int, backlog: int, sqrt: SquareRoot = math.sqrt
    ) -> tuple[float, float]:
        return 0.0 * round, self.scale * sqrt((n_arms * round + 2 * backlog) / math.log(n_arms))


@final
@dataclass(frozen=True)
class Masoudian2022(Tuning):
    """Best of both worlds with a known largest delay (Masoudian, Zimmert & Seldin 2022).

    The rates are as commonly quoted. The certificate holds for them, whatever the paper has.

    alpha_t = sqrt(t + e0),  beta_t = sqrt((D_t + g0) / ln k),
    e0 = 10 d_max + d_max^2 / (k^(1/3) ln k)^2,  g0 = 24^2 d_max^2 k^(2/3) ln k
    """

    longest_delay: int
    elementwise = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "longest_delay", whole_number("longest_delay", self.longest_delay, 0))

    def rates(
        self, n_arms: int, round: int, outstanding: int, backlog: int, sqrt: SquareRoot = math.sqrt
    ) -> tuple[float, float]:
        d, log_k = self.longest_delay, math.log(n_arms)
        e0 = 10 * d + (d / (n_arms ** (1 / 3) * log_k)) ** 2
        g0 = 576 * d * d * n_arms ** (2 / 3) * log_k
        return sqrt(round + e0), sqrt((backlog + g0) / log_k)


DEFAULT = Means()  # docs/which-tuning.md says why


def as_tuning(tuning: Any) -> Tuning:
    """The tuning, the default one for None."""
    if tuning is None:
        return DEFAULT
    if not isinstance(tuning, Tuning):
        raise InvalidInput(f"tuning must be a belated.tunings.Tuning, such as belated.tunings.Means(), got {tuning!r}")
    return tuning


class Schedule(NamedTuple):
    """What a tuning does in every round of a game whose delays are known."""

    alpha: Floats
    beta: Floats
    backlog: Integers
    skipped_in: Integers  # the round that stopped counting this one; 0: none did


def outstanding_counts(delays: Integers) -> Integers:
    """o_t = #{ s < t : s + d_s >= t }. Their sum is D (ZS20, Section 2)."""
    n = delays.size
    change = np.zeros(n + 2, np.int64)
    change[1 : n + 1] += 1
    np.add.at(change, np.minimum(np.arange(n) + delays, n) + 1, -1)
    return np.cumsum(change)[:n]


def schedule(tuning: Tuning, n_arms: int, delays: ArrayLike) -> Schedule:
    """The rates of every round, computed beforehand. They depend on the delays alone."""
    n_arms, waits = whole_number("n_arms", n_arms, 1), as_delays(delays)
    rounds = np.arange(1, waits.size + 1)
    backlog, skipped_in = kernels.backlogs(waits, proper_patience(tuning, n_arms))
    alpha, beta = _all_rates(tuning, n_arms, rounds, backlog)
    return Schedule(alpha, beta, backlog, skipped_in)


def _all_rates(tuning: Tuning, n_arms: int, rounds: Integers, backlog: Integers) -> tuple[Floats, Floats]:
    """The rates of all rounds, refused where FTRL would refuse them."""
    if n_arms == 1:
        return np.ones(rounds.size), np.zeros(rounds.size)
    counted = backlog.copy()
    counted[1:] -= backlog[:-1]

    def alone(index: int) -> Any:
        return tuning.rates(n_arms, int(rounds[index]), int(counted[index]), int(backlog[index]))

    if tuning.elementwise:
        alpha, beta = proper_arrays(tuning, rates_at_once(tuning, n_arms, rounds, counted, backlog), rounds.size)
    else:
        rates, pairs = (0.0, 0.0), []
        for round, *counts in zip(rounds.tolist(), counted.tolist(), backlog.tolist(), strict=True):
            rates = proper_rates(tuning, round, rates, tuning.rates(n_arms, round, *counts))
            pairs.append(rates)
        alpha, beta = np.array(pairs).T
    check_pure(tuning, alpha, beta, alone)
    return alpha, beta
