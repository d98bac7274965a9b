"""Play by the arms' means while the world stands still, and hand over when it does not (docs/theory/means.md).

stage MEANS    x_i in proportion to exp(-boldness n_i kl(mean_i, lowest mean)), and a small uniform share
stage SHADOW   the world moves: a fresh bold and a fresh careful policy, and the one ahead decides (shadow.py)
stage CAREFUL  the alarm has been raised: a fresh careful policy decides for ever, on plain estimates (ZS20)

A learner on means has three policies. The third one holds the means, and what is drawn before the alarm. Runs in the
reports hand over from MEANS to SHADOW, and the alarm hands over to CAREFUL. The alarm reads centred estimates of every
reported round, in the order of arrival:

    lead = sum of (loss_s - c_s) - min_i sum of (loss_s - c_s) / x_s[A_s] over the rounds s that drew i
    c_s  = the mean of the losses reported before round s was decided

Without provisional losses nothing here depends on the arm of a round before its report (docs/theory/means.md).
"""

import math

import numpy as np

from belated.arrays import Floats, Integers
from belated.kernels.argmin import LOSSES, V, X, Y, argmin
from belated.kernels.arithmetic import exp, lowest, total
from belated.kernels.compiling import Policies, Record, Records, compiled
from belated.kernels.shadow import BOLD, CAREFUL, copy_solution, is_careful_ahead, measure

ON_MEANS = 2  # the third row of `policies`
MEANS_STAGE, SHADOW_STAGE, CAREFUL_STAGE = 0, 1, 2
# the rows of the policy on means. LOSSES holds the centred estimates of the alarm, and X the distribution.
COUNT, SUM, MISSING = 2, 3, 4
LOST = 7  # what its rounds that were given up could add to the lead (any_delays.py)
DRAWN, MARK = 5, 6  # the arm's expected draws since its last report, and all reports when they became too many

GONE, TAKEN = -1, -2  # for the arm of an earlier decision: it was retired, or the decision waits no more

FLOOR = 0.1  # every arm has at least FLOOR / sqrt(k t)
DOUBT = 0.05  # and more by so much for each sqrt(k t) of the lead
ALARM = 10.0  # times sqrt(k t), which the lead may be by chance
RUN = 24.0  # reports in a run
RUNS, GROWTH, CALM, YOUNG = 1.0, 0.4, 4.0, 5.0  # the threshold of the runs, and the reports that make an arm known
NEUTRAL = 2.0  # reports of the average arm that every mean includes
QUIET, TIMES, OTHERS = 100.0, 2.0, 2  # draws without a report, in longest delays, and then reports of others
FADES = 1 / 500  # of the longest delay with every report
SURE = 8.0  # an arm below SURE / t of the stage's own age does not centre its estimates
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
        ("lost", np.float64),  # what rounds that were given up could add to the lead of any other arm
        ("over_open", np.float64),  # what open rounds could have added when the lead was beyond what is allowed,
        ("over_round", np.int64),  # after so many decisions
        ("longest", np.float64),  # the longest delay of a report, in rounds. It fades with every report
        ("solved", np.int64),  # the round of the last solve
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
def chance(clock: Record, arm: int, x: float) -> float:
    """The probability with which an arm is drawn, where `x` is that of the tuning (learner/mixing.py)."""
    more = clock.control_share if arm == clock.control else 0.0
    return float(clock.even + (1 - clock.mixed) * x + more)


@compiled
def centre(clock: Record) -> float:
    """c_s for the decision that is made now. The mean of the losses reported so far."""
    return float(clock.suffered / clock.reported) if clock.reported > 0 else 0.5


@compiled
def _patience(clock: Record) -> float:
    """How many draws without a report are too many."""
    return float(QUIET + TIMES * clock.means.longest)


@compiled
def is_silent(clock: Record, means: Floats, i: int) -> bool:
    """Whether an arm has never reported, or has stopped while others go on.

    It has stopped if it was drawn, as far as the probabilities tell, 100 times and twice the longest delay since its
    last report, and others have reported twice after that. With a provisional loss no arm is silent.
    """
    if clock.means.provisional >= 0:
        return False
    has_stopped = means[DRAWN, i] > _patience(clock) and clock.reported - means[MARK, i] >= OTHERS
    return bool(means[COUNT, i] == 0 or has_stopped)


@compiled
def _hear(clock: Record, policies: Policies, arm: int, reported: int, t: int) -> float:
    """Note that an arm has reported, when there were so many reports and t decisions. Returns its draws until then.

    The draws since the last solve are counted at the next one. Those up to now are taken off in advance.
    """
    means = policies[ON_MEANS]
    since_solve = (t - clock.means.solved + 1) * chance(clock, arm, policies[clock.shadow.played, X, arm])
    draws: float = means[DRAWN, arm] + since_solve
    means[DRAWN, arm] = -since_solve
    means[MARK, arm] = reported
    return draws


