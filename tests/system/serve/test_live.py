"""A stream sends the state at once and after each change. It ends when the service stops or the client leaves."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from starlette.applications import Starlette

from belated.serve.http import live
from belated.serve.http.app import build
from belated.serve.service.service import Service
from tests.support.engines import Driven
from tests.support.service import NO_TLS, Served

LAYOUT = {"name": "layout", "arms": ["blue", "green", "red"]}


def documents(answer: httpx.Response) -> Iterator[Any]:
    for line in answer.iter_lines():
        if line:
            assert line.startswith("data: ")
            yield msgspec.json.decode(line.removeprefix("data: "))


@pytest.mark.parametrize("path", ["/v1/live", "/v1/experiments/layout/live"])
def test_a_listener_hears_of_what_happens(server: Served, path: str) -> None:
    server.post("/v1/experiments", LAYOUT)
    with httpx.stream("GET", server.url + path, timeout=30, verify=NO_TLS) as answer:
        assert answer.headers["content-type"] == "text/event-stream"
        heard = (one.get("experiments", [one])[0]["decisions"] for one in documents(answer))
        assert next(heard) == 0
        server.post("/v1/experiments/layout/decisions")
        assert next(heard) == 1
        server.post("/v1/experiments/layout/decisions/batch", {"size": 9})
        assert next(heard) == 10
        assert server.stop() == 0  # even with an open stream
        assert list(heard) == []


def test_a_stream_of_nothing_is_not_found(server: Served) -> None:
    answer = server.get("/v1/experiments/nobody/live")
    assert (answer.status_code, answer.headers["content-type"]) == (404, "application/problem+json")


async def listen(app: Starlette, path: str, is_enough: Any) -> list[bytes]:
    """Return what a client receives. It disconnects as soon as `is_enough` is true."""
    sent: list[bytes] = []
    left = asyncio.Event()

    async def receive() -> Any:
        await left.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message.get("body", b""))
        if is_enough(sent):
            left.set()

    headers = [(b"host", b"localhost")]
    scope = {"type": "http", "method": "GET", "path": path, "query_string": b"", "headers": headers, "root_path": ""}
    await asyncio.wait_for(app(scope, receive, send), 20)
    return sent


@pytest.mark.parametrize("path", ["/v1/live", "/v1/experiments/layout/live"])
def test_a_stream_ends_when_nobody_listens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    """Otherwise a closed page would cost work forever."""
    monkeypatch.setattr(live, "PAUSE", 0.001)
    monkeypatch.setattr(live, "AGEING", 0.01)
    driven = Driven(tmp_path)
    driven.create()
    app = build(Service(driven.engine))
    sent = asyncio.run(listen(app, path, lambda sent: len(sent) == 3))
    assert 3 <= len(sent) <= 6
    assert sent[-1] == b""


def test_who_has_caught_up_says_so_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The end of a lag is news by itself, because the journal may have no further entries."""
    monkeypatch.setattr(live, "PAUSE", 0.001)
    monkeypatch.setattr(live, "APART", 0.0)
    monkeypatch.setattr(live, "AGEING", 60.0)
    driven = Driven(tmp_path)
    driven.create()
    service = Service(driven.engine)
    service._writer.health = service._writer.health._replace(lag_entries=50)

    def is_enough(sent: list[bytes]) -> bool:
        heard = len([one for one in sent if one])
        service._writer.health = service._writer.health._replace(lag_entries=0 if heard else 50)
        service.is_stopping = heard == 2
        return service.is_stopping

    sent = [one for one in asyncio.run(listen(build(service), "/v1/live", is_enough)) if one]
    assert len(sent) == 2


def test_an_export_ends_when_nobody_listens(tmp_path: Path) -> None:
    driven = Driven(tmp_path)
    driven.create()
    for _ in range(3):
        driven.decide(size=10_000)
    app = build(Service(driven.engine))
    path = "/v1/experiments/layout/export.csv"
    whole = asyncio.run(listen(app, path, lambda _: False))
    part = asyncio.run(listen(app, path, lambda sent: len(sent) == 3))
    assert len(part) < len(whole) - 5
    assert part[:3] == whole[:3]
