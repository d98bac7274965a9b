"""Play by the arms' means while the world stands still, and hand over when it does not (docs/theory/means.md).

stage MEANS    x_i in proportion to exp(-boldness n_i kl(mean_i, lowest mean)), and a small uniform share
stage SHADOW   the world moves: a fresh bold and a fresh careful policy, and the one ahead decides (shadow.py)
stage CAREFUL  the alarm has been raised: a fresh careful policy decides for ever, on plain estimates (ZS20)

A learner on means has three policies. The third one holds the means, and what is drawn before the alarm. Runs in the
reports hand over from MEANS to SHADOW, and the alarm hands over to CAREFUL. The alarm reads centred estimates of every
reported round, in the order of arrival:

    lead = sum of (loss_s - c_s) - min_i sum of (loss_s - c_s) / x_s[A_s] over the rounds s that drew i
    c_s  = the mean of the losses reported before round s was decided, or 0 with provisional losses

Without provisional losses nothing here depends on the arm of a round before its report. The proof needs that.
"""

import math

import numpy as np

from belated.arrays import Floats, Integers
from belated.kernels.argmin import LOSSES, V, X, Y, argmin
from belated.kernels.arithmetic import exp, lowest, total
from belated.kernels.compiling import Policies, Record, compiled
from belated.kernels.shadow import BOLD, CAREFUL, is_careful_ahead, measure

ON_MEANS = 2  # the third row of `policies`
MEANS_STAGE, SHADOW_STAGE, CAREFUL_STAGE = 0, 1, 2
# the rows of the policy on means. LOSSES holds the centred estimates of the alarm, and X the distribution.
COUNT, SUM, RECENT_COUNT, RECENT_SUM, MISSING = 2, 3, 4, 5, 6

GONE, TAKEN = -1, -2  # for the arm of an earlier decision: it was retired, or the decision waits no more

FLOOR = 0.1  # every arm has at least FLOOR / sqrt(k t)
DOUBT = 0.05  # and more by so much for each sqrt(k t) of the lead
ALARM = 10.0  # times sqrt(k t), which the lead may be by chance
RUN = 16.0  # reports in a run
NEUTRAL = 2.0  # reports of the average arm that every mean includes
RESET = 5.0  # standard deviations between an arm's recent and its earlier reports
WINDOW, WAITS, FEWEST = (
    100.0,
    4.0,
    10.0,
)  # recent reports, at least so many times those missing, and to be judged at all
SURE = 4.0  # a distribution below SURE / t of its own age does not centre its estimates
FARTHEST = 600.0  # x = e^-600: nothing smaller is ever drawn

MEANS = np.dtype(
    [
        ("boldness", np.float64),
        ("scale", np.float64),  # the careful beta is scale sqrt(D_t)
        ("provisional", np.float64),  # the loss that an open decision counts with, or -1 if it counts with none
        ("stage", np.int64),
        ("leader", np.int64),  # the policy that decides: ON_MEANS, BOLD or CAREFUL
        ("is_moving", np.int64),  # 1 once the runs have been too long
        ("is_over", np.int64),  # 1 once the lead has been beyond what is allowed
        ("start", np.int64),  # the stage began after this round,
        ("start_backlog", np.int64),  # with this D_t
        ("alpha", np.float64),  # the rates that are played, 0 in the stage MEANS
        ("beta", np.float64),
        ("centres", np.float64),  # the sum of c_s over the reported rounds
        ("lowest", np.float64),  # the lowest centred estimate
        ("lead", np.float64),  # what the reports show about the regret, up to the one that raises the alarm
        ("run", np.float64),  # the decayed sum of the last residuals
        ("products", np.float64),  # the sum of residual times run
        ("squares", np.float64),  # the sum of their squares
        ("told", np.int64),  # reports of rounds that were not given up before
        ("known", np.int64),  # those of them in the lead
        ("settled", np.int64),  # those that the last solve knew
    ]
)


@compiled
def has_means(policies: Policies) -> bool:
    """Whether there is a policy on means beside the bold and the careful one."""
    return bool(policies.shape[0] > ON_MEANS)


