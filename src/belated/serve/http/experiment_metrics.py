"""The metrics of experiments and of their arms."""

from collections.abc import Iterator
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from belated.serve.service.descriptions import ExperimentTotals

MOST_ARMS: Final = 50  # of an experiment. One with more has no metrics of its arms, unless somebody asks for all


def of_experiments(experiments: list[ExperimentTotals], *, all_arms: bool = False) -> Iterator[Metric]:
    """Yield the numbers of the experiments, and of their arms as far as `shows_arms` says."""
    yield from reporting(experiments, all_arms=all_arms)
    yield from totals(experiments)
    yield from of_arms(experiments, all_arms=all_arms)


def totals(experiments: list[ExperimentTotals]) -> Iterator[Metric]:
    """Yield the numbers of the experiments."""
    names = ("decisions", "reported", "expired", "late", "amended", "removed")
    counters = {n: CounterMetricFamily(f"belated_{n}", f"Outcomes: {n}", labels=["experiment"]) for n in names}
    counters["decisions"].documentation = "Decisions made"
    counters["removed"].documentation = "Decisions archived or erased without an outcome"
    open_ = GaugeMetricFamily("belated_outstanding", "Decisions without an outcome yet", labels=["experiment"])
    proven = GaugeMetricFamily("belated_proven_regret", "Proven bound on the regret, in losses", labels=["experiment"])
    failed = GaugeMetricFamily(
        "belated_experiment_failed", "1 if it makes no decisions because it has failed", labels=["experiment"]
    )
    for experiment in experiments:
        for name, family in counters.items():
            family.add_metric([experiment.name], getattr(experiment.counts, name))
        open_.add_metric([experiment.name], experiment.counts.outstanding)
        failed.add_metric([experiment.name], int(experiment.is_failed))
        if experiment.proven is not None:
            proven.add_metric([experiment.name], experiment.proven)
    yield from (*counters.values(), open_, proven, failed)


def shows_arms(experiment: ExperimentTotals, *, all_arms: bool) -> bool:
    """Whether the metrics have the arms of an experiment one by one."""
    if experiment.arms is None:
        return False
    return all_arms or (not experiment.is_closed and len(experiment.arms) <= MOST_ARMS)


def of_arms(experiments: list[ExperimentTotals], *, all_arms: bool) -> Iterator[Metric]:
    """Yield the numbers of the arms, and of how many arms they are left out."""
    by = ["experiment", "arm"]
    chosen = CounterMetricFamily("belated_arm_decisions", "Decisions for an arm", labels=by)
    reports = CounterMetricFamily("belated_arm_reported", "Outcomes that were reported for an arm", labels=by)
    known = GaugeMetricFamily("belated_arm_known", "Decisions for an arm whose outcome is known", labels=by)
    sums = GaugeMetricFamily("belated_arm_outcome_sum", "Sum of the known outcomes, in their units", labels=by)
    share = GaugeMetricFamily("belated_arm_share", "Decisions for an arm, of those that it took part in", labels=by)
    chance = GaugeMetricFamily("belated_arm_probability", "That the next decision is for this arm", labels=by)
    hidden = GaugeMetricFamily(
        "belated_arms_left_out", "Arms without metrics of their own. /metrics?arms=all has all", labels=["experiment"]
    )
    for experiment in experiments:
        is_shown = shows_arms(experiment, all_arms=all_arms)
        hidden.add_metric([experiment.name], 0 if is_shown else len(experiment.arms or []))
        for arm in experiment.arms or [] if is_shown else []:
            label = [experiment.name, arm.name]
            chosen.add_metric(label, arm.chosen)
            reports.add_metric(label, arm.reports)
            known.add_metric(label, arm.known)
            sums.add_metric(label, arm.outcomes)
            for family, value in ((share, arm.share), (chance, arm.probability)):
                if value is not None:
                    family.add_metric(label, value)
    yield from (chosen, reports, known, sums, share, chance, hidden)


def reporting(experiments: list[ExperimentTotals], *, all_arms: bool) -> Iterator[Metric]:
    """Yield how often the arms report. With a default outcome nobody compares them, so there is no share."""
    warning = GaugeMetricFamily(
        "belated_reporting_warning", "1 if an arm reports less often than the others", labels=["experiment"]
    )
    share = GaugeMetricFamily(
        "belated_reported_share", "Reports by decision, if old enough to be judged", labels=["experiment", "arm"]
    )
    for experiment in experiments:
        found = experiment.reporting
        warning.add_metric([experiment.name], int(found is not None and found.warning))
        for arm in found.arms if found is not None and shows_arms(experiment, all_arms=all_arms) else []:
            if arm.share is not None:
                share.add_metric([experiment.name, arm.name], arm.share)
    yield from (warning, share)
