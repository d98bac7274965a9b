"""Describes experiments that have failed, and what is known of every experiment."""

from collections.abc import Sequence
from typing import Any

import msgspec

from belated.serve.domain.experiment import Experiment
from belated.serve.domain.observations import EDGES
from belated.serve.domain.operating import Noted
from belated.serve.domain.timestamps import iso, iso_or_none
from belated.serve.service.descriptions import (
    ArmDetails,
    ArmView,
    AsideView,
    Event,
    ExperimentView,
    Histogram,
    HistoryView,
    RestView,
    StoreView,
)
from belated.serve.service.findings import largest_costs, no_verdict
from belated.serve.service.selecting import MOST_ARMS


def failed_view(experiment: Experiment, store: StoreView, why: str) -> ExperimentView:
    """Describe an experiment that has failed. Only what the journal itself says is known of it."""
    n_shown = min(len(experiment.arms), MOST_ARMS)
    return ExperimentView(
        **plain_fields(experiment),
        failure=f"The experiment has failed, because {why}",
        arms=failed_arms(experiment, range(n_shown)),
        rest=RestView(len(experiment.arms) - n_shown, 0, 0.0, 0, 0, 0) if n_shown < len(experiment.arms) else None,
        share_never=share_never(experiment),
        verdict=no_verdict(experiment),
        show=None,
        costs=largest_costs(experiment),
        delays=Histogram(list(EDGES), [0] * len(EDGES)),
        ages=Histogram(list(EDGES), [0] * len(EDGES)),
        history=HistoryView([], [], [[] for _ in range(n_shown)], None),
        reporting=None,
        holdout=None,
        arm_changes=0,
        store=store,
    )


def failed_details(experiment: Experiment, shown: Sequence[int]) -> list[ArmDetails]:
    """Describe arms of an experiment that has failed, as `arm_details` does."""
    views = map(msgspec.structs.asdict, failed_arms(experiment, shown))
    return [ArmDetails(**one, comparison=None, reporting=None) for one in views]


def failed_arms(experiment: Experiment, shown: Sequence[int]) -> list[ArmView]:
    """Describe arms of an experiment that has failed."""
    unknown = None, 0, None, 0, 0, None, None, None, None
    active = set(experiment.era.arms)
    return [ArmView(experiment.arms[arm], arm in active, *unknown) for arm in shown]


def share_never(experiment: Experiment) -> float | None:
    """Return the share of finished decisions without an outcome."""
    counts, settings = experiment.counts, experiment.settings
    closed = counts.reported + counts.expired
    if not closed or settings.reward_wait is None or settings.default is not None:
        return None
    return (counts.expired - counts.late) / closed


def state_of(experiment: Experiment) -> Any:
    """Return what an experiment does now, in a word."""
    if experiment.failure is not None:
        return "failed"
    operations = experiment.operations
    return "closed" if experiment.closed_at is not None and operations.state != "ended" else operations.state


def aside_view(experiment: Experiment) -> AsideView | None:
    """Describe the decisions that teach nothing."""
    aside = experiment.operations.aside
    if aside.decisions == 0:
        return None
    mean = experiment.settings.outcome.build().value(aside.total / aside.known) if aside.known else None
    return AsideView(aside.decisions, aside.known, mean)


def event_view(one: Noted) -> Event:
    """Describe an event for the page."""
    return Event(one.event, iso(one.at), one.by or None, msgspec.json.decode(one.details))


def plain_fields(experiment: Experiment) -> dict[str, Any]:
    """Return what is known of every experiment."""
    settings, counts, operations = experiment.settings, experiment.counts, experiment.operations
    return {
        "name": experiment.name,
        "description": settings.description or "",
        "state": state_of(experiment),
        "shown": experiment.arms[operations.arm or 0] if state_of(experiment) in ("frozen", "ended") else None,
        "floor": settings.floor or 0.0,
        "aside": aside_view(experiment),
        "events": [event_view(one) for one in reversed(operations.events)],
        "created_at": iso(experiment.created_at),
        "closed_at": iso_or_none(experiment.closed_at),
        "outcome": settings.outcome,
        "tuning": settings.tuning,
        "reward_wait": settings.reward_wait,
        "default_outcome": settings.default,
        "values": experiment.values,
        "provisional": settings.is_provisional,
        "several": settings.rule,
        "parts": settings.declared_parts,
        **msgspec.structs.asdict(counts),
        "outstanding": counts.outstanding,
    }