@compiled
def centre(clock: Record) -> float:
    """c_s for the decision that is made now."""
    if clock.means.provisional >= 0:
        return 0.0
    return _average(clock)


@compiled
def _average(clock: Record) -> float:
    """The mean of the losses reported so far."""
    return float(clock.suffered / clock.reported) if clock.reported > 0 else 0.5


@compiled
def _count(means: Floats, i: int, provisional: float) -> tuple[float, float]:
    """The reports of an arm and the sum of their losses. With a provisional loss, missing ones count too."""
    if provisional >= 0:
        return means[COUNT, i] + means[MISSING, i], means[SUM, i] + provisional * means[MISSING, i]
    return means[COUNT, i], means[SUM, i]


@compiled
def solve_means(means: Floats, boldness: float, provisional: float, lead: float, t: int) -> None:
    """Write the distribution of round t on the means into its row X.

    mean_i = (sum_i + 2 neutral) / (count_i + 2),  neutral = the average of the arms' own means
    x_i ~ exp(-boldness (count_i + 2) kl_i),  kl_i = (mean_i - q)^2 / 2u(1 - u),  q = min mean,  u = (2q + mean_i) / 3

    An arm that has never reported gets no more than the average of those that have.
    """
    x = means[X]
    k = x.shape[0]
    seen = 0
    for i in range(k):
        count, loss = _count(means, i, provisional)
        x[i] = loss / max(count, 1.0)
        seen += count > 0
    neutral = total(x) / seen if seen > 0 else 0.5
    for i in range(k):
        count, loss = _count(means, i, provisional)
        x[i] = (loss + NEUTRAL * neutral) / (count + NEUTRAL)
    q = lowest(x)
    for i in range(k):
        count, _ = _count(means, i, provisional)
        u = (2 * q + x[i]) / 3
        kl = (x[i] - q) * (x[i] - q) / (2 * u * (1 - u) + 1e-12)
        x[i] = exp(-min(FARTHEST, boldness * (count + NEUTRAL) * kl))
    if provisional < 0 and 0 < seen < k:
        heard = 0.0
        for i in range(k):
            heard += x[i] if means[COUNT, i] > 0 else 0.0
        for i in range(k):
            if means[COUNT, i] == 0:
                x[i] = min(x[i], heard / seen)
    mass = total(x)
    _mix(x, x, mass, lead, t)


@compiled
def _mix(x: Floats, policy: Floats, mass: float, lead: float, t: int) -> None:
    """x = (1 - share) policy / mass + share / k, so that no arm has less than FLOOR / sqrt(k t).

    A lead says that another arm may be better. Then all are drawn more often, before an alarm is raised.
    """
    k = x.shape[0]
    share = min(1.0, FLOOR * math.sqrt(k / t) + DOUBT * max(0.0, lead) / t)
    for i in range(k):
        x[i] = (1 - share) / mass * policy[i] + share / k


@compiled
def _lowest_estimate(means: Floats) -> float:
    best: float = means[LOSSES, 0]
    for i in range(1, means.shape[1]):
        best = min(best, means[LOSSES, i])
    return best


@compiled
def allowance(n_arms: int, t: int, backlog: int) -> float:
    """What the lead may be after t decisions, the last with the backlog D_t."""
    return ALARM * math.sqrt(n_arms * t) + math.sqrt(backlog * math.log(n_arms)) + n_arms


@compiled
def _add_to_lead(
    clock: Record, means: Floats, arm: int, probability: float, centred: float, loss: float, allowed: float
) -> None:
    """Take a report into the lead, unless it is beyond what is allowed already. The alarm is raised when it is."""
    state, before = clock.means, means[LOSSES, arm]
    means[LOSSES, arm] += (loss - centred) / probability
    state.centres += centred
    if means[LOSSES, arm] <= state.lowest:
        state.lowest = means[LOSSES, arm]
    elif before == state.lowest:
        state.lowest = _lowest_estimate(means)
    if not state.is_over:
        state.lead = clock.suffered + loss - state.centres - state.lowest
        state.known = state.told + 1
        state.is_over = state.lead > allowed


