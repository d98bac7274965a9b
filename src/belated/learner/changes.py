"""Arms that come and go on a running learner (docs/theory/means.md, "Arms that come and go").

A change begins a new *stretch*. The alarm and the certificates begin again, so every stretch has the guarantee of a new
learner. The means of the arms that stay are kept, and reports of earlier decisions still teach them. A learner without
means keeps a head start instead.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from belated import kernels
from belated.arrays import Floats
from belated.kernels.means import COUNT, DRAWN, LOST, MARK, MISSING
from belated.learner import certificates
from belated.learner.arms import Arms
from belated.learner.certificates import Arrays, Measured
from belated.learner.mixing import as_floor
from belated.learner.state import ROUND, State, Stretch, blank, blank_bets, blank_ledger, has_means

HEAD_START = 20.0  # the most an arm may be behind at the start of a stretch, and by which the guarantee grows


def add_and_retire(state: State, add: Any, retire: Any) -> None:
    """Change the arms by what they are called. Callers hold the lock."""
    now, then = state.arms.all, state.arms.changed(add, retire)
    as_floor(state.mix.floor, then.n)
    if then.all != now:
        places = {arm: index for index, arm in enumerate(then.all)}
        change(state, then, {index: places[arm] for index, arm in enumerate(now) if arm in places})


def change(state: State, arms: Arms, moved: dict[int, int]) -> None:
    """Begin a new stretch with these arms. `moved` has the new index of every arm that stays. Callers hold the lock."""
    clock, policies = blank(arms.n, state.tuning, state.provisional)
    if state.has_means and has_means(policies):
        kept = slice(COUNT, LOST)  # all but the estimates, the distribution, and what the certificates need
        policies[kernels.ON_MEANS, kept, list(moved.values())] = state.policies[kernels.ON_MEANS, kept, list(moved)]
        policies[kernels.ON_MEANS, MARK, list(moved.values())] -= state.clock["reported"][0]  # the reports since then
        policies[kernels.ON_MEANS, DRAWN, list(moved.values())] += _draws_since_solve(state)[list(moved)]
        clock["means"]["longest"] = state.clock["means"]["longest"]
        behind = np.zeros(arms.n)
    else:
        behind = _head_starts(state.policies[0, kernels.LOSSES], moved, arms.n)
        policies[: kernels.ON_MEANS, kernels.LOSSES] = behind
    stretch = _next_stretch(state, arms.n, moved, float(behind.max()))
    if has_means(policies) and not state.has_means:  # a single arm had none, and its open decisions will teach it
        staying = stretch.arms[stretch.arms != kernels.GONE]
        policies[kernels.ON_MEANS, MISSING] = np.bincount(staying, minlength=arms.n)
    state.begin(arms, clock, policies, blank_ledger(), blank_bets(arms.n), stretch)


def assume(state: State, provisional: float) -> None:
    """Count open decisions with another loss, or with NOT_PROVISIONAL. Callers hold the lock."""
    state.provisional = provisional
    if state.has_means:  # a single arm has none yet
        state.clock["means"]["provisional"] = provisional


def _draws_since_solve(state: State) -> Floats:
    """How often each arm was drawn since the last solve, by the probabilities."""
    clock = state.clock[0]
    return np.asarray((clock["round"] + 1 - clock["means"]["solved"]) * state.drawn)


def _head_starts(losses: Floats, moved: dict[int, int], n_arms: int) -> Floats:
    """How far behind the best each arm begins. A new arm begins level with the best of those that stay."""
    behind = np.zeros(n_arms)
    if moved:
        lead = losses[list(moved)]
        behind[list(moved.values())] = np.minimum(HEAD_START, lead - lead.min())
    return behind


def _next_stretch(state: State, n_arms: int, moved: dict[int, int], head_start: float) -> Stretch:
    now, clock = state.stretch, state.clock[0]
    rows = state.ledger[: int(clock["rows"])]
    open_rows = rows[rows["probability"] > 0]
    still = now.arms != kernels.TAKEN
    rounds = np.concatenate([now.rounds[still], open_rows["round"] + now.offset])
    arms = [moved.get(arm, kernels.GONE) for arm in (*now.arms[still].tolist(), *open_rows["arm"].tolist())]
    offset = now.offset + int(clock["round"])
    kept_since = np.full(n_arms, offset)
    if state.has_means and n_arms > 1:  # else its mean begins anew, and so does that of a name that comes back
        kept_since[list(moved.values())] = now.kept_since[list(moved)]
    arrays = arrays_of(state)
    shown = max(0.0, sum(certificates.measured(arrays)))
    proven_any = now.proven_any + certificates.proven_any(arrays)
    sums = now.proven + certificates.proven(arrays), now.measured + shown, proven_any
    bounds = now.bounds if arrays.is_trivial else (*now.bounds, _worst_bets(arrays))
    return Stretch(offset, rounds, np.array(arms, np.int64), kept_since, *sums, bounds, head_start)


def _worst_bets(arrays: Arrays) -> tuple[float, ...]:
    """What is kept of the bets of a stretch. The lowest of all arms gives a bound against each of them."""
    return math.log(arrays.n_arms), *certificates.logarithms(arrays).min(axis=1).tolist()


def arrays_of(state: State) -> Arrays:
    """What the present stretch has left in the arrays."""
    return Arrays(state.clock[0], state.ledger, state.policies, state.bets, state.stretch.head_start)


def proven(state: State) -> float:
    """The proven certificate of all stretches together, for delays fixed in advance."""
    return state.stretch.proven + certificates.proven(arrays_of(state))


def proven_any(state: State) -> float:
    """The proven certificate of all stretches together, for any delays."""
    return state.stretch.proven_any + certificates.proven_any(arrays_of(state))


def measured(state: State) -> Measured:
    """The measured certificate of all stretches together. What was open in an earlier one counts as known."""
    known, unreported = certificates.measured(arrays_of(state))
    return Measured(state.stretch.measured + known, unreported)


FIRST = 0.9  # of delta, for the first stretch. Most learners have no other


def _share(number: int) -> float:
    """The part of delta for a stretch. All parts together are 1."""
    return FIRST if number == 1 else (1 - FIRST) / (number * (number - 1))


class Bets(NamedTuple):
    """What the bound on a run's regret is computed from. It does not change with the learner."""

    rounds: int
    past: tuple[tuple[float, ...], ...]  # Stretch.bounds
    logs: Floats | None  # of the present stretch, None if there is nothing to regret


def bets_of(state: State) -> Bets:
    """Read the bets. Callers hold the lock."""
    arrays = arrays_of(state)
    logs = None if arrays.is_trivial else certificates.logarithms(arrays)
    return Bets(state.counters[ROUND] + state.offset, state.stretch.bounds, logs)


def run_bound(bets: Bets, confidence: float, arm: int | None = None) -> float:
    """The bound on this run's regret over all stretches, against the best arm of each, or against one arm."""
    n, past, logs = bets
    delta, total = 1 - confidence, 0.0
    if n == 0 or (arm is not None and logs is None):
        return 0.0
    if arm is not None and logs is not None:
        return min(float(n), float(certificates.run_bounds(logs[:, [arm]], -math.log(delta))[0]))
    if past:  # all at once, because there may be many
        surprises = [log_arms - math.log(delta * _share(place)) for place, (log_arms, *_) in enumerate(past, 1)]
        found = certificates.run_bounds(np.array([logs for _, *logs in past]).T, np.array(surprises))
        total = sum(np.maximum(found, 0.0).tolist())
    if logs is not None:
        surprise = math.log(logs.shape[1] / (delta * _share(len(past) + 1)))
        total += float(certificates.run_bounds(logs, surprise).max())
    return min(float(n), total)
