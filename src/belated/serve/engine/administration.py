"""Creating, changing and closing experiments: the entry that a request adds, or nothing if all is as it asks already.

A request that is sent again, because its answer was lost, finds what it asks for and changes nothing.
"""

import msgspec

from belated.errors import InvalidInput
from belated.serve.domain.entries import Entry, EntryKind
from belated.serve.domain.experiment import Experiment
from belated.serve.domain.fold import Fold
from belated.serve.domain.refusals import Refusal
from belated.serve.domain.settings import MAX_ARMS, ArmChange, check_arms
from belated.serve.engine.requests import ChangeArms, Close, Create


def find(fold: Fold, name: str) -> Experiment:
    """The experiment of this name, or the Refusal 404."""
    try:
        return fold.by_name[name]
    except KeyError:
        raise Refusal("not_found", f"there is no experiment {name!r}; POST /v1/experiments creates one") from None


def find_running(fold: Fold, name: str) -> Experiment:
    """One that still makes decisions, or a Refusal."""
    experiment = find(fold, name)
    if experiment.closed_at is not None:
        raise Refusal("conflict", f"the experiment {name!r} is closed: it takes feedback, but makes no more decisions")
    return experiment


def entry_of(request: Create | ChangeArms | Close, fold: Fold, at: int) -> Entry | None:
    """What the request adds to the journal; raises Refusal or InvalidInput."""
    if isinstance(request, Create):
        return _creation(request, fold, at)
    return _change(request, fold, at) if isinstance(request, ChangeArms) else _closing(request, fold, at)


def _creation(request: Create, fold: Fold, at: int) -> Entry | None:
    settings = request.settings
    settings.check()
    existing = fold.by_name.get(settings.name)
    if existing is None:
        return Entry(at, EntryKind.CREATED, 0, revision=0, body=msgspec.json.encode(settings))
    if existing.settings != settings:
        raise Refusal("conflict", f"there is an experiment {settings.name!r} with other settings; choose another name")
    return None


def _closing(request: Close, fold: Fold, at: int) -> Entry | None:
    experiment = find(fold, request.name)
    return None if experiment.closed_at is not None else _event(experiment, EntryKind.CLOSED, at, b"{}")


def _event(experiment: Experiment, kind: EntryKind, at: int, body: bytes) -> Entry:
    """The revision makes sure that no other server has changed the experiment meanwhile."""
    return Entry(at, kind, experiment.seq, revision=experiment.revision + 1, body=body)


def _change(request: ChangeArms, fold: Fold, at: int) -> Entry | None:
    experiment, change = find_running(fold, request.name), request.change
    names = [*change.add, *change.retire]
    check_arms(names)
    if not names:
        raise InvalidInput("name an arm to add or to retire")
    active = {experiment.arms[arm] for arm in experiment.era.arms}
    for name in change.retire:
        if name not in experiment.arms:
            raise Refusal("not_found", f"{request.name!r} has no arm {name!r} to retire; it has {sorted(active)}")
    new = ArmChange([name for name in change.add if name not in active], [n for n in change.retire if n in active])
    if not 1 <= len(active) + len(new.add) - len(new.retire) <= MAX_ARMS:
        raise InvalidInput(f"an experiment keeps 1 to {MAX_ARMS} arms")
    return _event(experiment, EntryKind.ARMS, at, msgspec.json.encode(new)) if new.add or new.retire else None
