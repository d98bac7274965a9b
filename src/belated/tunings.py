"""Tunings: rules that turn the round and the outstanding counts into the two inverse learning rates.

    x_t = argmin over the simplex of  <x, Lobs_t> - 2 alpha_t sum_i sqrt(x_i) + beta_t sum_i x_i ln x_i

A tuning sees delays, never losses. It is proper (ZS20, Section 3) when alpha_t and beta_t never decrease.

ZS20: Zimmert & Seldin, An Optimal Algorithm for Adversarial Bandits with Arbitrary Delays, AISTATS 2020.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from belated import kernels
from belated.errors import ImproperRule, InvalidInput

SMALLEST_RATE, LARGEST_RATE = 1e-15, 1e15  # beyond them the arithmetic of the argmin could overflow


def sqrt(value: Any) -> Any:
    """The square root of a number or of an array: the same bits either way, as IEEE demands of both."""
    return np.sqrt(value) if isinstance(value, np.ndarray) else math.sqrt(value)


class Tuning(ABC):
    """A learning-rate rule: subclass it and write `rates` to plug in your own."""

    discard: bool = False  # throw away the feedback of skipped rounds
    elementwise: ClassVar[bool] = False  # `rates` also takes arrays of rounds and counts

    @abstractmethod
    def rates(self, n_arms: int, round: int, outstanding: int, backlog: int) -> tuple[float, float]:
        """(alpha_t, beta_t) from the round t, the outstanding count o_t and the backlog D_t = sum_{s<=t} o_s."""

    def patience(self, n_arms: int) -> float:
        """A round is counted for at most patience * sqrt(D_t) rounds, then skipped; infinite: never."""
        return math.inf

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def _check_positive(name: str, value: float) -> None:
    if not 0 < value < math.inf:
        raise InvalidInput(f"{name} must be a positive finite number, got {value!r}")


@final
@dataclass(frozen=True)
class Simple(Tuning):
    """ZS20's simple tuning: Reg <= 4 sqrt(kn) + sqrt(8 D ln k) (Theorem 1).

    alpha_t = sqrt(t),  beta_t = scale sqrt(2 D_t / ln k)
    """

    scale: float = 1.0
    elementwise = True

    def __post_init__(self) -> None:
        _check_positive("scale", self.scale)

    def rates(self, n_arms: int, round: int, outstanding: int, backlog: int) -> tuple[float, float]:
        return sqrt(round), self.scale * sqrt(2 * backlog / math.log(n_arms))


@final
@dataclass(frozen=True)
class Advanced(Tuning):
    """ZS20's advanced tuning (Algorithm 2): stops waiting for excessive delays.

    alpha_t = sqrt(t),  beta_t = scale sqrt(D_t / ln k),  D_t counting a round s only while t - s <= beta_t

    Reg <= 4 sqrt(kn) + 10 max{m, 2 ln k} (Theorem 2), m = min over S of |S| + sqrt(D_notS ln k); with 3 m + 3 ln k in
    place of the maximum by the certificate. `discard=True` throws the feedback of skipped rounds away; by default it
    is used when it comes.
    """

    scale: float = 1.0
    discard: bool = False
    elementwise = True

    def __post_init__(self) -> None:
        _check_positive("scale", self.scale)

    def rates(self, n_arms: int, round: int, outstanding: int, backlog: int) -> tuple[float, float]:
        return sqrt(round), self.scale * sqrt(backlog / math.log(n_arms))

    def patience(self, n_arms: int) -> float:
        return self.scale / math.sqrt(math.log(n_arms))  # patience * sqrt(D_t) = beta_t


@final
@dataclass(frozen=True)
class Tsallis(Tuning):
    """Tsallis-INF (Zimmert & Seldin 2019), blind to delays: Reg <= 4 sqrt(kn) + 1 without them.

    alpha_t = sqrt(t),  beta_t = 0
    """

    elementwise = True

    def rates(self, n_arms: int, round: int, outstanding: int, backlog: int) -> tuple[float, float]:
        return sqrt(round), 0.0 * backlog


@final
@dataclass(frozen=True)
class Exp3(Tuning):
    """Exponential weights with a constant learning rate eta (Auer et al. 2002; with delays Neu et al. 2010).

    alpha_t = 0,  beta_t = 1 / eta;  Reg <= ln k / eta + eta (k n / 2 + D)
    """

    eta: float
    elementwise = True

    def __post_init__(self) -> None:
        _check_positive("eta", self.eta)

    def rates(self, n_arms: int, round: int, outstanding: int, backlog: int) -> tuple[float, float]:
        return 0.0 * round, 1 / self.eta + 0.0 * backlog


@final
@dataclass(frozen=True)
class AdaptiveExp3(Tuning):
    """Delay-adaptive exponential weights (Gyorgy & Joulani 2021; the constants are derived).

    alpha_t = 0,  beta_t = 1 / eta_t = scale sqrt((k t + 2 D_t) / ln k);  Reg <= 2 sqrt((kn + 2D) ln k)
    """

    scale: float = 1.0
    elementwise = True

    def __post_init__(self) -> None:
        _check_positive("scale", self.scale)

    def rates(self, n_arms: int, round: int, outstanding: int, backlog: int) -> tuple[float, float]:
        return 0.0 * round, self.scale * sqrt((n_arms * round + 2 * backlog) / math.log(n_arms))


def proper_rates(
    tuning: Tuning, round: int, before: tuple[float, float], rates: tuple[float, float]
) -> tuple[float, float]:
    """The rates of a round as floats, if they may follow those of the round before; an ImproperRule otherwise."""
    try:
        alpha, beta = float(rates[0]), float(rates[1])
    except (TypeError, ValueError, IndexError):
        alpha = beta = math.nan
    if before[0] <= alpha <= LARGEST_RATE and before[1] <= beta <= LARGEST_RATE and alpha + beta >= SMALLEST_RATE:
        return alpha, beta
    raise ImproperRule(
        f"{tuning!r} gave (alpha, beta) = {rates!r} in round {round} after {before!r}: both must be numbers from 0 to "
        f"{LARGEST_RATE:g} that never decrease, and their sum at least {SMALLEST_RATE:g}"
    )


class Schedule(NamedTuple):
    """What a tuning does in every round of a game whose delays are known."""

    alpha: NDArray[np.float64]
    beta: NDArray[np.float64]
    backlog: NDArray[np.int64]
    skipped_in: NDArray[np.int64]  # the round that stopped counting this one; 0: none did


def as_delays(delays: ArrayLike) -> NDArray[np.int64]:
    """Validated delays d_1..d_n."""
    array = np.asarray(delays)
    if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "iu":
        raise InvalidInput(f"delays must be a non-empty sequence of whole numbers, got {delays!r}")
    if array.min() < 0:
        raise InvalidInput(f"delays must not be negative, got {array.min()} in round {array.argmin() + 1}")
    return array.astype(np.int64)


def outstanding_counts(delays: NDArray[np.int64]) -> NDArray[np.int64]:
    """o_t = #{ s < t : s + d_s >= t }; their sum is D (ZS20, Section 2)."""
    n = delays.size
    change = np.zeros(n + 2, np.int64)
    change[1 : n + 1] += 1
    np.add.at(change, np.minimum(np.arange(n) + delays, n) + 1, -1)
    return np.cumsum(change)[:n]


