"""Off-policy evaluation estimates what another policy would have got on a log that kept its probabilities.

    w_t = x_t[A_t] / p_t over the rounds whose outcome came, p_t the logged probability of the logged arm A_t
    IPS = mean of w_t y_t,  SNIPS = sum of w_t y_t / sum of w_t            (Horvitz & Thompson 1952, Hajek 1971)

A learning policy learns from the log. Its x_t follows from the outcomes that came before decision t, each divided by
its logged probability. So x_t depends only on the past of the log, and w_t y_t - <x_t, y_t> is a martingale difference.
Therefore IPS estimates the mean of <x_t, y_t> without bias if losses, delays and gaps do not depend on the arms.
"""

import math
from collections.abc import Iterable, Iterator
from typing import Final, Literal, NamedTuple

import numpy as np

from belated.arrays import Floats, Integers
from belated.errors import InvalidInput
from belated.lab.problems.delays import NEVER
from belated.learner.ftrl import FTRL
from belated.learner.outcomes import OutcomeRange
from belated.progress import STRIDE, Progress
from belated.replay.decision_log import Log
from belated.replay.losses import losses_of, range_of
from belated.replay.waiting import delays_in_rounds
from belated.replay.weights import chance_of
from belated.tunings import AdaptiveExp3, Advanced, Means, Shadow, Simple, Tsallis, Tuning
from belated.validation import whole_number

UNIFORM: Final = "uniform"
LOGGED: Final = "logged"
Policy = Tuning | int | Literal["uniform", "logged"]  # a number means always that arm
TUNINGS: tuple[Tuning, ...] = (Means(), Shadow(), Simple(), Advanced(), AdaptiveExp3(), Tsallis())
NORMAL_95 = 1.959963984540054
MOST_BLOCKS = 1000  # of rows that follow each other. Enough for a standard error, and they fit into memory


class Interval(NamedTuple):
    """A value and its 95% interval, in the units of the outcomes."""

    value: float
    low: float
    high: float


class PolicyEstimate(NamedTuple):
    """What a policy would have got per decision on average. NaN if the log cannot say."""

    policy: Policy
    name: str
    ips: Interval
    snips: Interval
    n_outcomes: int
    effective: float  # (sum w)^2 / sum w^2, the number of its own outcomes that would say as much
    mean_weight: float  # over all rows. Near 1 if the logged probabilities are the ones really used
    weight_chance: float  # of a mean weight so far from 1, if they are
    blocks: Floats  # what each block of rows adds to snips.value. They sum to 0


def evaluate(
    log: Log, policy: Policy, outcomes: OutcomeRange | None = None, progress: Progress | None = None
) -> PolicyEstimate:
    """Estimate what a tuning, a single arm, UNIFORM play or the LOGGED policy itself would have got on this log."""
    within = range_of(log, outcomes)
    losses = losses_of(log, within)  # checks the range even if the policy does not learn
    came = np.isfinite(log.outcomes)
    if not came.any():
        raise InvalidInput("no decision of the log has an outcome, so there is nothing to evaluate")
    weights = policy_weights(log, policy, losses, progress)
    return _estimate(log, policy, weights, within)


def evaluate_all(
    log: Log, outcomes: OutcomeRange | None = None, policies: Iterable[Policy] | None = None
) -> list[PolicyEstimate]:
    """Estimate many policies. The default is six tunings, every single arm, uniform play and the logged policy."""
    chosen = list(default_policies(log) if policies is None else policies)
    learning = sum(isinstance(policy, Tuning) for policy in chosen)
    with Progress("replaying the log", learning * log.times.size) as progress:
        return [evaluate(log, policy, outcomes, progress) for policy in chosen]


def default_policies(log: Log) -> list[Policy]:
    """All policies worth comparing. Without probabilities, only the logged policy can be judged."""
    return [LOGGED] if log.probabilities is None else [*TUNINGS, *range(log.n_arms), UNIFORM, LOGGED]


def name_of(log: Log, policy: Policy) -> str:
    """The name of a policy for tables."""
    if isinstance(policy, Tuning):
        return type(policy).__name__
    return policy if isinstance(policy, str) else f"always {log.arm_names[policy]}"


