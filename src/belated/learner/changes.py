"""Arms that come and go on a running learner (docs/theory/means.md, "Arms that come and go").

A change begins a new *stretch*. The alarm and the certificates begin again, so every stretch has the guarantee of a new
learner. The means of the arms that stay are kept, and reports of earlier decisions still teach them. A learner without
means keeps a head start instead.
"""

from typing import Any

import numpy as np

from belated import kernels
from belated.arrays import Floats
from belated.kernels.means import MISSING
from belated.learner import certificates
from belated.learner.arms import Arms
from belated.learner.state import State, Stretch, blank, blank_ledger, has_means

HEAD_START = 20.0  # the most an arm may be behind at the start of a stretch, and by which the guarantee grows


def add_and_retire(state: State, add: Any, retire: Any) -> None:
    """Change the arms by what they are called. Callers hold the lock."""
    now, then = state.arms.all, state.arms.changed(add, retire)
    if then.all != now:
        places = {arm: index for index, arm in enumerate(then.all)}
        change(state, then, {index: places[arm] for index, arm in enumerate(now) if arm in places})


def change(state: State, arms: Arms, moved: dict[int, int]) -> None:
    """Begin a new stretch with these arms. `moved` has the new index of every arm that stays. Callers hold the lock."""
    clock, policies = blank(arms.n, state.tuning, state.provisional)
    if state.has_means and has_means(policies):
        kept = slice(kernels.V, kernels.ROWS)  # all but the estimates and the distribution
        policies[kernels.ON_MEANS, kept, list(moved.values())] = state.policies[kernels.ON_MEANS, kept, list(moved)]
        behind = np.zeros(arms.n)
    else:
        behind = _head_starts(state.policies[0, kernels.LOSSES], moved, arms.n)
        policies[: kernels.ON_MEANS, kernels.LOSSES] = behind
    stretch = _next_stretch(state, arms.n, moved, float(behind.max()))
    if has_means(policies) and not state.has_means:  # a single arm had none, and its open decisions will teach it
        staying = stretch.arms[stretch.arms != kernels.GONE]
        policies[kernels.ON_MEANS, MISSING] = np.bincount(staying, minlength=arms.n)
    state.begin(arms, clock, policies, blank_ledger(), stretch)


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
    numbers = clock, state.policies, now.head_start
    shown = max(0.0, certificates.measured(*numbers))
    sums = now.proven + certificates.proven(*numbers), now.measured + shown
    return Stretch(offset, rounds, np.array(arms, np.int64), kept_since, *sums, head_start)


def proven(state: State) -> float:
    """The proven certificate of all stretches together."""
    return state.stretch.proven + certificates.proven(state.clock[0], state.policies, state.stretch.head_start)


def measured(state: State) -> float:
    """The measured certificate of all stretches together."""
    return state.stretch.measured + certificates.measured(state.clock[0], state.policies, state.stretch.head_start)
