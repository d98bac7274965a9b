"""The clock of a game. It has what is outstanding, what the tuning counts, and what the certificate charges.

The `ledger` has one row for every decision that waits for its report, oldest first. The tuning stops counting the
oldest decision first (ZS20, Algorithm 2). The charge of the oldest also reaches 1 first. So each needs only a frontier
in the ledger, and every round costs O(1) amortised.

A report takes effect at the next solve. A row reported since the last solve is `late`. It still counts, because the
distribution in force does not know the report. The solve then takes all late rows out at once.

The charge of round s while it waits (docs/theory/certificate.md):

    min{ 1, k / (alpha_s sqrt(k) + 2 beta_s) + sum_{t > s} step_t }  =  min{ 1, drift - base_s }     (charges.py)
"""

import math

import numpy as np

from belated.arrays import Floats, Integers
from belated.kernels.any_delays import close_lead, close_round, lose, open_round
from belated.kernels.argmin import LOSSES
from belated.kernels.bets import bet
from belated.kernels.charges import stability
from belated.kernels.compiling import Policies, Record, Records, compiled
from belated.kernels.means import MEANS, MISSING, ON_MEANS, centre, has_means, learn, relearn
from belated.kernels.shadow import SHADOW, measure

CLOCK = np.dtype(
    [
        ("round", np.int64),  # t: decisions made
        ("left", np.int64),  # decisions the present distribution may still serve
        ("solves", np.int64),  # distributions computed
        ("outstanding", np.int64),  # decisions without feedback
        ("counted", np.int64),  # o_t: open rounds the tuning still waits for, late ones included
        ("backlog", np.int64),  # D_t: sum of the counts so far
        ("skipped", np.int64),  # the newest round the tuning has stopped waiting for
        ("reported", np.int64),  # reports taken in, those thrown away left out
        ("suffered", np.float64),  # the sum of their losses
        ("alpha", np.float64),  # the rates of the last solve; with a shadow, its careful ones
        ("beta", np.float64),
        ("drift", np.float64),  # sum_t step_t
        ("charge", np.float64),  # what closed and capped rounds have cost
        ("charged", np.int64),  # open rounds whose charge still grows
        ("base", np.float64),  # the sum of their bases
        ("capped", np.int64),  # the newest round whose charge has reached 1
        ("late_counted", np.int64),  # the late rounds' share of counted, charged and base
        ("late_charged", np.int64),
        ("late_base", np.float64),
        ("peak_uncharged", np.float64),  # the largest sum of (1 - charge) over all open rounds so far
        ("any_charge", np.float64),  # what the rounds have cost for any delays (any_delays.py)
        ("any_step", np.float64),  # what the next decision pays for the missing rounds
        ("any_start", np.int64),  # counted from the round after this one
        ("even", np.float64),  # learner/mixing.py: arm i is drawn with even + (1 - mixed) x_i
        ("mixed", np.float64),
        ("control_share", np.float64),  # and the control with so much more
        ("control", np.int64),
        ("mix_cost", np.float64),  # what a decision loses by that at most
        ("mix_charge", np.float64),  # what all have lost by it at most
        ("shadow", SHADOW),  # all zero without a shadow
        ("means", MEANS),  # all zero without a policy on means
        ("rows", np.int64),  # rows of the ledger in use
        ("next_skip", np.int64),  # the first row that may still be counted
        ("next_cap", np.int64),  # the first row whose charge may still grow
    ]
)
LEDGER = np.dtype(
    [
        ("round", np.int64),
        ("arm", np.int64),
        ("probability", np.float64),  # > 0: waits; -j: told when j distributions had been computed; 0: discarded
        ("base", np.float64),  # drift at its round minus its own stability term
        ("bold_advantage", np.float64),  # shadow.py; 0 without a shadow
        ("centre", np.float64),  # means.py; 0 without a policy on means
    ]
)


@compiled
def _is_open(row: Record, clock: Record) -> bool:
    return bool(row.probability > 0 or (row.probability < 0 and row.probability == -clock.solves))


@compiled
def _is_late(row: Record) -> bool:
    return bool(row.probability < 0)


@compiled
def settle(clock: Record) -> None:
    """Before a solve, take the late rounds out of the counts and make their charges final."""
    clock.counted -= clock.late_counted
    clock.charged -= clock.late_charged
    clock.charge += clock.late_charged * clock.drift - clock.late_base
    clock.base -= clock.late_base
    if clock.charged == 0:
        clock.base = 0.0  # not the rounding errors of a long history
    clock.late_counted = 0
    clock.late_charged = 0
    clock.late_base = 0.0