@compiled
def _count_draws(clock: Record, means: Floats, x: Floats, t: int) -> None:
    """Before the solve of round t, count the draws since the last one by their probabilities."""
    draws, patience, reported = t - clock.means.solved, _patience(clock), clock.reported
    even, own, share, control = clock.even, 1 - clock.mixed, clock.control_share, clock.control
    clock.means.solved = t
    for i in range(x.shape[0]):  # as `chance` has it, with its fields read once
        means[DRAWN, i] += draws * (even + own * x[i] + (share if i == control else 0.0))
        if means[DRAWN, i] <= patience:
            means[MARK, i] = reported


@compiled
def _count(clock: Record, means: Floats, i: int) -> tuple[float, float]:
    """The reports of an arm and the sum of their losses. With a provisional loss, missing ones count too."""
    provisional = clock.means.provisional
    if provisional >= 0:
        return means[COUNT, i] + means[MISSING, i], means[SUM, i] + provisional * means[MISSING, i]
    return (0.0, 0.0) if is_silent(clock, means, i) else (means[COUNT, i], means[SUM, i])


@compiled
def solve_means(clock: Record, means: Floats) -> None:
    """Write the weights of the arms by their means into the row X.

    mean_i = (sum_i + 2 neutral) / (count_i + 2),  neutral = the average of the arms' own means
    x_i ~ exp(-boldness (count_i + 2) kl_i),  kl_i = (mean_i - q)^2 / 2u(1 - u),  q = min mean,  u = (2q + mean_i) / 3

    The reports of a silent arm do not count.
    """
    x = means[X]
    k = x.shape[0]
    seen = 0
    for i in range(k):
        count, loss = _count(clock, means, i)
        x[i] = loss / max(count, 1.0)
        seen += count > 0
    neutral = total(x) / seen if seen > 0 else 0.5
    for i in range(k):
        count, loss = _count(clock, means, i)
        x[i] = (loss + NEUTRAL * neutral) / (count + NEUTRAL)
    q = lowest(x)
    for i in range(k):
        count, _ = _count(clock, means, i)
        u = (2 * q + x[i]) / 3
        kl = (x[i] - q) * (x[i] - q) / (2 * u * (1 - u) + 1e-12)
        x[i] = exp(-min(FARTHEST, clock.means.boldness * (count + NEUTRAL) * kl))


@compiled
def _hush(clock: Record, means: Floats) -> None:
    """Give a silent arm no more than the average of the others."""
    x, heard, seen = means[X], 0.0, 0
    for i in range(x.shape[0]):
        if not is_silent(clock, means, i):
            heard += x[i]
            seen += 1
    if 0 < seen < x.shape[0]:
        for i in range(x.shape[0]):
            if is_silent(clock, means, i):
                x[i] = min(x[i], heard / seen)


@compiled
def _mix(clock: Record, means: Floats, t: int) -> None:
    """x = (1 - share) x / mass + share / k, so that no arm has less than FLOOR / sqrt(k t).

    A lead says that another arm may be better. Then all are drawn more often, before an alarm is raised. With a
    provisional loss a report of what was assumed must change nothing, so the lead does not count.
    """
    _hush(clock, means)
    x, lead = means[X], clock.means.lead if clock.means.provisional < 0 else 0.0
    k, mass = x.shape[0], total(x)
    share = min(1.0, FLOOR * math.sqrt(k / t) + DOUBT * max(0.0, lead) / t)
    for i in range(k):
        x[i] = (1 - share) / mass * x[i] + share / k


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
    means, state.settled = policies[ON_MEANS], state.told
    _count_draws(clock, means, policies[shadow.played, X], t)
    shadow.played = ON_MEANS
    if state.stage == MEANS_STAGE:
        state.leader = ON_MEANS
        solve_means(clock, means)
        _mix(clock, means, t)
        return
    state.alpha = math.sqrt(t - state.start)
    state.beta = state.scale * math.sqrt(backlog - state.start_backlog)
    _lift(policies)
    argmin(policies[CAREFUL], state.alpha, state.beta, clock.solves)
    if state.stage == CAREFUL_STAGE or state.beta == 0:
        copy_solution(policies, CAREFUL, BOLD)
    else:
        argmin(policies[BOLD], state.alpha, 0.0, clock.solves)
    if state.stage == CAREFUL_STAGE:
        shadow.played = CAREFUL
        state.leader = CAREFUL
        return
    state.leader = CAREFUL if is_careful_ahead(shadow) else BOLD
    means[X] = policies[state.leader, X]
    _mix(clock, means, t)


@compiled
def _watch(clock: Record, means: Floats, arm: int, loss: float) -> None:
    """Add up products of neighbouring residuals. While the world stands still, one says nothing about the next.

    The world moves if  sum of products > (1 + 0.4 ln(1 + reports)) sqrt(4 + sum of their squares).
    A residual counts less while the arm has few reports, because its mean is then uncertain.
    """
    state, count = clock.means, means[COUNT, arm]
    expected = (means[SUM, arm] + NEUTRAL * centre(clock)) / (count + NEUTRAL)
    residual = (loss - expected) * count / (count + YOUNG)
    product = residual * state.run
    state.products += product
    state.squares += product * product
    state.run = state.run * (1 - 1 / RUN) + residual
    threshold = RUNS + GROWTH * math.log(1.0 + clock.reported)
    if state.products > threshold * math.sqrt(CALM + state.squares):
        state.is_moving = 1


