"""Prometheus metrics. Requests and commits are counted as they happen, experiments are read on demand.

What a process counts is summed over the workers of its server, whichever of them answers.
"""

import asyncio
import time
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple, final

import msgspec
from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from belated.serve.domain.refusals import Refusal
from belated.serve.http.boards import Board
from belated.serve.http.experiment_metrics import of_experiments
from belated.serve.service.service import Service

FAST: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1.0, 5.0)
PUBLISH_EVERY: Final = 1.0  # seconds between two times that a worker shares its numbers
FRESH: Final = 5.0  # seconds for which the state of a worker counts. What it has counted counts forever
Labels = tuple[tuple[str, str], ...]


class State(NamedTuple):
    """The present state of a process."""

    queue: int = 0
    lag_entries: int = 0
    lag_seconds: float = 0.0
    clock_offset: float = 0.0
    is_writable: bool = True


class Numbers(NamedTuple):
    """What a process has counted, by family, sample and labels, and its state at a time of the monotonic clock."""

    at: float
    counted: list[tuple[str, str, Labels, float]]
    state: State


DECODER: Final = msgspec.msgpack.Decoder(Numbers)


@final
class Metrics:
    """The metrics of one service, with its own registry, so that a process can have several services."""

    def __init__(self, service: Service, board: Board | None = None) -> None:
        self._registry, self._service, self._board = CollectorRegistry(), service, board
        here: Any = {"registry": self._registry}
        self.requests = Counter("belated_requests", "Requests by route and status", ["route", "status"], **here)
        self.seconds = Histogram("belated_request_seconds", "Time to answer", ["route"], buckets=FAST, **here)
        self.commits = Histogram("belated_commit_seconds", "Time of a durable commit", buckets=FAST, **here)
        self.entries = Counter("belated_journal_entries_written", "Entries written by this server", **here)
        self._exhausted = Counter("belated_exhausted", "Requests over a quota, answered 429", ["quota"], **here)
        self._before = [] if board is None else counted_in(board.read_own())  # by the worker before this one
        service.on_commit(self._committed)

    def _committed(self, seconds: float, entries: int) -> None:
        if entries:
            self.commits.observe(seconds)
            self.entries.inc(entries)

    def refused(self, refusal: Refusal) -> None:
        """Count a request that was refused because of a quota."""
        if refusal.quota:
            self._exhausted.labels(refusal.quota).inc()

    async def publish(self) -> None:
        """Share the numbers of this process with the other workers, again and again."""
        while self._board is not None:
            self.share()
            await asyncio.sleep(PUBLISH_EVERY)

    def share(self) -> None:
        """Share the numbers of this process with the other workers, if there are any."""
        if self._board is not None:
            self._board.write(msgspec.msgpack.encode(self._numbers()))

    def _numbers(self) -> Numbers:
        """Return the numbers of this process and of those before it in its place."""
        families, service = self._counting(), self._service
        mine = [(family.name, *sample[:3]) for family in families for sample in samples_of(family)]
        store = service.store_view()
        state = State(store.queue, store.lag_entries, store.lag_seconds, service.clock_offset(), store.writable)
        return Numbers(time.monotonic(), added([*mine, *self._before]), state)

    def _counting(self) -> list[Metric]:
        """Return the families of what this process counts."""
        misses, subjects = self._service.misses.total, self._service.misses.subjects
        unknown = CounterMetricFamily(
            "belated_unknown_decisions", "Decision ids that callers sent, but that do not exist", misses
        )
        without = CounterMetricFamily("belated_unknown_subjects", "Reports of subjects that have no decision", subjects)
        refused = CounterMetricFamily(
            "belated_connections_refused", "Requests that broke a limit of their connection", labels=["status"]
        )
        for status, count in self._service.refused_connections.copy().items():
            refused.add_metric([str(status)], count)
        return [*self._registry.collect(), unknown, without, refused]

    def _of_server(self) -> Iterator[Metric]:
        """Yield what all workers have counted, and their states."""
        mine = self._numbers()
        others = [] if self._board is None else [DECODER.decode(found) for found in self._board.read_others() if found]
        total = added([one for numbers in (mine, *others) for one in numbers.counted])
        for family in self._counting():
            summed = Metric(family.name, family.documentation, family.type)
            for name, sample, labels, value in total:
                if name == family.name:
                    summed.add_sample(sample, dict(labels), value)
            yield summed
        fresh = [mine.state, *(one.state for one in others if one.at > mine.at - FRESH)]
        yield from states(fresh)

    def _of_store(self) -> Iterator[Metric]:
        store = self._service.store_view()
        yield GaugeMetricFamily("belated_journal_seq", "The newest journal entry", store.entries)
        yield GaugeMetricFamily("belated_store_bytes", "The store on disk", store.bytes)

    def text(self, only: str | None = None, *, all_arms: bool = False) -> tuple[bytes, str]:
        """Return the metrics as text, and its media type. `only` is the one experiment that the caller may see."""
        experiments = [one for one in self._service.measure().experiments if only in (None, one.name)]
        families = list(of_experiments(experiments, all_arms=all_arms))
        if only is None:
            families += [*self._of_server(), *self._of_store()]
        return generate_latest(Collected(families)), CONTENT_TYPE_LATEST


class Collected(NamedTuple):
    """Families in place of a registry."""

    families: list[Metric]

    def collect(self) -> Iterable[Metric]:
        """Return the families."""
        return self.families


def counted_in(content: bytes) -> list[tuple[str, str, Labels, float]]:
    """Return what a worker had counted when it wrote this."""
    return DECODER.decode(content).counted if content else []


def samples_of(family: Metric) -> Iterator[tuple[str, Labels, float]]:
    """Yield the samples of a family. When a sample was created is of no use in a sum."""
    for sample in family.samples:
        if not sample.name.endswith("_created"):
            yield sample.name, tuple(sample.labels.items()), sample.value


def added(found: Iterable[tuple[str, str, Labels, float]]) -> list[tuple[str, str, Labels, float]]:
    """Add up the values of the same sample."""
    sums: dict[tuple[str, str, Labels], float] = {}
    for family, name, labels, value in found:
        sums[family, name, labels] = sums.get((family, name, labels), 0.0) + value
    return [(*key, value) for key, value in sums.items()]


def states(fresh: list[State]) -> Iterator[Metric]:
    """Yield the state of a server: the sum of what waits, and otherwise the worst of its workers."""
    offset = max((one.clock_offset for one in fresh), key=abs)
    yield GaugeMetricFamily("belated_workers", "Processes of this server", len(fresh))
    writable, waiting = min(one.is_writable for one in fresh), sum(one.queue for one in fresh)
    yield GaugeMetricFamily("belated_store_writable", "1 if decisions and reports are accepted", int(writable))
    yield GaugeMetricFamily("belated_queue", "Decisions and reports that wait for the disk", waiting)
    lag_entries, lag_seconds = max(one.lag_entries for one in fresh), max(one.lag_seconds for one in fresh)
    yield GaugeMetricFamily("belated_lag_entries", "Journal entries that are not applied yet", lag_entries)
    yield GaugeMetricFamily("belated_lag_seconds", "Seconds since this server was last caught up", lag_seconds)
    said = "Seconds by which this machine's clock is ahead of the time that is used"
    yield GaugeMetricFamily("belated_clock_offset_seconds", said, offset)
