"""Documents that describe experiments and the store. The API returns them and the dashboard draws them."""

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Annotated, Any, Final, NamedTuple, TypeVar

import msgspec
from msgspec import Meta

from belated.serve.domain.experiment import Experiment, Look
from belated.serve.domain.observations import EDGES, Counts, in_order
from belated.serve.domain.reporting import Comparison
from belated.serve.domain.settings import OutcomeChoice, TuningChoice
from belated.serve.domain.still import Still, still, without_evidence
from belated.serve.domain.timestamps import MICROSECONDS
from belated.serve.service.findings import (
    ArmComparison,
    CostsView,
    ShowView,
    VerdictView,
    comparison_views,
    costs_view,
    largest_costs,
    no_verdict,
    show_view,
    verdict_view,
)
from belated.serve.service.selecting import MOST_ARMS, drawn_arms, shown_arms

log = logging.getLogger("belated.views")
NO_LOCK: Final = nullcontext()  # for a caller that is alone
T = TypeVar("T")
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


class RestView(msgspec.Struct):
    """The arms that are not in the document, summed up. `GET /v1/experiments/{name}/arms` has each of them."""

    arms: int
    active: Annotated[int, Meta(description="How many of them can be chosen.")]
    probability: Annotated[float, Meta(description="That the next decision chooses one of them.")]
    chosen: int
    reports: int
    open: int


class HistoryView(msgspec.Struct):
    """The arms' probabilities over time as probabilities[arm][point], null where an arm did not take part."""

    round: list[int]
    at: Annotated[list[float], Meta(description="Seconds since 1970.")]
    probabilities: Annotated[
        list[list[float | None] | None],
        Meta(description="In the order of `arms`. With more than 20 arms it is null for all but 20 of them."),
    ]
    others: Annotated[list[float], Meta(description="All other arms together. null if each has its own.")] | None


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
    arms: Annotated[
        list[ArmView],
        Meta(
            description="All arms that ever took part, up to 100. If there are more, these are the leader, the arm "
            "that is the hardest to tell from it, the likeliest, those that report less often, and then the best."
        ),
    ]
    rest: Annotated[RestView, Meta(description="null if `arms` has all.")] | None
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


class ArmDetails(ArmView):
    """An arm in the list of all arms."""

    comparison: Annotated[ArmComparison, Meta(description="null for the leader and for retired arms.")] | None
    reporting: Annotated[ArmReporting, Meta(description="null with a default outcome.")] | None


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


def totals(experiment: Experiment, now: int, lock: AbstractContextManager[object] = NO_LOCK) -> ExperimentTotals:
    """Return the numbers for the metrics. Holds the engine's lock while the experiment is copied."""
    try:
        if experiment.failure is None:
            with lock:
                copied, proven = without_evidence(experiment), experiment.proven()
            return ExperimentTotals(copied.name, copied.counts, proven, reporting_view(copied, now))
    except Exception:  # a failure of one experiment must not hide the others
        log.exception("an experiment cannot be measured", extra={"experiment": experiment.name})
    counts = msgspec.structs.replace(experiment.counts)
    return ExperimentTotals(experiment.name, counts, None, None, is_failed=experiment.closed_at is None)


def arm_views(still: Still, look: Look, shown: Sequence[int]) -> list[ArmView]:
    """Describe these arms, which may be retired."""
    experiment = still.experiment
    outcome, offered = experiment.outcomes, experiment.offered()
    now = dict(zip(experiment.era.arms, still.distribution, strict=True))
    views = []
    for arm in shown:
        chosen, found = experiment.chosen[arm], look.means[arm]
        share = chosen / offered[arm] if offered[arm] else None
        counted = chosen, share, experiment.reports[arm], chosen - (0 if found is None else found.known)
        values: tuple[float | None, ...] = (None, None, None, None)
        if found is not None:
            mean, default = outcome.value(found.mean), experiment.settings.default_outcome
            assumed = None if default is None else (mean * found.known + default * found.open) / chosen
            values = (mean, assumed, *sorted((outcome.value(found.low), outcome.value(found.high))))
        views.append(ArmView(experiment.arms[arm], arm in now, now.get(arm), *counted, *values))
    return views


def rest_view(still: Still, look: Look, shown: Sequence[int]) -> RestView | None:
    """Sum up the arms that are not shown."""
    experiment, hidden = still.experiment, set(range(len(still.experiment.arms))).difference(shown)
    if not hidden:
        return None
    now = [p for arm, p in zip(experiment.era.arms, still.distribution, strict=True) if arm in hidden]
    chosen, reports = (sum(counts[arm] for arm in hidden) for counts in (experiment.chosen, experiment.reports))
    known = sum(found.known for arm in hidden if (found := look.means[arm]) is not None)
    return RestView(len(hidden), len(now), sum(now), chosen, reports, chosen - known)


