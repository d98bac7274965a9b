"""Functions that change a learner's state. Callers hold its lock."""

from bisect import bisect_left
from typing import Any

import numpy as np

from belated import kernels
from belated.arrays import Floats, Integers
from belated.errors import DuplicateReport, InvalidInput, UnknownRound
from belated.learner.decisions import Decision
from belated.learner.mixing import drawn_from
from belated.learner.state import BACKLOG, COUNTED, LATE, LEFT, ROUND, State
from belated.proper import proper_rates

UNIFORMS = 128  # drawn from the generator at a time, because one call for each would cost as much as the argmin


def coming_rates(state: State) -> tuple[float, float]:
    """What the tuning gives for a solve in the coming round, not checked."""
    if state.n_arms == 1:
        return 1.0, 0.0  # nothing to choose, and ln k = 0
    counters = state.counters
    counted = counters[COUNTED] - counters[LATE]
    return state.tuning.rates(state.n_arms, counters[ROUND] + 1, counted, counters[BACKLOG] + counted)


def checked(state: State, rates: tuple[float, float]) -> tuple[float, float]:
    """The rates for the coming round, or an ImproperRule."""
    before = float(state.clock["alpha"][0]), float(state.clock["beta"][0])
    return proper_rates(state.tuning, state.counters[ROUND] + 1, before, rates)


def due_rates(state: State) -> tuple[float, float] | None:
    """The checked rates if the next decision needs a new distribution."""
    return checked(state, coming_rates(state)) if state.counters[LEFT] < 1 else None


def ask(state: State) -> tuple[int, int, float]:
    """Decide a round. Returns round, arm and probability."""
    if not state.uniforms:
        state.uniforms = state.generator.random(UNIFORMS)[::-1].tolist()
    uniform = state.uniforms[-1]
    while True:
        decision = _ask_by_rule(state, uniform) if state.ask_next is None else state.ask_next(uniform)
        if decision[0] > 0:
            state.uniforms.pop()  # an interrupt before this line uses it again, but nobody has seen its decision
            return decision
        if decision[0] < 0:  # the kernel has found the rates improper, and this says why
            checked(state, coming_rates(state))
        make_room(state, 1)  # the ledger was full


def _ask_by_rule(state: State, uniform: float) -> tuple[int, int, float]:
    """Decide with the rates that a tuning computes in Python."""
    if state.counters[LEFT] >= 1:
        return state.decide(uniform)
    rates = coming_rates(state)
    if not (type(rates) is tuple and len(rates) == 2 and type(rates[0]) is float is type(rates[1])):
        rates = checked(state, rates)
    decision = state.solve_and_decide(uniform, rates[0], rates[1], state.refresh)
    if decision[0] < 0:
        checked(state, rates)
    return decision


def ask_batch(state: State, size: int) -> tuple[int, list[int], list[float]]:
    """Decide `size` rounds from one distribution. Returns the first round, the arms and the probabilities."""
    rates = due_rates(state) if size else None
    make_room(state, size)
    first, uniforms = state.counters[ROUND] + 1, _take_uniforms(state, size)
    arrays = state.clock, state.ledger, state.policies, state.cdf
    if rates is None:
        arms, probabilities = kernels.decide_batch(*arrays, state.patience, uniforms)
    else:
        arms, probabilities = kernels.solve_and_decide_batch(*arrays, state.patience, uniforms, *rates, state.refresh)
    return first, arms.tolist(), probabilities.tolist()


def _take_uniforms(state: State, size: int) -> Floats:
    """The next uniforms of the stream that single decisions draw from."""
    kept = [state.uniforms.pop() for _ in range(min(size, len(state.uniforms)))]
    return np.append(kept, state.generator.random(size - len(kept)))


def record(state: State, arm: int, probability: float) -> int:
    """Enter a round decided elsewhere and return its number."""
    rates = due_rates(state)
    make_room(state, 1)
    record_, solve_and_record = state.recorders
    arrays = state.clock, state.ledger, state.policies
    if rates is None:
        return record_(*arrays, state.patience, arm, probability)
    return solve_and_record(*arrays, state.cdf, state.patience, arm, probability, *rates, state.refresh)


def record_batch(state: State, arms: Integers, probabilities: Floats, *, is_in_force: bool = False) -> int:
    """Enter rounds decided elsewhere from one distribution, and return the first round.

    `is_in_force` means that they come from the distribution in force, so nothing is solved.
    """
    rates = None if is_in_force else due_rates(state)
    make_room(state, arms.size)
    arrays = state.clock, state.ledger, state.policies
    if rates is None:
        return kernels.record_batch(*arrays, state.patience, arms, probabilities)
    return kernels.solve_and_record_batch(
        *arrays, state.cdf, state.patience, arms, probabilities, *rates, state.refresh
    )