@compiled
def count(clock: Record, ledger: Records, patience: float, missed: int) -> None:
    """Begin a round (ZS20, Algorithm 2). `missed` more are outstanding for it than for the learner.

    D_t = D_{t-1} + o_t. If t - s > patience sqrt(D_t), the oldest open round s counts no more from the next round on.
    """
    clock.round += 1
    clock.backlog += clock.counted + missed
    if clock.counted == 0 or patience == np.inf:
        return
    while clock.next_skip < clock.rows - 1 and not _is_open(ledger[clock.next_skip], clock):
        clock.next_skip += 1
    oldest = ledger[clock.next_skip]
    if clock.round - oldest.round > patience * math.sqrt(clock.backlog):
        clock.skipped = oldest.round
        clock.counted -= 1
        clock.late_counted -= _is_late(oldest)
        clock.next_skip += 1


@compiled
def enter(
    clock: Record, ledger: Records, policies: Policies, arm: int, probability: float, advantage: float, cost: float
) -> None:
    """Write the decision of the present round into the ledger and charge the round to the certificate."""
    clock.drift += cost
    row = ledger[clock.rows]
    row.round = clock.round
    row.arm = arm
    row.probability = probability
    row.bold_advantage = advantage
    row.base = clock.drift - stability(policies, clock.alpha, clock.beta, clock.mixed)
    clock.charge += clock.mix_cost
    clock.mix_charge += clock.mix_cost
    if has_means(policies):
        row.centre = centre(clock)
        policies[ON_MEANS, MISSING, arm] += 1
    open_round(clock, policies, arm, probability)
    clock.rows += 1
    clock.outstanding += 1
    clock.counted += 1
    clock.charged += 1
    clock.base += row.base
    while clock.charged > 0 and clock.next_cap < clock.rows:
        oldest = ledger[clock.next_cap]
        if _is_open(oldest, clock):
            if clock.drift - oldest.base < 1:
                break
            clock.capped = oldest.round
            clock.charge += 1
            clock.charged -= 1
            clock.base -= oldest.base
            if _is_late(oldest):
                clock.late_charged -= 1
                clock.late_base -= oldest.base
        clock.next_cap += 1
    clock.peak_uncharged = max(clock.peak_uncharged, clock.charged * (1 - clock.drift) + clock.base)


@compiled
def raise_charges(clocks: Records, ledger: Records, policies: Policies, mixed: float) -> None:
    """Before this share is mixed in, let a waiting round cost at least what a new one would cost by itself.

    A larger share makes that more. Without this, new rounds would reach 1 before older ones (docs/theory/mixing.md).
    """
    clock = clocks[0]
    highest = clock.drift - stability(policies, clock.alpha, clock.beta, mixed)
    clock.base = clock.late_base = 0.0
    for i in range(clock.next_cap, clock.rows):
        row = ledger[i]
        if _is_open(row, clock):
            row.base = min(row.base, highest)
            clock.base += row.base
            if _is_late(row):
                clock.late_base += row.base


@compiled
def _find(ledger: Records, rows: int, round: int) -> int:
    """The row of a round, or -1."""
    low, high = 0, rows
    while low < high:
        middle = (low + high) // 2
        if ledger[middle].round < round:
            low = middle + 1
        else:
            high = middle
    return low if low < rows and ledger[low].round == round else -1


@compiled
def _drop(clock: Record, row: Record) -> None:
    """Take a waiting round out of the counts without using its loss. It costs 1."""
    clock.outstanding -= 1
    if row.round > clock.skipped:
        clock.counted -= 1
    if row.round > clock.capped:
        clock.charge += 1
        clock.charged -= 1
        clock.base -= row.base
    row.probability = 0.0


@compiled
def give_up(clocks: Records, ledger: Records, policies: Policies, round: int) -> bool:
    """Stop waiting for a round. Returns False and changes nothing if it was not waiting."""
    clock = clocks[0]
    found = _find(ledger, clock.rows, round)
    if found < 0 or not ledger[found].probability > 0:
        return False
    if has_means(policies):
        lose(clock, policies, ledger[found])
    _drop(clock, ledger[found])
    return True


