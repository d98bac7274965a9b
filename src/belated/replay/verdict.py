"""Which policies a log can judge, and which of them is the best or may be, after looking at all of them.

All policies are judged on one log. So each is compared with the leader by paired differences. Block b of the log
contributes D_b to the lead d of the leader over another policy, and

    t = (d - M) / sqrt(sum of D_b^2 + M^2),   M = the largest |D_b|

M stands for one more block that speaks against the leader. A log can miss rare rows of large weight, above all if a
learner wrote it. Then d is too large and the sum too small.

A leader is named if t > 2.24 against every other policy. That is a two-sided level of 2.5%. No correction for their
number is needed, because the leader must win every comparison. docs/theory/best-policy.md has the proof. There are two
such questions, which policy is best and which single arm. So at most 5% of the logs name one that is no better than
another. Losing one comparison is easier. So a policy is counted out only beyond a limit for all pairs together.
"""

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from belated.learner.outcomes import OutcomeRange
from belated.replay.off_policy import LOGGED, PolicyEstimate

ENOUGH_OUTCOMES = 100  # effective ones. With fewer, an interval is a guess
FAR_FROM_1 = 0.1  # of a mean weight
LEVEL = 0.05  # of the logs may raise a false alarm about weights, or name a policy or an arm that is not the best
QUESTION = LEVEL / 2  # which policy is best, and which arm
NOTHING = 1e-9  # of the range of the outcomes. A smaller lead is a rounding error


class Verdict(NamedTuple):
    """What a log says about its policies. Each part keeps their order."""

    thin: tuple[PolicyEstimate, ...]  # too few effective outcomes
    off: tuple[PolicyEstimate, ...]  # the logged probabilities seem to be others than those really used
    judged: tuple[PolicyEstimate, ...]  # neither
    best: PolicyEstimate | None  # of those judged, if it stands
    best_arm: PolicyEstimate | None  # of the single arms judged, if it stands
    may_be_best: tuple[PolicyEstimate, ...]  # of those judged. Only the best, if there is one


def judge(estimates: Sequence[PolicyEstimate], outcomes: OutcomeRange) -> Verdict:
    """Sort the policies by what the log can say about them, and name a best if it stands."""
    thin = tuple(one for one in estimates if one.effective < ENOUGH_OUTCOMES)
    off = off_weights(estimates)
    unfit = {one.name for one in (*thin, *off)}
    judged = tuple(one for one in estimates if one.name not in unfit)
    arms = [one for one in judged if isinstance(one.policy, int)]
    if all(one.policy == LOGGED for one in judged) or (off and not arms):  # the rest has the same probabilities
        return Verdict(thin, off, judged, None, None, ())
    best, arm = _named(judged, outcomes), _named(arms, outcomes)
    beaten = [] if arm is None else [one.name for one in arms if one is not arm]
    may_be = tuple(one for one in _may_be_best(judged, outcomes) if one.name not in beaten)
    return Verdict(thin, off, judged, best, arm, may_be if best is None else (best,))


def _named(policies: Sequence[PolicyEstimate], outcomes: OutcomeRange) -> PolicyEstimate | None:
    """The leader, if it wins every comparison."""
    if len(policies) < 2:
        return None
    leader, leads = _leads(policies, outcomes)
    return leader if min(leads.values()) > _limit(QUESTION) else None


def _may_be_best(policies: Sequence[PolicyEstimate], outcomes: OutcomeRange) -> tuple[PolicyEstimate, ...]:
    """All policies but those that are worse than the leader, with all pairs looked at."""
    leader, leads = _leads(policies, outcomes)
    limit = _limit(QUESTION / math.comb(len(policies), 2))
    return tuple(one for one in policies if one is leader or leads[one.name] <= limit)


def _leads(policies: Sequence[PolicyEstimate], outcomes: OutcomeRange) -> tuple[PolicyEstimate, dict[str, float]]:
    """The policy with the best estimate, and its lead over each of the others."""
    sign = 1.0 if outcomes.better == "higher" else -1.0
    leader = max(policies, key=lambda one: sign * one.snips.value)
    return leader, {one.name: lead(leader, one, outcomes) for one in policies if one is not leader}


def _limit(level: float) -> float:
    """What a standard normal variable exceeds in size with this probability."""
    return NormalDist().inv_cdf(1 - level / 2)


def lead(leader: PolicyEstimate, other: PolicyEstimate, outcomes: OutcomeRange) -> float:
    """t, the lead of one policy over another in standard errors."""
    sign = 1.0 if outcomes.better == "higher" else -1.0
    ahead = sign * (leader.snips.value - other.snips.value)
    if ahead <= NOTHING * (outcomes.highest - outcomes.lowest):
        return 0.0
    gaps = leader.blocks - other.blocks
    largest = float(np.abs(gaps).max())
    error = math.sqrt(float((gaps**2).sum()) + largest**2)
    return (ahead - largest) / error if error > 0 else math.inf


def off_weights(estimates: Sequence[PolicyEstimate]) -> tuple[PolicyEstimate, ...]:
    """The policies whose weights say, beyond chance, that the logged probabilities are not the ones really used.

    All policies are looked at. So each of them pays for their number. A mean far below 1 needs enough outcomes, because
    the rows that are missing may just be rare.
    """
    tested = [one for one in estimates if one.policy != LOGGED]
    limit = LEVEL / max(len(tested), 1)
    clear = [one for one in tested if abs(one.mean_weight - 1) > FAR_FROM_1 and one.weight_chance < limit]
    return tuple(one for one in clear if one.mean_weight > 1 or one.effective >= ENOUGH_OUTCOMES)
