"""Documents that describe experiments and the store. The API returns them and the dashboard draws them."""

import logging
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Annotated, Any, Final, NamedTuple

import msgspec
from msgspec import Meta

from belated.serve.domain.experiment import Experiment
from belated.serve.domain.observations import EDGES, Counts, in_order
from belated.serve.domain.settings import OutcomeChoice, TuningChoice
from belated.serve.domain.timestamps import MICROSECONDS
from belated.serve.service.findings import (
    CostsView,
    ShowView,
    VerdictView,
    costs_view,
    largest_costs,
    no_verdict,
    show_view,
    verdict_view,
)

log = logging.getLogger("belated.views")
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@lru_cache(256)  # decisions of one commit have one time
def iso(at: int) -> str:
    """Format a time in microseconds as RFC 3339."""
    return (EPOCH + timedelta(microseconds=at)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def iso_or_none(at: int | None) -> str | None:
    """Format a time that may be missing."""
    return None if at is None else iso(at)


class ArmView(msgspec.Struct):
    """An arm: how likely it is, how often it was chosen, and its mean outcome."""

    name: str
    active: bool
    probability: Annotated[float, Meta(description="Of the next decision. null for a retired arm.")] | None
    chosen: int
    share: (
        Annotated[float, Meta(description="chosen / decisions that it took part in. null before the first of them.")]
        | None
    )
    reports: Annotated[int, Meta(description="Outcomes that were reported, in time or late.")]
    open: Annotated[
        int, Meta(description="Decisions for it without an outcome. One that ended as the default has one.")
    ]
    mean: (
        Annotated[
            float,
            Meta(description="The average outcome of its decisions whose outcome is known. null if there is none."),
        ]
        | None
    )
    provisional_mean: (
        Annotated[float, Meta(description="The mean if its open decisions count as the default. null without one.")]
        | None
    )
    low: (
        Annotated[
            float,
            Meta(
                description="With 95% confidence the mean over all its decisions is between low and high at all times. "
                "Open decisions count as the worst outcome in low and as the best in high, or the reverse."
            ),
        ]
        | None
    )
    high: float | None


class Histogram(msgspec.Struct):
    """counts[i] lie between edges[i] and edges[i + 1] seconds. The last ones lie above the last edge."""

    edges: list[float]
    counts: list[int]


class HistoryView(msgspec.Struct):
    """The arms' probabilities over time as probabilities[arm][point], null where an arm did not take part."""

    round: list[int]
    at: Annotated[list[float], Meta(description="Seconds since 1970.")]
    probabilities: list[list[float | None]]


class ArmReporting(msgspec.Struct):
    """How often an arm reports, of its decisions that are old enough to be judged."""

    name: str
    decisions: int
    reports: int
    share: Annotated[float, Meta(description="reports / decisions. null without decisions.")] | None
    less: (
        Annotated[
            float,
            Meta(description="0.31 if it reports 31% less often than the others at the same times. Negative if more."),
        ]
        | None
    )
    warning: Annotated[bool, Meta(description="Whether it reports less often beyond chance.")]


class ReportingView(msgspec.Struct):
    """Whether the arms report equally often. If not, the estimates may be wrong."""

    warning: Annotated[bool, Meta(description="Whether some arm has a warning.")]
    judged_after: (
        Annotated[
            float,
            Meta(
                description="Seconds after which a missing report counts as missing. "
                "null before the first report if there is no wait."
            ),
        ]
        | None
    )
    arms: list[ArmReporting]


class StoreView(msgspec.Struct):
    """The health of the store."""

    kind: str
    writable: bool
    entries: int
    bytes: int
    last_commit_ms: float
    queue: int
    unsnapshotted: Annotated[int, Meta(description="Entries that a restart would have to apply.")]
    lag_entries: Annotated[int, Meta(description="At most this many entries are not applied on this server yet.")]
    lag_seconds: Annotated[float, Meta(description="Seconds since this server was last caught up.")]


class ExperimentView(msgspec.Struct):
    """Everything about an experiment."""

    name: str
    created_at: str
    closed_at: str | None
    failure: (
        Annotated[str, Meta(description="Why it has failed. It makes no decisions and takes no reports. Usually null.")]
        | None
    )
    arms: list[ArmView]
    outcome: OutcomeChoice
    tuning: TuningChoice
    reward_wait: float | None
    default_outcome: float | None
    provisional: Annotated[bool, Meta(description="Whether an open decision counts as the default outcome.")]
    decisions: int
    outstanding: int
    reported: int
    expired: int
    late: int
    amended: int
    share_never: (
        Annotated[
            float,
            Meta(
                description="The share of finished decisions without an outcome. null before the first, without a wait "
                "and with a default outcome, because then each has one."
            ),
        ]
        | None
    )
    verdict: VerdictView
    show: Annotated[ShowView, Meta(description="null while the experiment runs, or if no outcome is known.")] | None
    costs: CostsView
    delays: Histogram
    ages: Histogram
    history: HistoryView
    reporting: (
        Annotated[ReportingView, Meta(description="null with a default outcome, because then silence is an answer.")]
        | None
    )
    arm_changes: int
    store: StoreView


class ExperimentSummary(msgspec.Struct):
    """An experiment in a list."""

    name: str
    created_at: str
    closed_at: str | None
    arms: int
    decisions: int
    outstanding: int
    failed: Annotated[bool, Meta(description="Whether it makes no decisions and takes no reports.")]


class ExperimentTotals(NamedTuple):
    """An experiment's numbers for the metrics."""

    name: str
    counts: Counts
    proven: float | None  # regret in losses, None if the experiment has failed
    reporting: ReportingView | None
    is_failed: bool = False  # and still open, so that somebody should look


def summary(experiment: Experiment) -> ExperimentSummary:
    """Describe an experiment for a list."""
    counts = experiment.counts
    created, closed = iso(experiment.created_at), iso_or_none(experiment.closed_at)
    return ExperimentSummary(
        experiment.name,
        created,
        closed,
        len(experiment.era.arms),
        counts.decisions,
        counts.outstanding,
        experiment.failure is not None,
    )


def totals(experiment: Experiment, now: int) -> ExperimentTotals:
    """Return the numbers for the metrics. The caller holds the engine's lock."""
    counts = msgspec.structs.replace(experiment.counts)
    if experiment.failure is None:
        try:
            return ExperimentTotals(experiment.name, counts, experiment.costs().proven, reporting_view(experiment, now))
        except Exception:  # a failure of one experiment must not hide the others
            log.exception("an experiment cannot be measured", extra={"experiment": experiment.name})
    return ExperimentTotals(experiment.name, counts, None, None, is_failed=experiment.closed_at is None)


def arm_views(experiment: Experiment) -> list[ArmView]:
    """Describe all arms, including retired ones."""
    outcome, offered = experiment.outcomes, experiment.offered()
    now = dict(zip(experiment.era.arms, experiment.distribution().tolist(), strict=True))
    views = []
    for arm, (name, found) in enumerate(zip(experiment.arms, experiment.look().means, strict=True)):
        chosen = experiment.chosen[arm]
        share = chosen / offered[arm] if offered[arm] else None
        counted = chosen, share, experiment.reports[arm], chosen - experiment.evidence.known[arm]
        shown: tuple[float | None, ...] = (None, None, None, None)
        if found is not None:
            mean, default = outcome.value(found.mean), experiment.settings.default_outcome
            assumed = None if default is None else (mean * found.known + default * found.open) / chosen
            shown = (mean, assumed, *sorted((outcome.value(found.low), outcome.value(found.high))))
        views.append(ArmView(name, arm in now, now.get(arm), *counted, *shown))
    return views


def history_view(experiment: Experiment) -> HistoryView:
    """Describe the history by arm. Points from before an arm was added lack it."""
    history = experiment.history
    series = [
        [point[arm] if arm < len(point) else None for point in history.points] for arm in range(len(experiment.arms))
    ]
    return HistoryView(list(history.rounds), [at / MICROSECONDS for at in in_order(history.times)], series)


def reporting_view(experiment: Experiment, now: int) -> ReportingView | None:
    """Compare how often the arms report. If an arm is retired, or the experiment closed, nothing is left to warn of."""
    if experiment.reporting is None:
        return None
    arms, present = [], experiment.era.arms if experiment.closed_at is None else []
    for arm, (name, found) in enumerate(zip(experiment.arms, experiment.comparisons(now), strict=True)):
        share = found.reports / found.decisions if found.decisions else None
        is_warned = found.is_warned and arm in present
        arms.append(ArmReporting(name, found.decisions, found.reports, share, found.less, is_warned))
    after = experiment.reporting.judged_after(experiment.settings.reward_wait)
    return ReportingView(any(arm.warning for arm in arms), after, arms)


def share_never(experiment: Experiment) -> float | None:
    """Return the share of finished decisions without an outcome."""
    counts, settings = experiment.counts, experiment.settings
    closed = counts.reported + counts.expired
    if not closed or settings.reward_wait is None or settings.default_outcome is not None:
        return None
    return (counts.expired - counts.late) / closed


def view(experiment: Experiment, store: StoreView, now: int) -> ExperimentView:
    """Describe an experiment. The caller holds the engine's lock."""
    if experiment.failure is not None:
        return failed_view(experiment, store, f"{experiment.failure}.")
    try:
        return healthy_view(experiment, store, now)
    except Exception:  # its learner fails, although all entries were applied
        log.exception("an experiment cannot be described", extra={"experiment": experiment.name})
        return failed_view(experiment, store, "its learner fails. The log has more.")


def healthy_view(experiment: Experiment, store: StoreView, now: int) -> ExperimentView:
    """Describe an experiment that has not failed."""
    return ExperimentView(
        **plain_fields(experiment),
        failure=None,
        arms=arm_views(experiment),
        share_never=share_never(experiment),
        verdict=verdict_view(experiment),
        show=show_view(experiment),
        costs=costs_view(experiment),
        delays=Histogram(list(EDGES), list(experiment.delays)),
        ages=Histogram(list(EDGES), experiment.ages.histogram(now)),
        history=history_view(experiment),
        reporting=reporting_view(experiment, now),
        arm_changes=len(experiment.past),
        store=store,
    )


def failed_view(experiment: Experiment, store: StoreView, why: str) -> ExperimentView:
    """Describe an experiment that has failed. Only what the journal itself says is known of it."""
    unknown = None, 0, None, 0, 0, None, None, None, None
    active = experiment.era.arms
    return ExperimentView(
        **plain_fields(experiment),
        failure=f"The experiment has failed, because {why}",
        arms=[ArmView(name, arm in active, *unknown) for arm, name in enumerate(experiment.arms)],
        share_never=share_never(experiment),
        verdict=no_verdict(experiment),
        show=None,
        costs=largest_costs(experiment),
        delays=Histogram(list(EDGES), [0] * len(EDGES)),
        ages=Histogram(list(EDGES), [0] * len(EDGES)),
        history=HistoryView([], [], [[] for _ in experiment.arms]),
        reporting=None,
        arm_changes=0,
        store=store,
    )


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
        **msgspec.structs.asdict(counts),
        "outstanding": counts.outstanding,
    }