@compiled
def report(
    clocks: Records, ledger: Records, policies: Policies, bets: Floats, discard: bool, round: int, loss: float
) -> bool:
    """Take a report and add loss / probability AT ACTION TIME to the arm's estimate.

    Returns False and changes nothing if the round was not waiting.
    """
    clock = clocks[0]
    found = _find(ledger, clock.rows, round)
    if found < 0 or not ledger[found].probability > 0:
        return False
    row = ledger[found]
    if discard and round <= clock.skipped:
        _drop(clock, row)
        return True
    clock.outstanding -= 1
    bet(bets, row.arm, row.probability, loss, 1)
    close_round(clock, policies, round, row.arm, row.probability)
    if has_means(policies):
        drawn, was_over = (row.arm, row.probability, row.bold_advantage, row.centre), clock.means.is_over
        learn(clock, policies, round, *drawn, loss, clock.round, clock.backlog)
        row.probability = 0.0
        if clock.means.is_over > was_over:
            close_lead(clock, ledger, policies)
    else:
        for i in range(policies.shape[0]):
            policies[i, LOSSES, row.arm] += loss / row.probability
        measure(clock, loss, row.bold_advantage)
    clock.reported += 1
    clock.suffered += loss
    row.probability = -float(clock.solves)
    if round > clock.skipped:
        clock.late_counted += 1
    if round > clock.capped:
        clock.late_charged += 1
        clock.late_base += row.base
    return True


WAITS, WRONG_ARM, IMPOSSIBLE = 1, 2, 3
NO_LOSS = -1.0
SLACK = 1e-9  # for rounding


@compiled
def amend(
    clocks: Records,
    ledger: Records,
    policies: Policies,
    bets: Floats,
    round: int,
    arm: int,
    probability: float,
    old: float,
    new: float,
    is_checked: bool,
) -> int:
    """Change the loss of a reported round, or bring that of a round that was given up, which is one more report.

    old is NO_LOSS for a round that was given up.

    Otherwise nothing changes, and the result says why. WAITS means that it is not reported. WRONG_ARM means that
    another arm was drawn, which is known until the next solve. IMPOSSIBLE means that the losses would add up to less
    than 0 or to more than the number of reports, or that there would be more reports than rounds that do not wait.
    Nothing is checked unless `is_checked`. The round then only says whether it belongs to the present stage (means.py).
    """
    clock = clocks[0]
    found = _find(ledger, clock.rows, round) if is_checked else -1
    if found >= 0 and ledger[found].probability > 0:
        return WAITS
    if found >= 0 and _is_open(ledger[found], clock) and ledger[found].arm != arm:
        return WRONG_ARM
    new_reports, change = int(old == NO_LOSS), new - max(0.0, old)
    before = policies[0, LOSSES, arm]
    after, suffered, reported = before + change / probability, clock.suffered + change, clock.reported + new_reports
    are_sums_right = -SLACK * clock.suffered <= suffered <= reported * (1 + SLACK)
    if not has_means(policies):  # centred estimates may have any sign
        are_sums_right = are_sums_right and -SLACK * before <= after <= 1e300
    if is_checked and (reported > clock.round - clock.outstanding or not are_sums_right):
        return IMPOSSIBLE
    if has_means(policies):
        was_over = clock.means.is_over
        relearn(clock, policies, round, arm, probability, change, new_reports)
        if clock.means.is_over > was_over:
            close_lead(clock, ledger, policies)
    else:
        for i in range(policies.shape[0]):
            policies[i, LOSSES, arm] = min(1e300, max(0.0, after))
    bet(bets, arm, probability, max(0.0, old), -1)
    bet(bets, arm, probability, new, 1)
    if new_reports > 0:
        close_round(clock, policies, round, arm, probability)
    clock.reported = reported
    clock.suffered = min(float(reported), max(0.0, suffered))
    return 0


@compiled
def compact(clocks: Records, ledger: Records) -> None:
    """Drop the reported rows."""
    clock = clocks[0]
    kept = 0
    clock.next_skip = clock.next_cap = 0
    for i in range(clock.rows):
        if _is_open(ledger[i], clock):
            ledger[kept] = ledger[i]
            kept += 1
            clock.next_skip += ledger[i].round <= clock.skipped
            clock.next_cap += ledger[i].round <= clock.capped
    clock.rows = kept


@compiled
def backlogs(delays: Integers, patience: float) -> tuple[Integers, Integers]:
    """D_t of every round and the round in which each one was skipped (0 for never), for known delays.

    The same rule as `count`, without a ledger.
    """
    n = delays.shape[0]
    backlog = np.zeros(n, np.int64)
    skipped_in = np.zeros(n, np.int64)
    leaving = np.zeros(n, np.int64)  # counted rounds whose feedback arrives at the end of this one
    for s in range(n):
        if delays[s] < n - s:
            leaving[s + delays[s]] += 1
    counted = so_far = oldest = 0
    for t in range(n):
        so_far += counted
        backlog[t] = so_far
        if counted > 0 and patience < np.inf:
            while oldest + delays[oldest] < t:
                oldest += 1
            if t - oldest > patience * math.sqrt(so_far):
                skipped_in[oldest] = t + 1
                counted -= 1
                if delays[oldest] < n - oldest:
                    leaving[oldest + delays[oldest]] -= 1
                oldest += 1
        counted += 1 - leaving[t]
    return backlog, skipped_in
