"""Prometheus metrics. Requests and commits are counted as they happen, experiments are read on demand."""

from collections.abc import Iterator
from typing import Any, final

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from belated.serve.domain.refusals import Refusal
from belated.serve.service.descriptions import ExperimentTotals
from belated.serve.service.service import Service

FAST = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1.0, 5.0)


@final
class Metrics:
    """The metrics of one service, with its own registry, so that a process can have several services."""

    def __init__(self, service: Service) -> None:
        self._registry, self._service = CollectorRegistry(), service
        here: Any = {"registry": self._registry}
        self.requests = Counter("belated_requests", "Requests by route and status", ["route", "status"], **here)
        self.seconds = Histogram("belated_request_seconds", "Time to answer", ["route"], buckets=FAST, **here)
        self.commits = Histogram("belated_commit_seconds", "Time of a durable commit", buckets=FAST, **here)
        self.entries = Counter("belated_journal_entries_written", "Entries written by this process", **here)
        self._exhausted = Counter("belated_exhausted", "Requests over a quota, answered 429", ["quota"], **here)
        self._registry.register(self)
        service.on_commit(self._committed)

    def _committed(self, seconds: float, entries: int) -> None:
        if entries:
            self.commits.observe(seconds)
            self.entries.inc(entries)

    def refused(self, refusal: Refusal) -> None:
        """Count a request that was refused because of a quota."""
        if refusal.quota:
            self._exhausted.labels(refusal.quota).inc()

    def collect(self) -> Iterator[Metric]:
        """Yield the numbers of the experiments and the store."""
        names = ("decisions", "reported", "expired", "late", "amended", "removed")
        counters = {n: CounterMetricFamily(f"belated_{n}", f"Outcomes: {n}", labels=["experiment"]) for n in names}
        counters["decisions"].documentation = "Decisions made"
        counters["removed"].documentation = "Decisions archived or erased without an outcome"
        open_ = GaugeMetricFamily("belated_outstanding", "Decisions without an outcome yet", labels=["experiment"])
        proven = GaugeMetricFamily(
            "belated_proven_regret", "Proven bound on the regret, in losses", labels=["experiment"]
        )
        failed = GaugeMetricFamily(
            "belated_experiment_failed", "1 if it makes no decisions because it has failed", labels=["experiment"]
        )
        experiments, store = self._service.measure()
        yield from reporting(experiments)
        for experiment in experiments:
            for name, family in counters.items():
                family.add_metric([experiment.name], getattr(experiment.counts, name))
            open_.add_metric([experiment.name], experiment.counts.outstanding)
            failed.add_metric([experiment.name], int(experiment.is_failed))
            if experiment.proven is not None:
                proven.add_metric([experiment.name], experiment.proven)
        yield from (*counters.values(), open_, proven, failed)
        yield GaugeMetricFamily("belated_journal_seq", "The newest journal entry", store.entries)
        yield GaugeMetricFamily("belated_store_bytes", "The store on disk", store.bytes)
        yield GaugeMetricFamily(
            "belated_store_writable", "1 if decisions and reports are accepted", int(store.writable)
        )
        yield GaugeMetricFamily("belated_lag_entries", "Journal entries that are not applied yet", store.lag_entries)
        yield GaugeMetricFamily(
            "belated_lag_seconds", "Seconds since this server was last caught up", store.lag_seconds
        )
        yield CounterMetricFamily(
            "belated_unknown_decisions",
            "Decision ids that callers sent, but that do not exist",
            self._service.misses.total,
        )
        refused = CounterMetricFamily(
            "belated_connections_refused", "Requests that broke a limit of their connection", labels=["status"]
        )
        for status, count in self._service.refused_connections.copy().items():
            refused.add_metric([str(status)], count)
        yield refused
        yield GaugeMetricFamily(
            "belated_clock_offset_seconds",
            "Seconds by which this machine's clock is ahead of the time that is used",
            self._service.clock_offset(),
        )
        yield GaugeMetricFamily("belated_queue", "Decisions and reports that wait for the disk", store.queue)

    def text(self) -> tuple[bytes, str]:
        """Return the metrics as text, and its media type."""
        return generate_latest(self._registry), CONTENT_TYPE_LATEST


def reporting(experiments: list[ExperimentTotals]) -> Iterator[Metric]:
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
        for arm in [] if found is None else found.arms:
            if arm.share is not None:
                share.add_metric([experiment.name, arm.name], arm.share)
    yield from (warning, share)