@compiled
def _begin(clock: Record, policies: Policies, stage: int, t: int, backlog: int) -> None:
    """Begin a stage in round t with a fresh bold and a fresh careful policy."""
    state, shadow = clock.means, clock.shadow
    state.stage = stage
    state.start = t - 1
    state.start_backlog = backlog
    shadow.savings = 0.0
    shadow.squares = 0.0
    for j in range(ON_MEANS):
        for i in range(policies.shape[2]):
            policies[j, LOSSES, i] = 0.0
            policies[j, V, i] = 0.5 * math.log(policies.shape[2])
            policies[j, Y, i] = math.sqrt(policies.shape[2])


@compiled
def _lift(policies: Policies) -> None:
    """Make the lowest estimate 0. Centred estimates may be negative, and only their differences matter."""
    best = policies[CAREFUL, LOSSES, 0]
    for i in range(policies.shape[2]):
        best = min(best, policies[CAREFUL, LOSSES, i])
    if best < 0:
        for j in range(ON_MEANS):
            for i in range(policies.shape[2]):
                policies[j, LOSSES, i] -= best


@compiled
def choose_stage(clock: Record, policies: Policies, t: int, backlog: int) -> None:
    """Solve for round t, whose backlog is D_t, and choose the stage and the policy that decides.

    A stage after the first plays alpha = sqrt(rounds of the stage) and beta = scale sqrt(what D_t has grown by).
    """
    state, shadow = clock.means, clock.shadow
    if state.stage < CAREFUL_STAGE and state.is_over:
        shadow.alarm = 1
        _begin(clock, policies, CAREFUL_STAGE, t, backlog)
    elif state.stage == MEANS_STAGE and state.is_moving:
        _begin(clock, policies, SHADOW_STAGE, t, backlog)
    shadow.played = ON_MEANS
    state.settled = state.told
    if state.stage == MEANS_STAGE:
        state.leader = ON_MEANS
        lead = state.lead if state.provisional < 0 else 0.0  # a report of what was assumed changes nothing
        solve_means(policies[ON_MEANS], state.boldness, state.provisional, lead, t)
        return
    state.alpha = math.sqrt(t - state.start)
    state.beta = state.scale * math.sqrt(backlog - state.start_backlog)
    _lift(policies)
    argmin(policies[CAREFUL], state.alpha, state.beta, clock.solves)
    if state.stage == CAREFUL_STAGE or state.beta == 0:
        policies[BOLD, X : Y + 1] = policies[CAREFUL, X : Y + 1]
    else:
        argmin(policies[BOLD], state.alpha, 0.0, clock.solves)
    if state.stage == CAREFUL_STAGE:
        shadow.played = CAREFUL
        state.leader = CAREFUL
        return
    state.leader = CAREFUL if is_careful_ahead(shadow) else BOLD
    leader = policies[state.leader, X]
    _mix(policies[ON_MEANS, X], leader, total(leader), state.lead, t)


@compiled
def _watch(clock: Record, means: Floats, arm: int, loss: float) -> None:
    """Add up products of neighbouring residuals. While the world stands still, one says nothing about the next.

    The world moves if  sum of products > (1 + 0.4 ln(1 + reports)) sqrt(16 + sum of their squares).
    A residual counts less while the arm has few reports, because its mean is then uncertain.
    """
    state, count = clock.means, means[COUNT, arm]
    expected = (means[SUM, arm] + 2 * _average(clock)) / (count + 2)
    residual = (loss - expected) * count / (count + 5)
    product = residual * state.run
    state.products += product
    state.squares += product * product
    state.run = state.run * (1 - 1 / RUN) + residual
    threshold = 1 + 0.4 * math.log(1.0 + clock.reported)
    if state.products > threshold * math.sqrt(16 + state.squares):
        state.is_moving = 1