def schedule(tuning: Tuning, n_arms: int, delays: ArrayLike) -> Schedule:
    """The rates of every round, computed beforehand: they depend on the delays alone."""
    waits = as_delays(delays)
    n = waits.size
    waits = np.minimum(waits, n)
    arrival_order = np.argsort(np.arange(n) + waits, kind="stable")
    patience = tuning.patience(n_arms) if n_arms > 1 else math.inf
    backlog, skipped_in = kernels.backlogs(waits, arrival_order, patience)
    rounds, counted = np.arange(1, n + 1), np.diff(backlog, prepend=0)
    if n_arms == 1:
        alpha, beta = np.ones(n), np.zeros(n)
    elif tuning.elementwise:
        alpha, beta = tuning.rates(n_arms, rounds, counted, backlog)  # type: ignore[arg-type,assignment]
    else:
        rows = zip(rounds.tolist(), counted.tolist(), backlog.tolist(), strict=True)
        alpha, beta = np.array([tuning.rates(n_arms, *row) for row in rows], np.float64).T
    rising = (np.diff(alpha, prepend=0.0) >= 0) & (np.diff(beta, prepend=0.0) >= 0)
    if not (rising & (alpha <= LARGEST_RATE) & (beta <= LARGEST_RATE) & (alpha + beta >= SMALLEST_RATE)).all():
        before = 0.0, 0.0
        for t, rates in enumerate(zip(alpha.tolist(), beta.tolist(), strict=True), 1):
            before = proper_rates(tuning, t, before, rates)  # raises in the first round that is not proper
    return Schedule(alpha, beta, backlog, skipped_in)
