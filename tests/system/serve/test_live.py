"""A stream sends the state at once and after each change. It ends when the service stops or the client leaves."""

import asyncio
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from starlette.types import ASGIApp

from belated.errors import StoreError
from belated.serve.http import live, parquet
from belated.serve.http.app import build
from belated.serve.service.service import Service
from belated.verdicts import Evidence
from tests.support.engines import Driven
from tests.support.patches import patched
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


def test_differences_add_up_to_the_document(server: Served) -> None:
    """The page asks for them, because a whole document is large."""
    server.post("/v1/experiments", {"name": "layout", "arms": [f"option {number}" for number in range(30)]})
    for _ in range(100):
        tell(server, [one["decision_id"] for one in batch(server, 20)[:15]])
    with httpx.stream("GET", f"{server.url}/v1/experiments/layout/live?differences=true", verify=NO_TLS) as answer:
        lines = answer.iter_lines()
        kinds, sizes, document = list[str](), list[int](), dict[str, Any]()
        for turn in range(4):
            kind, data, _ = next(lines), next(lines), next(lines)
            kinds.append(kind)
            sizes.append(len(data))
            said = msgspec.json.decode(data.removeprefix("data: "))
            document = said if turn == 0 else patched(document, said)
            assert document["decisions"] == 2000 + 5 * turn
            batch(server, 5)
    assert kinds == ["event: document", *["event: patch"] * 3]
    assert max(sizes[1:]) < sizes[0] / 2
    whole = server.get("/v1/experiments/layout").json()
    assert document.keys() == whole.keys()
    assert [arm["name"] for arm in document["arms"]] == [arm["name"] for arm in whole["arms"]]


def batch(server: Served, size: int) -> list[Any]:
    return server.post("/v1/experiments/layout/decisions/batch", {"size": size}).json()["decisions"]  # type: ignore[no-any-return]


def tell(server: Served, ids: list[str]) -> None:
    server.post("/v1/feedback", {"reports": [{"decision_id": one, "reward": 1} for one in ids]})


def test_only_true_and_false_are_understood(server: Served) -> None:
    assert server.get("/v1/live?differences=1").status_code == 422


async def listen(app: ASGIApp, path: str, is_enough: Any) -> list[bytes]:
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


def test_all_who_watch_share_one_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "PAUSE", 0.01)
    monkeypatch.setattr(live, "APART", 0.05)
    monkeypatch.setattr(live, "AGEING", 0.05)
    driven = Driven(tmp_path)
    driven.create()
    service = Service(driven.engine)
    made, describe = list[str](), service.experiment_view

    def counted(name: str) -> Any:
        made.append(threading.current_thread().name)
        return describe(name)

    monkeypatch.setattr(service, "experiment_view", counted)
    app = build(service)

    async def watch_all() -> None:
        path = "/v1/experiments/layout/live"
        heard = await asyncio.gather(*(listen(app, path, lambda sent: len(sent) == 5) for _ in range(10)))
        assert [one[1:5] for one in heard] == [heard[0][1:5]] * 10

    asyncio.run(watch_all())
    assert 4 <= len(made) <= 8
    assert {name.rpartition("_")[0] for name in made} == {"belated-views"}, "and none in the event loop"
    assert not any(live.FEEDS.get(service, {}).values()), "nobody watches any more"


def test_a_costly_document_is_made_rarely(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many changes there are, watching uses a small share of one processor."""
    for name in ("PAUSE", "APART", "AGEING"):
        monkeypatch.setattr(live, name, 0.001)
    driven = Driven(tmp_path)
    driven.create()
    service = Service(driven.engine)
    describe = service.experiment_view

    def costly(name: str) -> Any:
        end = time.thread_time() + 0.005
        while time.thread_time() < end:
            pass
        return describe(name)

    monkeypatch.setattr(service, "experiment_view", costly)
    began = time.monotonic()
    asyncio.run(listen(build(service), "/v1/experiments/layout/live", lambda sent: len(sent) == 4))
    assert time.monotonic() - began > 2 * 0.005 / live.SHARE


def test_streams_do_not_take_all_connections(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "MOST_WATCHING", 2)
    driven = Driven(tmp_path)
    driven.create()
    app = build(Service(driven.engine))

    async def run() -> None:
        others: list[list[bytes]] = []

        def third_was_refused(sent: list[bytes]) -> bool:
            return len(sent) >= 2 and len(others) == 1

        async def third() -> None:
            await asyncio.sleep(0.5)
            others.append(await listen(app, "/v1/live", lambda _: False))

        monkeypatch.setattr(live, "AGEING", 0.1)
        await asyncio.gather(
            *(listen(app, path, third_was_refused) for path in ("/v1/live", "/v1/experiments/layout/live")), third()
        )
        assert b"2 live streams" in others[0][-1]
        assert len(await listen(app, "/v1/live", lambda sent: len(sent) == 2)) > 2

    asyncio.run(run())


def test_streams_that_are_asked_for_at_once_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each was counted when it began, so none had been counted when the last one was admitted."""
    monkeypatch.setattr(live, "MOST_WATCHING", 2)
    driven = Driven(tmp_path)
    driven.create()
    app = build(Service(driven.engine))

    async def run() -> None:
        for _ in range(2):  # those that have ended are counted no more
            heard = await asyncio.gather(*(listen(app, "/v1/live", lambda sent: len(sent) == 2) for _ in range(5)))
            assert sum(b"2 live streams" in sent[-1] for sent in heard) == 3

    asyncio.run(run())


def test_a_view_does_not_hold_the_lock_while_it_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    driven = Driven(tmp_path)
    driven.create()
    driven.tell(driven.decide()[0], 1.0)
    service = Service(driven.engine)

    def looked(*_: Any) -> Any:
        """Called while the view is made. Another thread can have the lock meanwhile."""
        with ThreadPoolExecutor(1) as other:
            assert other.submit(driven.engine.lock.acquire, timeout=5).result()
        return original(*_)

    original = Evidence.verdict
    monkeypatch.setattr(Evidence, "verdict", looked)
    assert asyncio.run(service.views.make("layout", lambda: service.experiment_view("layout"))).decisions == 1
    service.close()


def test_who_leaves_is_noticed_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not when the next event is due, which may be in a while."""
    monkeypatch.setattr(live, "AGEING", 60.0)
    driven = Driven(tmp_path)
    driven.create()
    began = time.monotonic()
    asyncio.run(listen(build(Service(driven.engine)), "/v1/live", lambda sent: len(sent) == 2))
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_an_export_reads_no_further_when_its_caller_has_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    monkeypatch.setattr(parquet, "GROUP_ROWS", 1)
    driven = Driven(tmp_path)
    driven.create()
    for _ in range(3):
        driven.decide(size=10_000)
    service = Service(driven.engine)
    opened, read = list[Any](), list[int]()

    def open_reader() -> Any:
        journal = driven.engine.journal.reader()
        decisions, opened[:] = journal.decisions, [journal]

        def counted(*asked: Any) -> Any:
            read.append(asked[1])
            return decisions(*asked)

        monkeypatch.setattr(journal, "decisions", counted)
        return journal

    monkeypatch.setattr(service._reader, "open", open_reader)
    asyncio.run(listen(build(service), f"/v1/experiments/layout/export.{ending}", lambda sent: len(sent) == 4))
    assert 2 <= len(read) <= 5
    with pytest.raises(StoreError, match="closed"):
        opened[0].last()


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