@compiled
def remember(means: Floats, arm: int, loss: float, outstanding: int, can_forget: bool) -> None:
    """Take a report into an arm's mean. An arm forgets its earlier reports if the recent ones contradict them."""
    keep = 1 - 1 / (max(WINDOW, WAITS * outstanding) + 1)
    means[MISSING, arm] = max(0.0, means[MISSING, arm] - 1)
    means[COUNT, arm] += 1
    means[SUM, arm] += loss
    means[RECENT_COUNT, arm] = means[RECENT_COUNT, arm] * keep + 1
    means[RECENT_SUM, arm] = means[RECENT_SUM, arm] * keep + loss
    count, recent = means[COUNT, arm], means[RECENT_COUNT, arm]
    if not can_forget or recent < FEWEST or count <= 2 * recent:
        return
    earlier = count - recent
    gap = means[RECENT_SUM, arm] / recent - (means[SUM, arm] - means[RECENT_SUM, arm]) / earlier
    pooled = (means[SUM, arm] + 1) / (count + 2)
    if gap * gap > RESET * RESET * pooled * (1 - pooled) * (1 / earlier + 0.5 / recent):
        means[COUNT, arm] = recent
        means[SUM, arm] = means[RECENT_SUM, arm]


@compiled
def learn(
    clock: Record,
    policies: Policies,
    round: int,
    arm: int,
    probability: float,
    advantage: float,
    centred: float,
    loss: float,
    t: int,
    backlog: int,
) -> None:
    """Take in the report of a round that was decided with this probability, bold advantage and centre.

    t decisions have been made, the last with the backlog D_t.
    """
    state, means = clock.means, policies[ON_MEANS]
    _add_to_lead(clock, means, arm, probability, centred, loss, allowance(means.shape[1], t, backlog))
    if state.stage > MEANS_STAGE and round > state.start:
        is_sure = state.stage == SHADOW_STAGE and probability * (round - state.start) >= SURE
        estimate = (loss - centred if is_sure else loss) / probability
        policies[BOLD, LOSSES, arm] += estimate
        policies[CAREFUL, LOSSES, arm] += estimate
        measure(clock, loss, advantage)
    if state.provisional < 0:  # with it, early reports are the successes, which would look like a change
        _watch(clock, means, arm, loss)
    remember(means, arm, loss, t - clock.reported, state.provisional < 0)
    state.told += 1


@compiled
def learn_earlier(policies: Policies, arms: Integers, row: int, loss: float) -> None:
    """Take in the report of a round that was decided before the arms changed, and take its arm out of `arms`."""
    arm = arms[row]
    arms[row] = TAKEN
    if has_means(policies) and arm != GONE:
        remember(policies[ON_MEANS], arm, loss, 0, False)  # noqa: FBT003


@compiled
def relearn_earlier(policies: Policies, arm: int, change: float, new_reports: int) -> None:
    """Change an arm's mean as `relearn` does. An arm may have forgotten the round, so the sum is cut off.

    If a report changes, the recent ones begin anew, because it may be one of them. Else they would contradict the sum.
    """
    means = policies[ON_MEANS]
    if new_reports == 0:
        means[RECENT_COUNT, arm] = means[RECENT_SUM, arm] = 0.0
    means[MISSING, arm] = max(0.0, means[MISSING, arm] - new_reports)
    means[COUNT, arm] += new_reports
    means[SUM, arm] = min(means[COUNT, arm], max(0.0, means[SUM, arm] + change))


@compiled
def relearn(
    clock: Record, policies: Policies, round: int, arm: int, probability: float, change: float, new_reports: int
) -> None:
    """Change the loss of a reported round, or take in that of a round that was given up (new_reports = 1)."""
    state = clock.means
    policies[ON_MEANS, LOSSES, arm] += change / probability
    state.lowest = _lowest_estimate(policies[ON_MEANS])
    if not state.is_over:
        state.lead = clock.suffered + change - state.centres - state.lowest
        state.is_over = state.lead > allowance(policies.shape[2], clock.round, clock.backlog)
    relearn_earlier(policies, arm, change, new_reports)
    if state.stage > MEANS_STAGE and round > state.start:
        policies[BOLD, LOSSES, arm] += change / probability
        policies[CAREFUL, LOSSES, arm] += change / probability
