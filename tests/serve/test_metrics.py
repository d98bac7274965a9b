"""Metrics are summed over the workers of a server, and have the numbers of each arm."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from belated.serve.domain.settings import OutcomeChoice
from belated.serve.engine.engine import Engine
from belated.serve.http import boards, metrics
from belated.serve.http.boards import Board, Boards
from belated.serve.http.experiment_metrics import MOST_ARMS
from belated.serve.http.metrics import Metrics
from belated.serve.service.managing import KeyWish, create
from belated.serve.service.service import Service
from tests.support.engines import Driven
from tests.support.in_process import Caller, visit
from tests.support.memory_journal import MemoryJournal, MemoryStore

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def samples(text: bytes | str) -> Samples:
    """What Prometheus reads."""
    families = text_string_to_metric_families(text.decode() if isinstance(text, bytes) else text)
    return {(s.name, tuple(sorted(s.labels.items()))): s.value for family in families for s in family.samples}


def of(found: Samples, name: str) -> dict[tuple[str, ...], float]:
    """The samples of one name, by the values of their labels."""
    return {tuple(value for _, value in labels): value for (one, labels), value in found.items() if one == name}


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def workers(store: MemoryStore) -> Iterator[list[Metrics]]:
    """Three workers of one server, in one process."""
    shared = Boards(3)
    services = [Service(Engine(MemoryJournal(store))) for _ in range(3)]
    yield [Metrics(service, Board(shared, number)) for number, service in enumerate(services)]
    for service in services:
        service.close()


def test_any_worker_answers_with_the_sum_of_all(workers: list[Metrics]) -> None:
    for number, worker in enumerate(workers):
        for _ in range(number + 1):
            worker.requests.labels("GET /healthz", "200").inc()
            worker.seconds.labels("/healthz").observe(0.003)
        worker._service.refused_connections[431] += 10 * number
        worker._service.misses.total += 1
        worker.share()
    workers[1].requests.labels("GET /only-here", "404").inc(5)
    workers[1].share()
    for worker in workers:
        found = samples(worker.text()[0])
        assert of(found, "belated_requests_total") == {("GET /healthz", "200"): 6, ("GET /only-here", "404"): 5}
        assert of(found, "belated_request_seconds_count") == {("/healthz",): 6}
        assert of(found, "belated_request_seconds_sum")["/healthz",] == pytest.approx(0.018)
        buckets = of(found, "belated_request_seconds_bucket")
        assert (buckets["0.0025", "/healthz"], buckets["0.005", "/healthz"], buckets["+Inf", "/healthz"]) == (0, 6, 6)
        assert of(found, "belated_connections_refused_total") == {("431",): 30}
        assert of(found, "belated_unknown_decisions_total") == {(): 3}
        assert of(found, "belated_workers") == {(): 3}


def test_a_replaced_worker_counts_on_so_that_no_sum_falls(workers: list[Metrics], store: MemoryStore) -> None:
    for worker in workers:
        worker.requests.labels("GET /healthz", "200").inc(10)
        worker.share()
    service = Service(Engine(MemoryJournal(store)))
    new = Metrics(service, workers[1]._board)
    for answering in (new, workers[0]):
        assert of(samples(answering.text()[0]), "belated_requests_total") == {("GET /healthz", "200"): 30}
    new.requests.labels("GET /healthz", "200").inc()
    new.share()
    again = Metrics(service, workers[1]._board)
    for answering in (again, workers[2]):
        assert of(samples(answering.text()[0]), "belated_requests_total") == {("GET /healthz", "200"): 31}
    service.close()


def test_the_state_of_a_worker_that_has_ended_counts_no_longer(
    workers: list[Metrics], monkeypatch: pytest.MonkeyPatch
) -> None:
    for worker in workers:
        worker.share()
    monkeypatch.setattr(metrics, "FRESH", 0.0)
    assert of(samples(workers[0].text()[0]), "belated_workers") == {(): 1}


def test_the_worst_of_the_workers_is_told() -> None:
    states = [metrics.State(3, 5, 0.5, -7.0), metrics.State(4, 2, 9.0, 2.0, is_writable=False)]
    found = {family.name: family.samples[0].value for family in metrics.states(states)}
    assert found == {
        "belated_workers": 2,
        "belated_store_writable": 0,
        "belated_queue": 7,
        "belated_lag_entries": 5,
        "belated_lag_seconds": 9.0,
        "belated_clock_offset_seconds": -7.0,
    }


def test_a_worker_that_is_killed_while_it_writes_leaves_what_it_wrote_before() -> None:
    shared = Boards(2)
    for number in range(5):
        shared.write(0, b"%d" % number * 1000)
        shared.write(1, b"other")
    begin = 1 + boards.HALF * (1 - shared._memory[0])
    shared._memory[begin : begin + 20] = b"\xff" * 20  # the next one, half written
    assert shared.read(0) == b"4" * 1000
    assert shared.read(1) == b"other"
    with pytest.raises(ValueError, match="more than"):
        shared.write(0, bytes(boards.HALF))
    assert shared.read(0) == b"4" * 1000


@pytest.mark.parametrize("better", ["higher", "lower"])
def test_each_arm_has_its_counts_shares_and_sums(tmp_path: Path, better: Any) -> None:
    driven = Driven(tmp_path)
    driven.create("layout", ("a", "b"), outcome=OutcomeChoice(-10, 30, better))
    chosen, sums, known = {"a": 0, "b": 0}, {"a": 0.0, "b": 0.0}, {"a": 0, "b": 0}
    for number in range(40):
        [one] = driven.decide()
        chosen[one.arm] += 1
        if number % 3:
            value = float(number % 7) - 3
            driven.tell(one.id, value, word="reward" if better == "higher" else "loss")
            sums[one.arm] += value
            known[one.arm] += 1
    found = samples(Metrics(Service(driven.engine)).text()[0])
    by_arm = {
        name: of(found, f"belated_arm_{name}") for name in ("decisions_total", "reported_total", "known", "share")
    }
    for arm in "ab":
        assert by_arm["decisions_total"][arm, "layout"] == chosen[arm]
        assert by_arm["reported_total"][arm, "layout"] == by_arm["known"][arm, "layout"] == known[arm]
        assert by_arm["share"][arm, "layout"] == chosen[arm] / 40
        assert of(found, "belated_arm_outcome_sum")[arm, "layout"] == pytest.approx(sums[arm])
    assert sum(of(found, "belated_arm_probability").values()) == pytest.approx(1.0)
    assert of(found, "belated_arms_left_out") == {("layout",): 0}


def test_many_arms_are_left_out_and_it_is_told(tmp_path: Path) -> None:
    async def work(caller: Caller) -> None:
        for name, number in (("small", MOST_ARMS), ("large", MOST_ARMS + 1), ("closed", 2)):
            await caller.post("/v1/experiments", {"name": name, "arms": [f"{n}" for n in range(number)]})
        await caller.post("/v1/experiments/closed/close")
        for query, shown in (("", {"small"}), ("?arms=all", {"small", "large", "closed"})):
            found = samples((await caller.get(f"/metrics{query}")).text)
            for name in ("belated_arm_decisions_total", "belated_reported_share", "belated_arm_probability"):
                assert {labels[-1] for labels in of(found, name)} <= shown
            assert {labels[-1] for labels in of(found, "belated_arm_decisions_total")} == shown
            hidden = {"small": 0, "large": MOST_ARMS + 1, "closed": 2}
            expected = {(name,): 0 if name in shown else number for name, number in hidden.items()}
            assert of(found, "belated_arms_left_out") == expected
        assert (await caller.get("/metrics?arms=some")).status_code == 422

    visit(Service(Engine(MemoryJournal(MemoryStore()))), work)
    assert not list(tmp_path.iterdir())


def test_a_key_of_one_experiment_sees_only_its_metrics() -> None:
    journal = MemoryJournal(MemoryStore())
    admin = create(journal, KeyWish(["admin"]), 1).text
    mine = create(journal, KeyWish(["metrics"], experiment="mine"), 1).text

    async def work(caller: Caller) -> None:
        for name in ("mine", "yours"):
            await caller.having(admin).post("/v1/experiments", {"name": name, "arms": ["a"]})
        assert (await caller.having(mine).get("/v1/experiments/mine")).status_code == 403
        text = (await caller.having(mine).get("/metrics")).text
        assert of(samples(text), "belated_decisions_total") == {("mine",): 0}
        assert "yours" not in text
        assert "belated_requests" not in text
        assert "yours" in (await caller.having(admin).get("/metrics")).text

    visit(Service(Engine(journal)), work)


def test_numbers_are_published_again_and_again(workers: list[Metrics], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "PUBLISH_EVERY", 0.01)

    async def publish() -> None:
        task = asyncio.create_task(workers[0].publish())
        await asyncio.sleep(0.05)
        workers[0].requests.labels("GET /healthz", "200").inc(7)
        await asyncio.sleep(0.05)
        task.cancel()

    asyncio.run(publish())
    assert of(samples(workers[1].text()[0]), "belated_requests_total") == {("GET /healthz", "200"): 7}
