"""Slow, literal transcriptions that the fast code is compared with."""

import math
from bisect import bisect_left
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


def literal_step(n_arms: int, alpha: float, beta: float, *, is_shadow: bool = False) -> float:
    """What a round costs for each round that it did not know. A quarter where that is proven."""
    if not is_shadow and n_arms == 2:
        return 1 / (4 * (beta + alpha / math.sqrt(2)))
    return 1 / (4 * beta) if not is_shadow and alpha == 0 else 1 / (beta + alpha / 2)


def literal_charge(
    n_arms: int, log: Sequence[Log], s: int, *, has_shadow: bool = False, is_shadow: bool | None = None
) -> float:
    """What round s has cost by the end of the log. On means there is a shadow, but no alarm needs its steps."""
    own, is_shadow = log[s - 1], has_shadow if is_shadow is None else is_shadow
    charge = n_arms / (own.alpha * math.sqrt(n_arms) + (0 if has_shadow else 2 * own.beta))
    later = [one for one in log[s:] if s not in one.known]
    return min(1.0, charge + sum(literal_step(n_arms, one.alpha, one.beta, is_shadow=is_shadow) for one in later))


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


class Known(NamedTuple):
    """A decision of a game, and its loss if it was reported."""

    arm: int
    probability: float
    centre: float
    loss: float | None


def literal_measured(behind: NDArray[np.float64], rounds: Sequence[Known], *, on_means: bool) -> float:
    """The measured certificate by its definition. `behind` has the estimates that the game began with.

    On means every round adds loss - lhat_i, or the most that could be. Otherwise a round without a report adds 1.
    """
    leads = -behind
    for arm, probability, centre, loss in rounds:
        is_drawn = np.arange(leads.size) == arm
        if loss is not None:
            leads += (loss - centre) * np.where(is_drawn, 1 - 1 / probability, 1.0)
        elif on_means:
            leads += np.where(is_drawn, centre * (1 / probability - 1), 1 - centre)
        else:
            leads += 1
    alpha = 2 * math.sqrt(len(rounds))
    best = float((-leads).min())  # the potential takes losses that are not negative
    return float(slow_potential(-leads - best, alpha, 0.0) - best - 2 * alpha)


class Event(NamedTuple):
    """Something that a learner on means was told, in order."""

    kind: str  # "solve", "ask", "tell" or "amend"
    round: int
    loss: float = 0.0  # of a report, or by how much an amendment changes it
    is_new: bool = False  # an amendment of a round that was given up
    x: NDArray[np.float64] = np.zeros(0)  # the distribution in force


class ArmReports:
    """The reports of an arm, and how long it has been silent."""

    def __init__(self) -> None:
        self.count = self.sum = 0.0
        self.missing = 0
        self.drawn = 0.0  # expected draws since its last report
        self.others = 0  # reports of others since they were too many

    def tell(self, loss: float) -> None:
        self.missing = max(0, self.missing - 1)
        self.count, self.sum = self.count + 1, self.sum + loss

    def amend(self, change: float, is_new: bool) -> None:
        self.missing = max(0, self.missing - is_new)
        self.count += is_new
        self.sum = min(self.count, max(0.0, self.sum + change))

    def is_overdue(self, longest_delay: float) -> bool:
        return self.drawn > 100 + 2 * longest_delay

    def is_silent(self, longest_delay: float) -> bool:
        return self.count == 0 or (self.is_overdue(longest_delay) and self.others >= 2)


