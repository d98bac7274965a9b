"""Slow, literal transcriptions that the fast code is compared with."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import mpmath as mp
import numpy as np
from numpy.typing import NDArray

from belated import FTRL, Decision, Learner, kernels
from belated.learner import certificates, rounds
from belated.tunings import Means


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
    return certificates.uncapped(learner._state.clock[0], learner._state.policies)


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


class Event(NamedTuple):
    """Something that a learner on means was told, in order."""

    kind: str  # "ask", "tell" or "amend"
    round: int
    loss: float = 0.0  # of a report, or by how much an amendment changes it
    is_new: bool = False  # an amendment of a round that was given up


class ArmReports:
    """The reports of an arm. Each has its weight in the mean, and its weight among the recent ones."""

    def __init__(self) -> None:
        self.losses = self.weights = np.zeros(0)  # of the recent ones
        self.count = self.sum = 0.0
        self.missing = self.resets = 0

    def tell(self, loss: float, window: float, can_forget: bool) -> None:
        self.missing = max(0, self.missing - 1)
        self.losses, self.weights = np.append(self.losses, loss), np.append(self.weights * (1 - 1 / (window + 1)), 1.0)
        self.count, self.sum = self.count + 1, self.sum + loss
        weight, mass = float(self.weights.sum()), float(self.weights @ self.losses)
        if can_forget and weight >= 10 and self.count > 2 * weight:
            earlier = (self.sum - mass) / (self.count - weight)
            pooled = (self.sum + 1) / (self.count + 2)
            variance = pooled * (1 - pooled) * (1 / (self.count - weight) + 0.5 / weight)
            if (mass / weight - earlier) ** 2 > 25 * variance:
                self.count, self.sum, self.resets = weight, mass, self.resets + 1

    def amend(self, change: float, is_new: bool) -> None:
        if not is_new:  # it may be one of the recent ones
            self.losses = self.weights = np.zeros(0)
        self.missing = max(0, self.missing - is_new)
        self.count += is_new
        self.sum = min(self.count, max(0.0, self.sum + change))


class Replay:
    """What a learner on means knows after a list of events. `oracle` knows the decisions."""

    def __init__(self, oracle: "LiteralMeans") -> None:
        self.oracle = oracle
        self.arms = [ArmReports() for _ in range(oracle.n_arms)]
        self.estimates = np.zeros(oracle.n_arms)  # of the alarm
        self.decided = self.reported = self.told = self.known = 0
        self.suffered = self.centres = self.lead = 0.0
        self.surprises: list[float] = []
        self.products: list[float] = []
        self.is_moving = self.is_over = False
        self.stage_losses = np.zeros(oracle.n_arms)
        self.savings: list[float] = []
        for event in oracle.events:
            getattr(self, event.kind)(event)

    @property
    def mean(self) -> float:
        return self.suffered / self.reported if self.reported else 0.5

    def ask(self, event: Event) -> None:
        self.decided += 1
        self.arms[self.oracle.made[event.round].arm].missing += 1

    def tell(self, event: Event) -> None:
        made, is_plain = self.oracle.made[event.round], self.oracle.provisional is not None
        self.estimates[made.arm] += (event.loss - made.centre) / made.probability
        self.centres += made.centre
        if not self.is_over:
            self.lead = self.suffered + event.loss - self.centres - float(self.estimates.min())
            self.known = self.told + 1
            self.is_over = self.lead > self.oracle.allowed_after(self.decided)
        if self.oracle.stage != "means" and event.round > self.oracle.start:
            self.tell_stage(event, made)
        if not is_plain:
            self.watch(event.loss, self.arms[made.arm])
        waiting = self.decided - self.reported
        self.arms[made.arm].tell(event.loss, max(100, 4 * waiting), can_forget=not is_plain)
        self.reported, self.suffered, self.told = self.reported + 1, self.suffered + event.loss, self.told + 1

    def tell_stage(self, event: Event, made: "Made") -> None:
        """The estimates and the savings of the present stage."""
        is_sure = made.probability * (event.round - self.oracle.start) >= 4
        is_centred = self.oracle.stage == "moving" and is_sure
        self.stage_losses[made.arm] += (event.loss - made.centre * is_centred) / made.probability
        if self.oracle.stage == "moving":
            bold, careful = self.oracle.policies[event.round]
            mean = self.suffered / self.reported if self.reported else 0.0
            self.savings.append((event.loss - mean) * (bold[made.arm] - careful[made.arm]) / made.probability)

    def watch(self, loss: float, arm: ArmReports) -> None:
        """Neighbouring surprises. Each is worth 1/16 less for every report since."""
        expected = (arm.sum + 2 * self.mean) / (arm.count + 2)
        ages = np.arange(len(self.surprises))[::-1]
        run = float(np.array(self.surprises) @ (15 / 16) ** ages)
        self.surprises.append((loss - expected) * arm.count / (arm.count + 5))
        self.products.append(self.surprises[-1] * run)
        threshold = (1 + 0.4 * math.log(1 + self.reported)) * math.sqrt(16 + (np.array(self.products) ** 2).sum())
        self.is_moving = self.is_moving or sum(self.products) > threshold

    def amend(self, event: Event) -> None:
        made = self.oracle.made[event.round]
        self.estimates[made.arm] += event.loss / made.probability
        self.arms[made.arm].amend(event.loss, event.is_new)
        if self.oracle.stage != "means" and event.round > self.oracle.start:
            self.stage_losses[made.arm] += event.loss / made.probability
        self.reported, self.suffered = self.reported + event.is_new, self.suffered + event.loss
        if not self.is_over:
            self.lead = self.suffered - self.centres - float(self.estimates.min())
            self.is_over = self.lead > self.oracle.allowed_after(self.decided)


class Made(NamedTuple):
    """A decision, and the mean of the losses reported before it."""

    arm: int
    probability: float
    centre: float


class LiteralMeans:
    """A literal transcription of docs/theory/means.md. Each solve computes everything from the list of events."""

    def __init__(self, n_arms: int, tuning: Means, provisional: float | None = None) -> None:
        self.n_arms, self.tuning, self.provisional = n_arms, tuning, provisional
        self.events: list[Event] = []
        self.made: dict[int, Made] = {}
        self.policies: dict[int, tuple[NDArray[np.float64], NDArray[np.float64]]] = {}  # of the rounds on the move
        self.stage, self.plays, self.start, self.start_backlog = "means", "means", 0, 0
        self.alpha = self.beta = 0.0
        self.backlogs = [0]  # D_t after t decisions
        self.settled: set[int] = set()  # the rounds whose reports the last solve knew
        self.n_settled = 0  # and how many these are
        self.given_up: set[int] = set()
        self.skipped: set[int] = set()
        self.log: list[Log] = []  # of the rounds since the alarm, which are numbered anew

    def allowed_after(self, decisions: int) -> float:
        backlog = self.backlogs[decisions]
        return 10 * math.sqrt(self.n_arms * decisions) + math.sqrt(backlog * math.log(self.n_arms)) + self.n_arms

    def mean(self) -> float:
        """The mean of the losses reported so far."""
        told = [event for event in self.events if event.kind != "ask"]
        reports = sum(event.kind == "tell" or event.is_new for event in told)
        return sum(event.loss for event in told) / reports if reports else 0.5

    def waiting(self) -> list[int]:
        """The rounds that count as outstanding, oldest first."""
        return [round for round in self.made if round not in self.settled | self.given_up | self.skipped]

    def solve(self) -> NDArray[np.float64]:
        """The distribution of the coming round."""
        past, t = Replay(self), len(self.made) + 1
        self.settled = {event.round for event in self.events if event.kind == "tell"}
        self.n_settled = past.told
        backlog = self.backlogs[-1] + len(self.waiting())
        if past.is_over and self.stage != "alarm":
            self.stage, self.start, self.start_backlog = "alarm", t - 1, backlog
        elif past.is_moving and self.stage == "means":
            self.stage, self.start, self.start_backlog = "moving", t - 1, backlog
        if self.stage == "means":
            return self.with_floor(self.on_means(past), 0.0 if self.provisional is not None else past.lead, t)
        losses = Replay(self).stage_losses  # of the stage, which may just have begun
        self.alpha = math.sqrt(t - self.start)
        self.beta = self.tuning.scale * math.sqrt((backlog - self.start_backlog) / math.log(self.n_arms))
        careful = slow_argmin(losses, self.alpha, self.beta)
        if self.stage == "alarm":
            self.plays = "careful"
            return careful
        bold = slow_argmin(losses, self.alpha, 0.0)
        self.coming = bold, careful
        self.plays = "careful" if self.is_careful_ahead(Replay(self).savings) else "bold"
        return self.with_floor(careful if self.plays == "careful" else bold, past.lead, t)

    def is_careful_ahead(self, savings: Sequence[float]) -> bool:
        return sum(savings) > self.tuning.switch_threshold * math.sqrt(1 + sum(saving**2 for saving in savings))

    def with_floor(self, x: NDArray[np.float64], lead: float, t: int) -> NDArray[np.float64]:
        share = min(1.0, 0.1 * math.sqrt(self.n_arms / t) + 0.05 * max(0.0, lead) / t)
        return np.asarray((1 - share) * x / x.sum() + share / self.n_arms)

    def on_means(self, past: Replay) -> NDArray[np.float64]:
        """exp(-boldness (n_i + 2) kl_i). An arm that has never reported has no more than the average of the others."""
        counts, sums = (np.array([getattr(arm, name) for arm in past.arms]) for name in ("count", "sum"))
        has_reported = counts > 0
        if self.provisional is not None:
            missing = np.array([arm.missing for arm in past.arms])
            counts, sums = counts + missing, sums + self.provisional * missing
        own = [total / count for total, count in zip(sums, counts, strict=True) if count > 0]
        mean = (sums + 2 * (sum(own) / len(own) if own else 0.5)) / (counts + 2)
        u = (2 * mean.min() + mean) / 3
        divergence = (mean - mean.min()) ** 2 / (2 * u * (1 - u) + 1e-12)
        weights = np.exp(-np.minimum(600, self.tuning.boldness * (counts + 2) * divergence))
        if self.provisional is None and has_reported.any():
            weights = np.where(has_reported, weights, np.minimum(weights, weights[has_reported].mean()))
        return np.asarray(weights)

    def ask(self, decision: Decision) -> None:
        round, arm, probability = decision
        centre = 0.0 if self.provisional is not None else self.mean()
        counted = self.waiting()
        self.backlogs.append(self.backlogs[-1] + len(counted))
        patience = self.tuning.scale / math.sqrt(math.log(self.n_arms)) * math.sqrt(self.backlogs[-1])
        if counted and round - counted[0] > patience:
            self.skipped.add(counted[0])
        self.made[round] = Made(arm, probability, centre)
        self.events.append(Event("ask", round))
        if self.stage == "moving":
            self.policies[round] = self.coming
        elif self.stage == "alarm":
            self.log.append(Log(self.alpha, self.beta, frozenset(round - self.start for round in self.settled)))

    def tell(self, round: int, loss: float) -> None:
        self.events.append(Event("tell", round, loss))

    def give_up(self, round: int) -> None:
        self.given_up.add(round)

    def amend(self, round: int, old: float | None, new: float) -> None:
        self.events.append(Event("amend", round, new - (old or 0.0), old is None))

    def without_alarm(self) -> float:
        """The certificate of a run without an alarm."""
        return self.allowed_after(len(self.made)) + len(self.made) - self.n_settled

    def certificate(self) -> float:
        """Without the trivial bound n."""
        past, n = Replay(self), len(self.made)
        if self.stage != "alarm":
            return past.lead + n - past.known if past.is_over else self.without_alarm()
        charges = past.lead + self.start - past.known
        for s in range(1, n - self.start + 1):
            is_lost = s + self.start in self.given_up
            charges += 1.0 if is_lost else literal_charge(self.n_arms, self.log, s, has_shadow=True)
        return charges + 2 * self.alpha * (math.sqrt(self.n_arms) - 1) + self.beta * math.log(self.n_arms)
