"""Describes experiments that have failed, and what is known of every experiment."""

from collections.abc import Sequence
from typing import Any

import msgspec

from belated.serve.domain.experiment import Experiment
from belated.serve.domain.observations import EDGES
from belated.serve.domain.timestamps import iso, iso_or_none
from belated.serve.service.descriptions import (
    ArmDetails,
    ArmView,
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
    if not closed or settings.reward_wait is None or settings.default_outcome is not None:
        return None
    return (counts.expired - counts.late) / closed


def plain_fields(experiment: Experiment) -> dict[str, Any]:
    """Return what is known of every experiment."""
    settings, counts = experiment.settings, experiment.counts
    return {
        "name": experiment.name,
        "created_at": iso(experiment.created_at),
        "closed_at": iso_or_none(experiment.closed_at),
        "outcome": settings.outcome,
        "tuning": settings.tuning,
        "reward_wait": settings.reward_wait,
        "default_outcome": settings.default_outcome,
        "provisional": settings.is_provisional,
        "several": settings.rule,
        **msgspec.structs.asdict(counts),
        "outstanding": counts.outstanding,
    }