def policy_weights(log: Log, policy: Policy, losses: Floats, progress: Progress | None = None) -> Floats:
    """w_t = x_t[A_t] / p_t of every round."""
    if isinstance(policy, str) and policy == LOGGED:
        return np.ones(log.times.size)
    if log.probabilities is None:
        raise InvalidInput("only the logged policy can be judged without probabilities. Add a column 'probability'")
    if isinstance(policy, Tuning):
        return _learned(log, policy, losses, log.probabilities, progress) / log.probabilities
    if isinstance(policy, str):
        if policy != UNIFORM:
            raise InvalidInput(f"a policy is a tuning, the number of an arm, 'uniform' or 'logged', got {policy!r}")
        return np.asarray(1 / (log.n_arms * log.probabilities))
    arm = whole_number("the arm of a policy", policy, 0, log.n_arms - 1)
    return np.asarray((log.arms == arm) / log.probabilities)


def _learned(log: Log, tuning: Tuning, losses: Floats, probabilities: Floats, progress: Progress | None) -> Floats:
    """x_t[A_t] of a learner that gets every outcome of the log at the time it really came."""
    learner = FTRL(log.n_arms, tuning, seed=0)  # it never draws
    delays = delays_in_rounds(log.times, log.outcome_times)
    reports = _reports(log, delays)
    chances = np.empty(log.times.size)
    pending = next(reports, None)
    for t, (arm, probability) in enumerate(zip(log.arms.tolist(), probabilities.tolist(), strict=True)):
        while pending is not None and pending[0] <= t:
            learner.tell(pending[1] + 1, float(losses[pending[1]]))
            pending = next(reports, None)
        chances[t] = learner.distribution()[arm]
        learner.record(arm, probability)
        if progress is not None and (t + 1) % STRIDE == 0:
            progress.advance(STRIDE)
    if progress is not None:
        progress.advance(log.times.size % STRIDE)
    return chances


def _reports(log: Log, delays: Integers) -> Iterator[tuple[int, int]]:
    """All feedback in the order it came, each as the first round that can use it and the round it belongs to."""
    order = np.argsort(log.outcome_times, kind="stable")
    order = order[delays[order] < NEVER]
    return zip((order + delays[order] + 1).tolist(), order.tolist(), strict=True)


def _estimate(log: Log, policy: Policy, all_weights: Floats, within: OutcomeRange) -> PolicyEstimate:
    came = np.isfinite(log.outcomes)
    weights, values = all_weights[came], log.outcomes[came]
    n, mass = values.size, float(weights.sum())
    ips = snips = Interval(math.nan, math.nan, math.nan)
    effective, blocks = 0.0, np.zeros(min(n, MOST_BLOCKS))
    if mass > 0:
        products = weights * values
        ips = _interval(float(products.mean()), _error(products))
        ratio = float(products.sum()) / mass
        moves = weights * (values - ratio) / mass  # how far each row moves the ratio, to first order
        snips = clipped(_interval(ratio, float(np.sqrt((moves**2).sum()))), within)
        effective = mass**2 / float((weights**2).sum())
        blocks = np.asarray(np.bincount(np.arange(n) * blocks.size // n, moves), np.float64)
    mean_weight = float(all_weights.mean())  # of all rows. Missing outcomes say nothing about the probabilities
    chance = chance_of(all_weights)
    return PolicyEstimate(policy, name_of(log, policy), ips, snips, n, effective, mean_weight, chance, blocks)


def _error(values: Floats) -> float:
    """The standard error of a mean."""
    return float(values.std(ddof=1)) / math.sqrt(values.size) if values.size > 1 else math.nan


def clipped(interval: Interval, within: OutcomeRange) -> Interval:
    """The part of an interval that lies in the range of the outcomes. No mean lies outside, so it covers as often."""
    return Interval(*(min(max(bound, within.lowest), within.highest) for bound in interval))


def _interval(value: float, error: float) -> Interval:
    return Interval(value, value - NORMAL_95 * error, value + NORMAL_95 * error)
