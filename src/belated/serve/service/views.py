"""Describes experiments. With many arms that takes long, so a copy is described, without the engine's lock."""

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Final, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from belated.serve.domain.experiment import Experiment, Look
from belated.serve.domain.observations import EDGES, in_order
from belated.serve.domain.reporting import Comparison
from belated.serve.domain.still import Still, still, without_evidence
from belated.serve.domain.timestamps import MICROSECONDS, iso, iso_or_none
from belated.serve.service.descriptions import (
    ArmDetails,
    ArmReporting,
    ArmTotals,
    ArmView,
    ExperimentSummary,
    ExperimentTotals,
    ExperimentView,
    Histogram,
    HistoryView,
    PartMean,
    ReportingView,
    RestView,
    StoreView,
)
from belated.serve.service.failed_views import failed_view, plain_fields, share_never, state_of
from belated.serve.service.findings import comparison_views, costs_view, holdout_view, show_view, verdict_view
from belated.serve.service.selecting import drawn_arms, shown_arms

log = logging.getLogger("belated.views")
NO_LOCK: Final = nullcontext()  # for a caller that is alone
T = TypeVar("T")


def summary(experiment: Experiment) -> ExperimentSummary:
    """Describe an experiment for a list."""
    counts = experiment.counts
    created, closed = iso(experiment.created_at), iso_or_none(experiment.closed_at)
    return ExperimentSummary(
        experiment.name,
        created,
        closed,
        state_of(experiment),
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
                known, sums = experiment.evidence.known.copy(), experiment.evidence.totals.copy()
                distribution = experiment.shares()
            arms, is_closed = arm_totals(copied, distribution, known, sums), copied.closed_at is not None
            return ExperimentTotals(
                copied.name, copied.counts, proven, reporting_view(copied, now), arms=arms, is_closed=is_closed
            )
    except Exception:  # a failure of one experiment must not hide the others
        log.exception("an experiment cannot be measured", extra={"experiment": experiment.name})
    counts = msgspec.structs.replace(experiment.counts)
    return ExperimentTotals(experiment.name, counts, None, None, is_failed=experiment.closed_at is None)


def arm_totals(
    experiment: Experiment, distribution: Sequence[float], known: Sequence[int], losses: Sequence[float]
) -> list[ArmTotals]:
    """Return the numbers of all arms. `losses` are the sums of their known outcomes, as losses from 0 to 1."""
    outcome, offered = experiment.outcomes, experiment.offered()
    now = dict(zip(experiment.era.arms, distribution, strict=True))
    at_no_loss, loss_of_one = outcome.value(0.0), outcome.value(1.0) - outcome.value(0.0)
    return [
        ArmTotals(
            name,
            experiment.chosen[arm],
            experiment.chosen[arm] / offered[arm] if offered[arm] else None,
            now.get(arm),
            experiment.reports[arm],
            known[arm],
            known[arm] * at_no_loss + losses[arm] * loss_of_one,
        )
        for arm, name in enumerate(experiment.arms)
    ]


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
        values: tuple[float | None, float | None, float | None, float | None] = (None, None, None, None)
        if found is not None:
            mean, default = outcome.value(found.mean), experiment.settings.default
            assumed = None if default is None else (mean * found.known + default * found.open) / chosen
            low, high = sorted((outcome.value(found.low), outcome.value(found.high)))
            values = mean, assumed, low, high
        view = ArmView(experiment.arms[arm], arm in now, now.get(arm), *counted, *values)
        view.parts = part_means(experiment, arm)
        views.append(view)
    return views


def part_means(experiment: Experiment, arm: int) -> dict[str, PartMean] | UnsetType:
    """Return the averages of the parts of an arm's outcomes, if they are made of parts."""
    sums = experiment.parts
    if sums is None:
        return UNSET
    numbers = zip(experiment.settings.declared_parts, sums.counts[arm], sums.totals[arm], strict=True)
    return {name: PartMean(count, total / count if count else None) for name, count, total in numbers}


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
        holdout=holdout_view(experiment),
        arm_changes=len(experiment.past),
        store=store,
    )
