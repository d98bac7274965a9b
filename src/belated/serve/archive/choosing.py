"""Chooses what goes into an archive: closed experiments, or all decisions up to a number."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from belated.errors import InvalidInput
from belated.serve.domain.entries import Entry, EntryKind, Found
from belated.serve.domain.experiment import Experiment
from belated.serve.domain.fold import Fold
from belated.serve.domain.parts import is_open
from belated.serve.domain.timestamps import shown
from belated.serve.store.journal import PAGE, Journal, Removal, left


class Choice(NamedTuple):
    """What to remove, the experiments it belongs to, and what stays against the caller's wish, in words."""

    what: Removal
    experiments: list[Experiment]
    notes: list[str]


def closed(journal: Journal, fold: Fold, names: Sequence[str]) -> Choice:
    """Choose closed experiments: those with these names, or all. Raises InvalidInput if a named one still runs."""
    chosen, notes = list[Experiment](), list[str]()
    for experiment in _named(fold, names):
        if experiment.closed_at is None:
            raise InvalidInput(
                f"the experiment {experiment.name!r} still runs. Close it first, or archive old decisions with "
                "--older-than"
            )
        waiting = first_waiting(journal, experiment, fold.seq)
        if waiting is None:
            chosen.append(experiment)
        elif names:
            raise InvalidInput(f"{_waits(experiment, waiting)}. Archive it when its waits have ended")
        else:
            notes.append(f"{_waits(experiment, waiting)}, so it stays.")
    chosen = [experiment for experiment in chosen if _has_rows(journal, experiment, fold.seq, fold.seq)]
    return Choice(Removal(fold.seq, experiments=tuple(one.seq for one in chosen)), chosen, notes)


def _named(fold: Fold, names: Sequence[str]) -> list[Experiment]:
    if not names:
        return [one for one in fold.experiments.values() if one.closed_at is not None]
    for name in names:
        if name not in fold.by_name:
            raise InvalidInput(f"there is no experiment {name!r} in this store")
    return [fold.by_name[name] for name in dict.fromkeys(names)]


def _waits(experiment: Experiment, waiting: Entry) -> str:
    ends = experiment.expires_at(waiting.at) or 0
    return (
        f"the experiment {experiment.name!r} still waits for reports. The wait of its oldest open decision, from "
        f"{shown(waiting.at)}, ends at {shown(ends)} if the service runs then"
    )


def first_waiting(journal: Journal, experiment: Experiment, until: int) -> Entry | None:
    """Return the oldest decision whose wait has not ended, or None. A report of it would be lost, or its default.

    Without a wait a decision is open for ever, and in a failed experiment no wait ends.
    """
    if experiment.expires_at(0) is None or experiment.failure is not None:
        return None
    for found in decisions(journal, experiment, experiment.last_expired, until):
        if is_open(found):
            return found.decision
    return None


def decisions(journal: Journal, experiment: Experiment, after: int, until: int) -> Iterator[Found]:
    """Yield the decisions of an experiment that are left, up to a number."""
    while page := journal.decisions(experiment.seq, after, PAGE):
        for found in page:
            if found.decision.seq > until:
                return
            yield found
        after = page[-1].decision.seq


def older_than(journal: Journal, fold: Fold, limit: int) -> Choice:
    """Choose all decisions up to a number, all made before `limit`. What still waits stays, and all that came later."""
    until, notes = _made_before(limit, journal, fold.seq), list[str]()
    for experiment in fold.experiments.values():
        waiting = first_waiting(journal, experiment, until)
        if waiting is not None:
            until = waiting.seq - 1
            notes = [f"{_waits(experiment, waiting)}. Decisions of all experiments from then on stay."]
    chosen = [one for one in fold.experiments.values() if _has_rows(journal, one, until, fold.seq)]
    return Choice(Removal(fold.seq, decisions_until=until), chosen, notes)


def _made_before(limit: int, journal: Journal, until: int) -> int:
    """Return the last entry before the first decision that was made since `limit`.

    A wrong clock may have dated decisions ahead. They are as old as the next one after them that it has not.
    """
    now, unsure = journal.now(), 0
    for entry in left(journal, until):
        if entry.kind is not EntryKind.DECIDED:
            continue
        if entry.at > now:
            unsure = unsure or entry.seq
        elif entry.at >= limit:
            return (unsure or entry.seq) - 1
        else:
            unsure = 0
    return unsure - 1 if unsure else until


def _has_rows(journal: Journal, experiment: Experiment, decisions_until: int, until: int) -> bool:
    """Whether there are decisions up to a number, or outcomes of them."""
    if any(True for _ in decisions(journal, experiment, 0, decisions_until)):
        return True
    return any(True for _ in outcomes(journal, experiment, decisions_until, until))


def outcomes(journal: Journal, experiment: Experiment, decisions_until: int, until: int) -> Iterator[Entry]:
    """Yield the outcomes of an experiment up to `until` that are left, of decisions up to a number."""
    after = 0
    while page := journal.outcomes(experiment.seq, after, PAGE):
        for entry in page:
            if entry.seq > until:
                return
            if (entry.decision or 0) <= decisions_until:
                yield entry
        after = page[-1].seq
