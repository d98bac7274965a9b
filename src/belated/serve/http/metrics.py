"""Prometheus metrics: requests and commits as they happen, the experiments' numbers when they are asked for."""

from collections.abc import Iterator
from typing import Any, final

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from belated.serve.service.service import Service

FAST = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1.0, 5.0)


@final
class Metrics:
    """What is measured; a registry of its own, so that several services can live in one process."""

    def __init__(self, service: Service) -> None:
        self._registry, self._service = CollectorRegistry(), service
        here: Any = {"registry": self._registry}
        self.requests = Counter("belated_requests", "Requests by route and status", ["route", "status"], **here)
        self.seconds = Histogram("belated_request_seconds", "Time to answer", ["route"], buckets=FAST, **here)
        self.commits = Histogram("belated_commit_seconds", "Time of a durable commit", buckets=FAST, **here)
        self.entries = Counter("belated_journal_entries_written", "Entries written by this process", **here)
        self._registry.register(self)
        service.on_commit(self._committed)

    def _committed(self, seconds: float, entries: int) -> None:
        if entries:
            self.commits.observe(seconds)
            self.entries.inc(entries)

    def collect(self) -> Iterator[Metric]:
        """The numbers of the fold and the store, read when Prometheus asks."""
        names = ("decisions", "reported", "expired", "late", "amended")
        counters = {n: CounterMetricFamily(f"belated_{n}", f"Outcomes: {n}", labels=["experiment"]) for n in names}
        counters["decisions"].documentation = "Decisions made"
        open_ = GaugeMetricFamily("belated_outstanding", "Decisions whose outcome has not come", labels=["experiment"])
        proven = GaugeMetricFamily("belated_proven_regret", "At most so much lost, as losses", labels=["experiment"])
        experiments, store = self._service.measure()
        for experiment in experiments:
            for name, family in counters.items():
                family.add_metric([experiment.name], getattr(experiment.counts, name))
            open_.add_metric([experiment.name], experiment.counts.outstanding)
            proven.add_metric([experiment.name], experiment.proven)
        yield from (*counters.values(), open_, proven)
        yield GaugeMetricFamily("belated_journal_seq", "The newest journal entry", store.entries)
        yield GaugeMetricFamily("belated_store_bytes", "The store on disk", store.bytes)
        yield GaugeMetricFamily("belated_store_writable", "1: decisions and reports are accepted", int(store.writable))
        yield GaugeMetricFamily("belated_lag_entries", "Entries of the journal not folded yet", store.lag_entries)
        yield GaugeMetricFamily("belated_lag_seconds", "For so long not level with the journal", store.lag_seconds)
        yield GaugeMetricFamily("belated_queue", "Decisions and reports that wait for the disk", store.queue)

    def text(self) -> tuple[bytes, str]:
        """What Prometheus reads."""
        return generate_latest(self._registry), CONTENT_TYPE_LATEST