def history_view(still: Still, shown: Sequence[int]) -> HistoryView:
    """Describe the history of these arms, in the same order. Points from before an arm was added lack it."""
    history, drawn = still.experiment.history, drawn_arms(still, shown)
    series: list[list[float | None] | None] = [
        [point[arm] if arm < len(point) else None for point in history.points] if arm in drawn else None
        for arm in shown
    ]
    others = None
    if len(drawn) < len(still.experiment.arms):
        told = zip(*(one for one in series if one is not None), strict=True)
        others = [max(0.0, 1 - sum(p for p in point if p is not None)) for point in told]
    return HistoryView(list(history.rounds), [at / MICROSECONDS for at in in_order(history.times)], series, others)


def reporting_view(
    experiment: Experiment, now: int, shown: Sequence[int] | None = None, found: list[Comparison] | None = None
) -> ReportingView | None:
    """Compare how often the arms report. If an arm is retired, or the experiment closed, nothing is left to warn of.

    Describes the arms in `shown`, or all. `found` is what a comparison has found already.
    """
    if experiment.reporting is None:
        return None
    present = set(experiment.era.arms if experiment.closed_at is None else [])
    compared, arms = experiment.comparisons(now) if found is None else found, []
    for arm in range(len(compared)) if shown is None else shown:
        one = compared[arm]
        share = one.reports / one.decisions if one.decisions else None
        is_warned = one.is_warned and arm in present
        arms.append(ArmReporting(experiment.arms[arm], one.decisions, one.reports, share, one.less, is_warned))
    is_any = any(one.is_warned and arm in present for arm, one in enumerate(compared))
    after = experiment.reporting.judged_after(experiment.settings.reward_wait)
    return ReportingView(is_any, after, arms)


def arm_details(still: Still, now: int, shown: Sequence[int]) -> list[ArmDetails]:
    """Describe these arms, compared with the leader and with each other."""
    experiment = still.experiment
    views = arm_views(still, experiment.look(), shown)
    compared = {one.name: one for one in comparison_views(experiment, set(shown))}
    reporting = reporting_view(experiment, now, shown)
    reports = {one.name: one for one in ([] if reporting is None else reporting.arms)}
    return [
        ArmDetails(**msgspec.structs.asdict(one), comparison=compared.get(one.name), reporting=reports.get(one.name))
        for one in views
    ]


def share_never(experiment: Experiment) -> float | None:
    """Return the share of finished decisions without an outcome."""
    counts, settings = experiment.counts, experiment.settings
    closed = counts.reported + counts.expired
    if not closed or settings.reward_wait is None or settings.default_outcome is not None:
        return None
    return (counts.expired - counts.late) / closed


def described(
    experiment: Experiment, lock: AbstractContextManager[object], make: Callable[[Still], T], failed: Callable[[str], T]
) -> T:
    """Describe a copy of an experiment, so that the engine's lock is held only while it is copied.

    If the experiment has failed, or its learner fails now, `failed` describes it, and is told why.
    """
    why = f"{experiment.failure}."
    try:
        if experiment.failure is None:
            with lock:
                copied = still(experiment)
            found = make(copied)
            experiment.remember(copied.experiment.look())
            return found
    except Exception:  # its learner fails, although all entries were applied
        log.exception("an experiment cannot be described", extra={"experiment": experiment.name})
        why = "its learner fails. The log has more."
    with lock:
        return failed(why)


def view(
    experiment: Experiment, store: StoreView, now: int, lock: AbstractContextManager[object] = NO_LOCK
) -> ExperimentView:
    """Describe an experiment at one moment."""
    return described(
        experiment, lock, lambda copied: describe(copied, store, now), lambda why: failed_view(experiment, store, why)
    )


def describe(still: Still, store: StoreView, now: int) -> ExperimentView:
    """Describe an experiment as it was at one moment. With many arms this takes long, and needs no lock."""
    experiment = still.experiment
    look, compared = experiment.look(), experiment.comparisons(now)
    shown = shown_arms(still, look, compared)
    return ExperimentView(
        **plain_fields(experiment),
        failure=None,
        arms=arm_views(still, look, shown),
        rest=rest_view(still, look, shown),
        share_never=share_never(experiment),
        verdict=verdict_view(experiment, shown),
        show=show_view(experiment),
        costs=costs_view(experiment, still.costs()),
        delays=Histogram(list(EDGES), list(experiment.delays)),
        ages=Histogram(list(EDGES), experiment.ages.histogram(now)),
        history=history_view(still, shown),
        reporting=reporting_view(experiment, now, shown, compared),
        arm_changes=len(experiment.past),
        store=store,
    )


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
