"""Lists are read and described in the thread pool, so that a long list does not hold up other requests."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest

from belated.serve.http import app, decisions, experiments
from belated.serve.service.service import Service


@pytest.mark.parametrize(
    ("path", "module", "builder"),
    [
        ("/v1/experiments/layout/decisions", decisions, "of_found"),
        ("/v1/experiments/layout/feedback", decisions, "of_reported"),
        ("/v1/experiments/layout/events", experiments, "of_event"),
        ("/v1/decisions/{decision_id}", decisions, "of_found"),
        ("/v1/decisions/{decision_id}", decisions, "of_outcome"),
    ],
)
def test_documents_are_built_outside_the_event_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, module: Any, builder: str
) -> None:
    threads: list[int] = []
    build = getattr(module, builder)

    def watched(*arguments: Any) -> Any:
        threads.append(threading.get_ident())
        return build(*arguments)

    async def visit(service: Service) -> None:
        service.start(asyncio.get_running_loop())
        transport = httpx.ASGITransport(app.build(service))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            await client.post("/v1/experiments", json={"name": "layout", "arms": ["a", "b"]})
            made = (await client.post("/v1/experiments/layout/decisions")).json()
            await client.post(f"/v1/decisions/{made['decision_id']}/feedback", json={"reward": 1})
            monkeypatch.setattr(module, builder, watched)
            assert (await client.get(path.format(**made))).status_code == 200

    service = Service.open(tmp_path / "belated.db")
    try:
        asyncio.run(visit(service))
    finally:
        service.stop()
    assert threads
    assert threading.get_ident() not in threads
