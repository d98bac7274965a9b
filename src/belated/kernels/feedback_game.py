"""A whole game whose delays depend on the arm or the loss.

The rates depend on what is outstanding, and so on what is drawn. So this plays by the kernels of ask and tell.
"""

from belated.arrays import Floats, Integers
from belated.kernels.argmin import X
from belated.kernels.clock import compact, report
from belated.kernels.compiling import Policies, Records, compiled, compiled_first
from belated.kernels.game import Links, expectation
from belated.kernels.rounds import ask_next, solve_and_decide


@compiled
def link(first: Links, following: Links, last: Links, s: int, t: int) -> None:
    """Note that the report of round s arrives at the end of round t, after those noted before."""
    if last[t] < 0:
        first[t] = s
    else:
        following[last[t]] = s
    last[t] = s


@compiled_first
def play_feedback_block(
    start: int,
    losses: Floats,
    delays: Integers,
    reported: Floats,
    alpha: Floats,
    beta: Floats,
    scale: float,
    log_k: float,
    patience: float,
    discard: bool,
    uniforms: Floats,
    clocks: Records,
    ledger: Records,
    policies: Policies,
    bets: Floats,
    cdf: Floats,
    first: Links,
    following: Links,
    last: Links,
    arms: Links,
    reports: Floats,
    expected: Floats,
    suffered: Floats,
) -> int:
    """Play the rounds start, start + 1, ... (from 0), one for each row of losses. Returns how many were played.

    It stops early if the ledger needs more room, or if the rates are improper. alpha and beta are the rates of all
    rounds, or empty for those of a `RootTuning` with this scale. `reports` keeps what is reported of every decision
    until it arrives.
    """
    n, clock = first.shape[0], clocks[0]
    for i in range(losses.shape[0]):
        t = start + i
        if clock.rows == ledger.shape[0]:
            compact(clocks, ledger)
            if clock.rows > ledger.shape[0] // 2:
                return i
        if alpha.shape[0] > 0:
            decided, arm, _ = solve_and_decide(
                clocks, ledger, policies, cdf, patience, uniforms[i], alpha[t], beta[t], 1
            )
        else:
            decided, arm, _ = ask_next(clocks, ledger, policies, cdf, patience, 1, scale, log_k, uniforms[i])
        if decided < 1:
            return i
        arms[t] = arm
        expected[i] = expectation(policies[clock.shadow.played, X], losses[i])
        suffered[i] = losses[i, arm]
        reports[t] = reported[i, arm]
        if delays[i, arm] < n - t:
            link(first, following, last, t, t + delays[i, arm])
        s = first[t]
        while s >= 0:
            report(clocks, ledger, policies, bets, discard, s + 1, reports[s])
            s = following[s]
    return int(losses.shape[0])
