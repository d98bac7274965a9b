"""Slow, literal transcriptions that the fast code is compared with."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import mpmath as mp
import numpy as np
from numpy.typing import NDArray

from belated import FTRL, Decision, Learner, kernels
from belated.learner import certificates, rounds
from belated.tunings import Shadow


def exact_argmin(losses: Sequence[float], alpha: float, beta: float, digits: int = 40) -> list[mp.mpf]:
    """x = argmin <x, L> - 2 alpha sum sqrt(x) + beta sum x ln x, from the optimality conditions, by bisection.

    alpha x_i^(-1/2) - beta ln x_i = L_i - min L + mu, solved for each arm by the Lambert W function.
    """
    with mp.workdps(digits):
        a, b, lowest = mp.mpf(alpha), mp.mpf(beta), mp.mpf(min(losses))
        gaps = [mp.mpf(loss) - lowest for loss in losses]
        k = len(gaps)

        def arm(height: mp.mpf) -> mp.mpf:  # x with a x^(-1/2) - b ln x = height
            if b == 0:
                return (a / height) ** 2
            if a == 0:
                return mp.exp(-height / b)
            ratio = a / (2 * b)  # y = x^(-1/2):  ratio y + ln y = height / 2b
            return (ratio / mp.lambertw(ratio * mp.exp(height / (2 * b))).real) ** 2

        low, high = a, a * mp.sqrt(k) + b * mp.log(k)
        for _ in range(int(digits * 3.4)):
            middle = (low + high) / 2
            if mp.fsum(arm(gap + middle) for gap in gaps) > 1:
                low = middle
            else:
                high = middle
        x = [arm(gap + (low + high) / 2) for gap in gaps]
        mass = mp.fsum(x)
        return [value / mass for value in x]


def kernel_argmin(policy: NDArray[np.float64], alpha: float, beta: float, solves: int = 0) -> NDArray[np.float64]:
    """x as the learner computes it, the normalised argmin from the v of `policy`."""
    assert kernels.argmin(policy, alpha, beta, solves)  # it converged
    kernels.normalise(policy[kernels.X], np.empty(-(-policy.shape[1] // kernels.BLOCK)))
    return np.array(policy[kernels.X])


class Log(NamedTuple):
    """The rates of a round, and the rounds whose feedback its distribution knew."""

    alpha: float
    beta: float
    known: frozenset[int]


def literal_charge(n_arms: int, log: Sequence[Log], s: int, *, has_shadow: bool = False) -> float:
    """What round s has cost by the end of the log."""
    own = log[s - 1]
    charge = n_arms / (own.alpha * math.sqrt(n_arms) + (0 if has_shadow else 2 * own.beta))
    return min(1.0, charge + sum(1 / (later.beta + later.alpha / 2) for later in log[s:] if s not in later.known))


def literal_certificate(
    n_arms: int, log: Sequence[Log], discarded: frozenset[int] = frozenset(), *, has_shadow: bool = False
) -> float:
    """The certificate by its definition, in quadratic time, without the trivial bound n."""
    rounds = range(1, len(log) + 1)
    charges = sum(1.0 if s in discarded else literal_charge(n_arms, log, s, has_shadow=has_shadow) for s in rounds)
    penalty = 2 * log[-1].alpha * (math.sqrt(n_arms) - 1) + log[-1].beta * math.log(n_arms)
    return penalty + charges + (literal_exposure(n_arms, log) + 1 if has_shadow else 0)


def literal_exposure(n_arms: int, log: Sequence[Log]) -> float:
    """W is the largest sum of (1 - charge so far) over the rounds that a distribution in force did not know."""
    largest = 0.0
    for t, now in enumerate(log, 1):
        missing = set(range(1, t + 1)) - now.known
        largest = max(largest, sum(1 - literal_charge(n_arms, log[:t], s, has_shadow=True) for s in missing))
    return largest


def theory_certificate(n_arms: int, log: Sequence[Log]) -> float:
    """The weaker certificate of ZS20, Theorem 3, with sqrt(k) / alpha_t a round and 1 / beta_t for each missing one."""
    charges = 0.0
    for s, own in enumerate(log, 1):
        missing = [later.beta for later in log[s:] if s not in later.known]
        waiting = sum(math.inf if beta == 0 else 1 / beta for beta in missing)
        charges += math.sqrt(n_arms) / own.alpha + min(1.0, waiting)
    return 2 * log[-1].alpha * (math.sqrt(n_arms) - 1) + log[-1].beta * math.log(n_arms) + charges


class TsallisInf:
    """Tsallis-INF without delays from its own formula (ZS19), w_i = (eta (L_i - z))^-2 with eta = 1 / sqrt(t)."""

    def __init__(self, n_arms: int, seed: int) -> None:
        self.losses = np.zeros(n_arms)
        self.generator = np.random.default_rng(seed)
        self.t = 0

    def weights(self) -> NDArray[np.float64]:
        eta = 1 / math.sqrt(self.t + 1)
        z = self.losses.min() - 1 / eta  # now at least one weight is 1, so the sum is too large and z must fall
        for _ in range(200):
            w = (eta * (self.losses - z)) ** -2.0
            step = (w.sum() - 1) / (2 * eta * (w**1.5).sum())
            z -= step
            if abs(step) < 1e-15 * (1 + abs(z)):
                break
        w = (eta * (self.losses - z)) ** -2.0
        normalised: NDArray[np.float64] = w / w.sum()
        return normalised

    def play(self, loss_of_arm: Sequence[float]) -> tuple[int, float]:
        w = self.weights()
        self.t += 1
        arm = int(np.searchsorted(np.cumsum(w), self.generator.random(), side="right"))
        self.losses[arm] += loss_of_arm[arm] / w[arm]
        return arm, float(w[arm])


def slow_argmin(losses: NDArray[np.float64], alpha: float, beta: float) -> NDArray[np.float64]:
    """x by two nested bisections on the optimality conditions alpha x_i^(-1/2) - beta ln x_i = L_i - min L + mu."""
    gaps = (losses - losses.min()).tolist()

    def arm(height: float) -> float:
        low, high = -700.0, 0.0  # ln x
        for _ in range(70):
            middle = (low + high) / 2
            low, high = (middle, high) if alpha * math.exp(-middle / 2) - beta * middle > height else (low, middle)
        return math.exp((low + high) / 2)

    low, high = alpha, alpha * math.sqrt(len(gaps)) + beta * math.log(len(gaps))
    for _ in range(70):
        mu = (low + high) / 2
        low, high = (mu, high) if sum(arm(gap + mu) for gap in gaps) > 1 else (low, mu)
    x = np.array([arm(gap + (low + high) / 2) for gap in gaps])
    return np.asarray(x / x.sum())


def slow_potential(losses: NDArray[np.float64], alpha: float, beta: float) -> float:
    """Phi(L) = -<x, L> + 2 alpha sum sqrt(x) - beta sum x ln x at its maximiser."""
    x = slow_argmin(losses, alpha, beta)
    return float(-x @ losses + 2 * alpha * np.sqrt(x).sum() - beta * (x * np.log(x)).sum())


class Report(NamedTuple):
    """A reported round with its arm, the probability of that arm, and the loss."""

    round: int
    arm: int
    probability: float
    loss: float


class LiteralShadow:
    """A literal transcription of docs/theory/shadow.md. Each step computes everything from the list of reports."""

    def __init__(self, n_arms: int, switch_threshold: float) -> None:
        self.n_arms, self.switch_threshold = n_arms, switch_threshold
        self.bold: dict[int, NDArray[np.float64]] = {}  # y_t of every round
        self.careful: dict[int, NDArray[np.float64]] = {}  # z_t
        self.was_alarmed = False

    def is_careful_ahead(self, reports: Sequence[Report]) -> bool:
        suffered = savings = squares = 0.0
        for earlier, (round, arm, probability, loss) in enumerate(reports):
            mean = suffered / earlier if earlier else 0.0
            saving = (loss - mean) * (self.bold[round][arm] - self.careful[round][arm]) / probability
            suffered, savings, squares = suffered + loss, savings + saving, squares + saving**2
        return savings > self.switch_threshold * math.sqrt(1 + squares)

    def solve(
        self, rounds: Sequence[int], alpha: float, careful_rate: float, allowed: float, reports: Sequence[Report]
    ) -> tuple[float, NDArray[np.float64]]:
        """beta_t and x_t of the rounds that one distribution serves, from the reports before them."""
        losses = np.zeros(self.n_arms)
        for report in reports:
            losses[report.arm] += report.loss / report.probability
        bold, careful = slow_argmin(losses, alpha, 0.0), slow_argmin(losses, alpha, careful_rate)
        for round in rounds:
            self.bold[round], self.careful[round] = bold, careful
        measured = sum(report.loss for report in reports) + slow_potential(losses, alpha, careful_rate) - 2 * alpha
        self.was_alarmed = self.was_alarmed or measured > allowed + 1
        is_careful = self.was_alarmed or self.is_careful_ahead(reports)
        return (careful_rate, careful) if is_careful else (0.0, bold)


def uncapped_certificate(learner: FTRL) -> float:
    """The proven certificate without the trivial bound n."""
    has_shadow = isinstance(learner.status.tuning, Shadow) and learner.n_arms > 1
    return certificates.uncapped(learner._state.clock[0], learner.n_arms, has_shadow=has_shadow)


def record_batch(learner: FTRL, arms: Sequence[int], probabilities: Sequence[float]) -> list[Decision]:
    """Enter rounds decided elsewhere from one distribution, as a shared learner does."""
    if not arms:
        return []
    batch = np.array(arms, np.int64), np.array(probabilities, np.float64)
    first = rounds.record_batch(learner._state, *batch)
    return list(map(Decision, range(first, first + len(arms)), arms, probabilities))


def rates_of(learner: FTRL) -> tuple[float, float]:
    """The rates (alpha, beta) in the certificate. With a shadow these are the careful ones."""
    return float(learner._state.clock["alpha"][0]), float(learner._state.clock["beta"][0])


def play(learner: Learner, delays: Sequence[int], losses: NDArray[np.float64]) -> list[Decision]:
    """Play a game in which the feedback of round t arrives at the end of round t + d_t. Returns the decisions."""
    due: dict[int, list[int]] = {}
    decisions: list[Decision] = []
    for t, delay in enumerate(delays, 1):
        decisions.append(learner.ask())
        due.setdefault(t + delay, []).append(t)
        for s in due.pop(t, []):
            learner.tell(s, float(losses[s - 1, decisions[s - 1].arm]))
    return decisions