class Replay:
    """What a learner on means knows after a list of events. `oracle` knows the decisions."""

    def __init__(self, oracle: "LiteralMeans", n_events: int | None = None) -> None:
        self.oracle = oracle
        self.arms = [ArmReports() for _ in range(oracle.n_arms)]
        self.estimates = np.zeros(oracle.n_arms)  # of the alarm
        self.decided = self.reported = self.told = self.known = 0
        self.longest_delay = 0.0
        self.suffered = self.centres = self.lead = 0.0
        self.surprises: list[float] = []
        self.products: list[float] = []
        self.is_moving = self.is_over = False
        self.stage_losses = np.zeros(oracle.n_arms)
        self.savings: list[float] = []
        for event in oracle.events[:n_events]:
            getattr(self, event.kind)(event)

    @property
    def mean(self) -> float:
        return self.suffered / self.reported if self.reported else 0.5

    def ask(self, event: Event) -> None:
        self.decided += 1
        self.arms[self.oracle.made[event.round].arm].missing += 1
        for arm, probability in zip(self.arms, event.x, strict=True):
            arm.drawn += probability

    def solve(self, _event: Event) -> None:
        """Reports count against a silent arm once it is overdue at a solve."""
        for arm in self.arms:
            if not arm.is_overdue(self.longest_delay):
                arm.others = 0

    def hear(self, reporting: ArmReports, delay: float | None) -> None:
        """An arm has reported. If the delay is not known, its draws are taken for it."""
        for arm in self.arms:
            arm.others += 1
        self.longest_delay = max(reporting.drawn if delay is None else delay, self.longest_delay * (1 - 1 / 500))
        reporting.drawn, reporting.others = 0.0, 0

    def tell(self, event: Event) -> None:
        made = self.oracle.made[event.round]
        self.estimates[made.arm] += (event.loss - made.centre) / made.probability
        self.centres += made.centre
        if not self.is_over:
            self.lead = self.suffered + event.loss - self.centres - float(self.estimates.min())
            self.known = self.told + 1
            self.is_over = self.lead > self.oracle.allowed_after(self.decided)
        if self.oracle.stage != "means" and event.round > self.oracle.start:
            self.tell_stage(event, made)
        if self.oracle.provisional is None:
            self.watch(event.loss, self.arms[made.arm])
        self.arms[made.arm].tell(event.loss)
        self.hear(self.arms[made.arm], self.decided - event.round)
        self.reported, self.suffered, self.told = self.reported + 1, self.suffered + event.loss, self.told + 1

    def estimate_in_stage(self, event: Event, made: "Made", centre: float) -> None:
        """The estimates of the present stage."""
        age, is_moving = event.round - self.oracle.start, self.oracle.stage == "moving"
        is_centred = is_moving and made.probability * age >= 8
        self.stage_losses[made.arm] += (event.loss - centre * is_centred) / made.probability
        if is_moving:
            self.stage_losses -= centre * (event.x * age < 8)

    def tell_stage(self, event: Event, made: "Made") -> None:
        """The estimates and the savings of the present stage."""
        self.estimate_in_stage(event, made, made.centre)
        if self.oracle.stage == "moving":
            bold, careful = self.oracle.policies[event.round]
            mean = self.suffered / self.reported if self.reported else 0.0
            self.savings.append((event.loss - mean) * (bold[made.arm] - careful[made.arm]) / made.probability)

    def watch(self, loss: float, arm: ArmReports) -> None:
        """Neighbouring surprises. Each is worth 1/24 less for every report since."""
        expected = (arm.sum + 2 * self.mean) / (arm.count + 2)
        ages = np.arange(len(self.surprises))[::-1]
        run = float(np.array(self.surprises) @ (23 / 24) ** ages)
        self.surprises.append((loss - expected) * arm.count / (arm.count + 5))
        self.products.append(self.surprises[-1] * run)
        threshold = (1 + 0.4 * math.log(1 + self.reported)) * math.sqrt(4 + (np.array(self.products) ** 2).sum())
        self.is_moving = self.is_moving or sum(self.products) > threshold

    def amend(self, event: Event) -> None:
        made, centre = self.oracle.made[event.round], self.mean if event.is_new else 0.0
        self.estimates[made.arm] += (event.loss - centre) / made.probability
        self.centres += centre
        if self.oracle.stage != "means" and event.round > self.oracle.start:
            if event.is_new:
                self.estimate_in_stage(event, made, centre)
            else:
                self.stage_losses[made.arm] += event.loss / made.probability
        self.arms[made.arm].amend(event.loss, event.is_new)
        if event.is_new:
            self.hear(self.arms[made.arm], None)
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
        self.x = np.zeros(n_arms)  # of the last solve
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
        told = [event for event in self.events if event.kind in ("tell", "amend")]
        reports = sum(event.kind == "tell" or event.is_new for event in told)
        return sum(event.loss for event in told) / reports if reports else 0.5

    def waiting(self) -> list[int]:
        """The rounds that count as outstanding, oldest first."""
        return [round for round in self.made if round not in self.settled | self.given_up | self.skipped]

    def solve(self) -> NDArray[np.float64]:
        """The distribution of the coming round."""
        self.x = self.solved()
        return self.x

    def solved(self) -> NDArray[np.float64]:
        self.events.append(Event("solve", 0))
        past, t = Replay(self), len(self.made) + 1
        self.settled = {event.round for event in self.events if event.kind == "tell"}
        self.n_settled = past.told
        backlog = self.backlogs[-1] + len(self.waiting())
        if past.is_over and self.stage != "alarm":
            self.stage, self.start, self.start_backlog = "alarm", t - 1, backlog
        elif past.is_moving and self.stage == "means":
            self.stage, self.start, self.start_backlog = "moving", t - 1, backlog
        if self.stage == "means":
            return self.with_floor(self.on_means(past), past, t)
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
        return self.with_floor(careful if self.plays == "careful" else bold, past, t)

    def is_careful_ahead(self, savings: Sequence[float]) -> bool:
        return sum(savings) > self.tuning.switch_threshold * math.sqrt(1 + sum(saving**2 for saving in savings))

    def with_floor(self, weights: NDArray[np.float64], past: Replay, t: int) -> NDArray[np.float64]:
        """A silent arm has no more than the average of the others. Then each arm gets its uniform share."""
        is_heard = np.array([self.is_heard(arm, past) for arm in past.arms])
        x = np.where(is_heard, weights, np.minimum(weights, weights[is_heard].mean())) if is_heard.any() else weights
        lead = past.lead if self.provisional is None else 0.0
        share = min(1.0, 0.1 * math.sqrt(self.n_arms / t) + 0.05 * max(0.0, lead) / t)
        return np.asarray((1 - share) * x / x.sum() + share / self.n_arms)

    def is_heard(self, arm: ArmReports, past: Replay) -> bool:
        return self.provisional is not None or not arm.is_silent(past.longest_delay)

    def on_means(self, past: Replay) -> NDArray[np.float64]:
        """exp(-boldness (n_i + 2) kl_i). The reports of a silent arm do not count."""
        counts, sums = (
            np.array([getattr(arm, name) if self.is_heard(arm, past) else 0.0 for arm in past.arms])
            for name in ("count", "sum")
        )
        if self.provisional is not None:
            missing = np.array([arm.missing for arm in past.arms])
            counts, sums = counts + missing, sums + self.provisional * missing
        own = [total / count for total, count in zip(sums, counts, strict=True) if count > 0]
        mean = (sums + 2 * (sum(own) / len(own) if own else 0.5)) / (counts + 2)
        u = (2 * mean.min() + mean) / 3
        divergence = (mean - mean.min()) ** 2 / (2 * u * (1 - u) + 1e-12)
        return np.asarray(np.exp(-np.minimum(600, self.tuning.boldness * (counts + 2) * divergence)))

    def ask(self, decision: Decision) -> None:
        round, arm, probability = decision
        centre = self.mean()
        counted = self.waiting()
        self.backlogs.append(self.backlogs[-1] + len(counted))
        patience = self.tuning.scale / math.sqrt(math.log(self.n_arms)) * math.sqrt(self.backlogs[-1])
        if counted and round - counted[0] > patience:
            self.skipped.add(counted[0])
        self.made[round] = Made(arm, probability, centre)
        self.events.append(Event("ask", round, x=self.x))
        if self.stage == "moving":
            self.policies[round] = self.coming
        elif self.stage == "alarm":
            self.log.append(Log(self.alpha, self.beta, frozenset(round - self.start for round in self.settled)))

    def tell(self, round: int, loss: float) -> None:
        self.events.append(Event("tell", round, loss, x=self.x))

    def give_up(self, round: int) -> None:
        self.given_up.add(round)

    def amend(self, round: int, old: float | None, new: float) -> None:
        self.events.append(Event("amend", round, new - (old or 0.0), old is None, self.x))

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
            charges += 1.0 if is_lost else literal_charge(self.n_arms, self.log, s, has_shadow=True, is_shadow=False)
        return charges + 2 * self.alpha * (math.sqrt(self.n_arms) - 1) + self.beta * math.log(self.n_arms)

    def certificate_any(self) -> float:
        """The one for any delays, from the list of events (docs/theory/any-delays.md)."""
        past, n = Replay(self), len(self.made)
        if not past.is_over:
            return self.allowed_after(n) + max(0.0, float(self.unreported(self.events).max()))
        # the first events that raise it
        before = bisect_left(range(len(self.events) + 1), True, key=lambda i: Replay(self, i).is_over)  # noqa: FBT003
        decided = sum(event.kind == "ask" for event in self.events[:before])
        total = past.lead + max(0.0, float(self.unreported(self.events[:before]).max()))
        if self.stage != "alarm":
            return total + n - decided
        penalty = 2 * self.alpha * (math.sqrt(self.n_arms) - 1) + self.beta * math.log(self.n_arms)
        return total + self.start - decided + penalty + self.missing_cost()

    def unreported(self, events: Sequence[Event]) -> NDArray[np.float64]:
        """What rounds without a report could add to the lead against each arm. A round that was given up stays one."""
        told = {event.round for event in events if event.kind == "tell"}
        added = np.zeros(self.n_arms)
        for round in {event.round for event in events if event.kind == "ask"} - told:
            made = self.made[round]
            added += 1 - made.centre
            added[made.arm] += made.centre * (1 / made.probability - 1) - (1 - made.centre)
        return added

    def missing_cost(self) -> float:
        """Of every round since the alarm, the stability and what it pays for the rounds that its solve did not know."""
        cost, known, told, asked = 0.0, set[int](), set[int](), list[int]()
        for event in self.events:
            if event.kind == "solve":
                known = set(told)
            elif event.kind == "tell" or event.is_new:
                told.add(event.round)
            elif event.kind == "ask" and event.round > self.start:
                alpha, beta, _ = self.log[len(asked)]
                cost += math.sqrt(self.n_arms) / alpha if alpha * alpha > self.n_arms else 1.0
                for made in (self.made[round] for round in asked if round not in known):
                    x = event.x[made.arm]
                    cost += x / (beta + alpha / math.sqrt(x) / 2) / made.probability
                asked.append(event.round)
        return cost