@compiled
def _remember(means: Floats, arm: int, loss: float) -> None:
    """Take a report into an arm's mean."""
    means[MISSING, arm] = max(0.0, means[MISSING, arm] - 1)
    means[COUNT, arm] += 1
    means[SUM, arm] += loss


@compiled
def _learn_in_stage(
    clock: Record, policies: Policies, age: int, arm: int, probability: float, centred: float, loss: float
) -> None:
    """Add the estimate of a round of this age to those of the bold and the careful policy.

    stage SHADOW   lhat_i - c_s = [A_s = i] (loss - c_s) / x_s    if x_i age >= SURE
                                = [A_s = i] loss / x_s - c_s      else, because a rare arm would jump down by c_s / x_s
    stage CAREFUL  lhat_i       = [A_s = i] loss / x_s
    """
    is_centred = clock.means.stage == SHADOW_STAGE
    is_sure = is_centred and probability * age >= SURE
    estimate = (loss - centred if is_sure else loss) / probability
    for j in range(ON_MEANS):
        policies[j, LOSSES, arm] += estimate
    if is_centred:
        for i in range(policies.shape[2]):  # by the probabilities of now, because those of then are not kept
            if chance(clock, i, policies[ON_MEANS, X, i]) * age < SURE:
                policies[BOLD, LOSSES, i] -= centred
                policies[CAREFUL, LOSSES, i] -= centred


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
    allowed = allowance(means.shape[1], t, backlog) + clock.mix_charge
    _add_to_lead(clock, means, arm, probability, centred, loss, allowed)
    if state.stage > MEANS_STAGE and round > state.start:
        _learn_in_stage(clock, policies, round - state.start, arm, probability, centred, loss)
        measure(clock, loss, advantage)
    if state.provisional < 0:  # with it, early reports are the successes, which would look like a change
        _watch(clock, means, arm, loss)
    _remember(means, arm, loss)
    _hear(clock, policies, arm, clock.reported + 1, t)
    state.longest = max(float(t - round), state.longest * (1 - FADES))
    state.told += 1


@compiled
def _hear_late(clock: Record, policies: Policies, arm: int, reported: int) -> None:
    """Note a report whose delay is not known. So the draws until it came are taken for the delay."""
    draws = _hear(clock, policies, arm, reported, clock.round)
    clock.means.longest = max(draws, clock.means.longest * (1 - FADES))


@compiled
def learn_earlier(clocks: Records, policies: Policies, arms: Integers, row: int, loss: float) -> None:
    """Take in the report of a round that was decided before the arms changed, and take its arm out of `arms`."""
    arm = arms[row]
    arms[row] = TAKEN
    if has_means(policies) and arm != GONE:
        _remember(policies[ON_MEANS], arm, loss)
        _hear_late(clocks[0], policies, arm, clocks[0].reported)


@compiled
def relearn_earlier(clock: Record, policies: Policies, arm: int, change: float, new_reports: int) -> None:
    """Change an arm's mean by an outcome that was decided before the arms changed."""
    if new_reports > 0:
        _hear_late(clock, policies, arm, clock.reported)
    _amend_mean(policies[ON_MEANS], arm, change, new_reports)


@compiled
def _amend_mean(means: Floats, arm: int, change: float, new_reports: int) -> None:
    means[MISSING, arm] = max(0.0, means[MISSING, arm] - new_reports)
    means[COUNT, arm] += new_reports
    means[SUM, arm] = min(means[COUNT, arm], max(0.0, means[SUM, arm] + change))


@compiled
def relearn(
    clock: Record, policies: Policies, round: int, arm: int, probability: float, change: float, new_reports: int
) -> None:
    """Change the loss of a reported round, or take in that of a round that was given up (new_reports = 1).

    The centre of a round that was given up is not known any more. The present one is as good.
    """
    state, is_new = clock.means, new_reports > 0
    centred = centre(clock) if is_new else 0.0
    state.centres += centred
    policies[ON_MEANS, LOSSES, arm] += (change - centred) / probability
    state.lowest = _lowest_estimate(policies[ON_MEANS])
    if not state.is_over:
        state.lead = clock.suffered + change - state.centres - state.lowest
        state.is_over = state.lead > allowance(policies.shape[2], clock.round, clock.backlog) + clock.mix_charge
    if state.stage > MEANS_STAGE and round > state.start:
        if is_new:
            age = min(round, clock.round) - state.start
            _learn_in_stage(clock, policies, age, arm, probability, centred, change)
        else:
            policies[BOLD, LOSSES, arm] += change / probability
            policies[CAREFUL, LOSSES, arm] += change / probability
    if is_new:
        _hear_late(clock, policies, arm, clock.reported + 1)
    _amend_mean(policies[ON_MEANS], arm, change, new_reports)
