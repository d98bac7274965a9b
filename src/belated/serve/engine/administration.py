"""Create, change and close experiments.

A request that repeats an earlier one, because the answer was lost, changes nothing.
"""

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from belated.errors import InvalidInput
from belated.serve.domain.entries import Entry, EntryKind
from belated.serve.domain.experiment import Experiment
from belated.serve.domain.failures import failed
from belated.serve.domain.fold import Fold
from belated.serve.domain.operating import Operation
from belated.serve.domain.quotas import too_many_arms, weight_of
from belated.serve.domain.refusals import Refusal
from belated.serve.domain.settings import MAX_ARMS, ArmChange, Settings, check_arms, differing, is_repeated
from belated.serve.domain.values import Values, check_all, check_values
from belated.serve.engine.operating import check_arms_left, planned
from belated.serve.engine.requests import Change, ChangeArms, Close, Create, Operate


def find(fold: Fold, name: str) -> Experiment:
    """Return the experiment of this name, or raise a Refusal."""
    try:
        return fold.by_name[name]
    except KeyError:
        raise Refusal("not_found", f"there is no experiment {name!r}. Create it first.") from None


def find_sound(fold: Fold, name: str) -> Experiment:
    """Return an experiment that has not failed, or raise a Refusal."""
    experiment = find(fold, name)
    if experiment.failure is not None:
        raise failed(name, experiment.failure)
    return experiment


def find_learning(fold: Fold, name: str) -> Experiment:
    """Return an experiment that has not ended, or raise a Refusal."""
    experiment = find_sound(fold, name)
    if experiment.closed_at is not None:
        raise Refusal("conflict", f"the experiment {name!r} is closed, so it can no longer be changed.")
    return experiment


def find_deciding(fold: Fold, name: str) -> Experiment:
    """Return an experiment that makes decisions, or raise a Refusal."""
    experiment = find_sound(fold, name)
    if experiment.operations.state == "paused" and experiment.closed_at is None:
        paused = f"the experiment {name!r} is paused. It takes reports, but makes no decisions until it is resumed."
        raise Refusal("conflict", paused)
    if not experiment.is_deciding:
        best = experiment.best_lately()
        instead = "" if best is None else f" From now on show {experiment.arms[best]!r}."
        closed = f"the experiment {name!r} is closed. It takes reports, but makes no more decisions."
        raise Refusal("conflict", closed + instead)
    return experiment


def check_room(request: Change, fold: Fold, max_arms: int) -> None:
    """Refuse arms that the memory of the servers may have no room for. Nothing of an experiment is ever deleted.

    A change of arms takes memory even if the arms are not new. One that only retires arms is always possible.
    """
    if isinstance(request, Create):
        more = weight_of(len(request.settings.arms))
    elif isinstance(request, ChangeArms):
        experiment = fold.by_name[request.name]
        joining = set(request.change.add).difference(experiment.arms[arm] for arm in experiment.era.arms)
        n_arms = len(joining.union(experiment.arms))
        more = weight_of(n_arms, experiment.n_changes + 1) - _weight(experiment) if joining else 0
    else:
        return
    total = more + sum(map(_weight, fold.experiments.values()))
    if more and total > max_arms:
        raise too_many_arms(total, max_arms)


def _weight(experiment: Experiment) -> float:
    return weight_of(len(experiment.arms), experiment.n_changes)


def entry_of(request: Change, fold: Fold, at: int) -> Entry | None:
    """Return the entry that a request adds, or None if nothing changes. Raises Refusal or InvalidInput."""
    match request:
        case Create():
            return _creation(request, fold, at)
        case ChangeArms():
            return _change(request, fold, at)
        case Operate():
            return _operating(request, fold, at)
        case Close():
            return _closing(request, fold, at)


def _creation(request: Create, fold: Fold, at: int) -> Entry | None:
    settings = request.settings
    settings.check()
    existing = fold.by_name.get(settings.name)
    if existing is None:
        body = msgspec.json.encode(settings)
        check_readable(body, Settings)
        return Entry(at, EntryKind.CREATED, 0, revision=0, body=body, drawn=_cause(request.by))
    first = existing.operations.original or existing.settings
    if not is_repeated(first, settings):
        which = differing(first, settings)
        said = f"there is an experiment {settings.name!r} with other settings: {which}. Choose another name."
        raise Refusal("conflict", said)
    return None


def _closing(request: Close, fold: Fold, at: int) -> Entry | None:
    experiment = find(fold, request.name)
    return None if experiment.closed_at is not None else _event(experiment, EntryKind.CLOSED, at, b"{}", request.by)


def _event(experiment: Experiment, kind: EntryKind, at: int, body: bytes, by: str) -> Entry:
    """Return an entry whose revision fails if another server has changed the experiment meanwhile."""
    return Entry(at, kind, experiment.seq, revision=experiment.revision + 1, body=body, drawn=_cause(by))


def _cause(by: str) -> bytes | None:
    """Return the key behind an event, where releases that do not know it do not look."""
    return by.encode() or None


def _operating(request: Operate, fold: Fold, at: int) -> Entry | None:
    asked = request.operation
    experiment = find_sound(fold, request.name) if asked.event == "ended" else find_learning(fold, request.name)
    done = planned(experiment, asked)
    if done is None:
        return None
    body = msgspec.json.encode(done)
    check_readable(body, Operation)
    return _event(experiment, EntryKind.OPERATED, at, body, request.by)


def _change(request: ChangeArms, fold: Fold, at: int) -> Entry | None:
    experiment, change = find_learning(fold, request.name), request.change
    names = [*change.add, *change.retire]
    check_arms(names)
    if not names:
        raise InvalidInput("name at least one arm to add or to retire")
    active, known = {experiment.arms[arm] for arm in experiment.era.arms}, set(experiment.arms)
    for name in change.retire:
        if name not in known:
            raise Refusal("not_found", f"{request.name!r} has no arm {name!r} to retire. It has {sorted(active)}.")
    new = ArmChange([name for name in change.add if name not in active], [n for n in change.retire if n in active])
    left = len(active) + len(new.add) - len(new.retire)
    if not 1 <= left <= MAX_ARMS:
        raise InvalidInput(f"an experiment must keep 1 to {MAX_ARMS} arms")
    experiment.settings.tuning.check(left, left)  # older releases did not check it for all numbers of arms
    check_arms_left(experiment, [*(name for name in active if name not in new.retire), *new.add])
    if new.add:
        new = msgspec.structs.replace(new, values=_new_values(experiment, new.add, change.values))
    body = msgspec.json.encode(new)
    check_readable(body, ArmChange)
    return _event(experiment, EntryKind.ARMS, at, body, request.by) if new.add or new.retire else None


def _new_values(experiment: Experiment, added: list[str], given: Values | UnsetType) -> Values | UnsetType:
    """Return the values of arms that join. An arm that comes back may keep its own. Raises InvalidInput."""
    if not experiment.values:
        if given is not UNSET:
            raise InvalidInput(f"the arms of {experiment.name!r} have no values, so values must be left out")
        return UNSET
    values = {name: experiment.values[name] for name in added if name in experiment.values}
    values |= {} if given is UNSET else given
    check_values(values, added, "joins")
    check_all({**experiment.values, **values})
    return values


def check_readable(body: bytes, type: Any) -> None:
    """Check that an entry can be read again before it is written. Otherwise its experiment would fail."""
    try:
        msgspec.json.decode(body, type=type)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InvalidInput(f"this cannot be stored: {error}") from None
