"""What callers and operators see of an experiment that has failed."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx

from belated.serve.domain.entries import Entry, EntryKind
from belated.serve.http import app
from belated.serve.service.service import Service
from tests.support.engines import Driven


def visit(tmp_path: Path, steps: Callable[[httpx.AsyncClient, str], Awaitable[None]]) -> None:
    """Serve a store with one healthy experiment, and one that failed after a decision."""
    driven = Driven(tmp_path)
    driven.create("healthy")
    driven.create("odd")
    decided = driven.decide("odd")[0].id
    bad = Entry(
        driven.clock.now, EntryKind.DECIDED, driven["odd"].seq, round=2, arm=0, probability=7.0, nonce=1, seen=3
    )
    driven.engine.journal.append([bad])
    driven.engine.journal.close()

    async def run() -> None:
        service.start(asyncio.get_running_loop())
        transport = httpx.ASGITransport(app.build(service))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            await steps(client, decided)

    service = Service.open(driven.path)
    try:
        asyncio.run(run())
    finally:
        service.stop()
    assert not service.failure


def test_a_failed_experiment_answers_409_and_the_others_go_on(tmp_path: Path) -> None:
    async def steps(client: httpx.AsyncClient, decided: str) -> None:
        for _ in range(2):
            answers = [
                await client.post("/v1/experiments/odd/decisions"),
                await client.post("/v1/experiments/odd/decisions/batch", json={"size": 3}),
                await client.post(f"/v1/decisions/{decided}/feedback", json={"reward": 1}),
                await client.post("/v1/experiments/odd/arms", json={"add": ["z"]}),
            ]
            assert [answer.status_code for answer in answers] == [409] * 4
            assert all("'odd' has failed, because the decisions drawn after" in one.json()["detail"] for one in answers)
            assert "amend" not in answers[2].json()["detail"]
            assert (await client.post("/v1/experiments/healthy/decisions")).status_code == 201
        told = (await client.post("/v1/feedback", json={"reports": [{"decision_id": decided, "reward": 1}]})).json()
        assert told["results"][0]["problem"]["status"] == 409
        assert (await client.get("/readyz")).status_code == (await client.get("/healthz")).status_code == 200

    visit(tmp_path, steps)


def test_a_failed_experiment_is_shown_listed_measured_and_exported(tmp_path: Path) -> None:
    async def steps(client: httpx.AsyncClient, decided: str) -> None:
        document = (await client.get("/v1/experiments/odd")).json()
        assert document["failure"].startswith("The experiment has failed, because the decisions drawn after entry 3")
        assert (document["decisions"], document["verdict"]["leader"]) == (2, None)
        assert (await client.get("/v1/experiments/healthy")).json()["failure"] is None
        listed = (await client.get("/v1/experiments")).json()["experiments"]
        assert [(one["name"], one["failed"]) for one in listed] == [("healthy", False), ("odd", True)]
        metrics = (await client.get("/metrics")).text
        assert 'belated_experiment_failed{experiment="odd"} 1.0' in metrics
        assert 'belated_experiment_failed{experiment="healthy"} 0.0' in metrics
        assert 'belated_decisions_total{experiment="odd"} 2.0' in metrics
        made = (await client.get("/v1/experiments/odd/decisions")).json()["decisions"]
        assert made[0]["decision_id"] == decided
        assert (await client.get(f"/v1/decisions/{decided}")).json()["arm"] in ("a", "b", "c")
        for route in ("events", "feedback", "export.csv", "export.parquet"):
            assert (await client.get(f"/v1/experiments/odd/{route}")).status_code == 200
        assert (await client.post("/v1/experiments/odd/close")).json()["closed_at"] is not None
        assert 'belated_experiment_failed{experiment="odd"} 0.0' in (await client.get("/metrics")).text

    visit(tmp_path, steps)