def make_room(state: State, size: int) -> None:
    """Drop the reported rows of a full ledger. Grow it by half if that leaves less than a quarter free."""
    capacity = state.ledger.size
    if capacity - int(state.clock["rows"][0]) >= size:
        return
    state.compact()
    rows = int(state.clock["rows"][0])
    if capacity - rows < max(size, capacity // 4):
        state.ledger.resize(max(rows + size, capacity + capacity // 2), refcheck=False)  # in place, without a copy


def give_up(state: State, round: int) -> None:
    """Stop waiting for a round."""
    if round <= state.offset:
        state.stretch.arms[find_earlier(state, round)] = kernels.TAKEN
    else:
        asked: int = state.counters[ROUND] + state.offset
        if round > asked:
            raise UnknownRound(round, asked)
        if not kernels.give_up(state.clock, state.ledger, state.policies, round - state.offset):
            raise DuplicateReport(round)


def check_own(state: State, round: int, decision: Decision[Any]) -> None:
    """Refuse the decision of another learner, if its round waits here with another arm or probability."""
    if round <= state.offset:
        row = state.stretch.find(round)
        if row < 0 or state.stretch.arms[row] == kernels.GONE:
            return
        arm, probability = int(state.stretch.arms[row]), decision.probability  # an earlier one is not kept
    else:
        rows, own = state.ledger[: int(state.clock["rows"][0])], round - state.offset
        row = bisect_left(rows["round"], own)  # searchsorted would copy the column
        if row == rows.size or rows["round"][row] != own or not rows["probability"][row] > 0:
            return
        arm, probability = int(rows["arm"][row]), float(rows["probability"][row])
    name = state.arms.name_of(arm)
    if (name, probability) != (decision.arm, decision.probability):
        raise InvalidInput(
            f"round {round} of this learner drew arm {name!r} with probability {probability!r}, but the decision has "
            f"arm {decision.arm!r} with probability {decision.probability!r}. Pass it to the learner that made it"
        )


def waiting_by_arm(state: State) -> Integers:
    """How many decisions for each arm wait for their reports. Those for retired arms are left out."""
    rows, earlier = state.ledger[: int(state.clock["rows"][0])], state.stretch.arms
    open_arms = rows["arm"][rows["probability"] > 0]
    return np.bincount(open_arms, minlength=state.n_arms) + np.bincount(earlier[earlier >= 0], minlength=state.n_arms)


def find_earlier(state: State, round: int) -> int:
    """The row of a waiting round that was decided before the arms changed."""
    if round < 1:
        raise UnknownRound(round, state.counters[ROUND] + state.offset)
    row = state.stretch.find(round)
    if row < 0:
        raise DuplicateReport(round)
    return row


def tell_earlier(state: State, round: int, loss: float) -> None:
    """Report a round that was decided before the arms changed. It teaches a learner on means."""
    kernels.learn_earlier(state.clock, state.policies, state.stretch.arms, find_earlier(state, round), loss)


def check_amendable(state: State, round: Any) -> None:
    """With discard=True nobody knows whether a report was used."""
    if state.discard:
        raise InvalidInput(f"round {round} cannot be amended: with discard=True its report may have been thrown away")


def amend(state: State, decision: tuple[int, int, float], old: float, new: float) -> int:
    """Change the loss of a reported round, if nothing contradicts it. Returns 0 or the kernel's reason.

    old is NO_LOSS for a round that was given up.
    """
    round, arm, probability = decision
    asked: int = state.counters[ROUND] + state.offset
    if not 1 <= round <= asked:
        raise UnknownRound(round, asked)
    if round <= state.offset:
        is_known = arm != kernels.GONE and round > state.stretch.kept_since[arm]
        return amend_earlier(state, round, arm if is_known else kernels.GONE, old, new)
    arrays = state.clock, state.ledger, state.policies, state.bets
    return kernels.amend(*arrays, round - state.offset, arm, probability, old, new, True)  # noqa: FBT003


def refusal(state: State, problem: int, round: int, arm: int, old: Any, new: Any) -> str:
    """Why the kernel has refused an amendment, and what to do."""
    if problem == kernels.WAITS:
        return f"round {round} cannot be amended: it still waits for its report; use tell"
    if problem == kernels.WRONG_ARM:
        return f"round {round} cannot be amended: it did not draw arm {state.arms.name_of(arm)!r}"
    if old is None:
        hint = "None is only for a round that was given up"
    elif state.outcomes is None:
        hint = "old is the loss that was reported last. After tell(reward=r) it is 1 - r, and new is a loss too"
    else:
        hint = f"old is the {state.outcomes.word} that was reported last"
    return (
        f"round {round} cannot be amended from {old!r} to {new!r}: the losses reported so far do not allow it. {hint}"
    )


def amend_earlier(state: State, round: int, arm: int, old: float, new: float) -> int:
    """Change the loss of a round that was decided before the arms changed. Returns 0 or the kernel's reason."""
    if state.stretch.find(round) >= 0:
        return kernels.WAITS
    if arm != kernels.GONE and state.has_means:
        is_new = old == kernels.NO_LOSS
        kernels.relearn_earlier(state.clock[0], state.policies, arm, new - max(0.0, old), int(is_new))
    return 0


def coming_distribution(state: State) -> Floats:
    """The probability of each arm in the coming round."""
    policies, played = coming_policies(state)
    return np.array(drawn_from(state.clock[0], policies[played, kernels.X]))


def coming_policies(state: State) -> tuple[Floats, int]:
    """Copies of the policies of the coming round, and the index of the one that decides."""
    # NumPy copies a structured array field by field, which takes longer than the solve. Its bytes are faster.
    clock = np.frombuffer(bytearray(state.clock.tobytes()), kernels.CLOCK)
    policies = state.policies.copy()
    rates = due_rates(state)
    if rates is not None:
        kernels.solve(clock[0], policies, np.empty_like(state.cdf), *rates)
    return policies, int(clock["shadow"]["played"][0])
