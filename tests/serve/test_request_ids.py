"""Every answer carries the id of its request, and the log repeats it."""

import asyncio
import json
import logging
import re
import sys
import threading
import warnings
from io import StringIO
from pathlib import Path
from typing import Any

import httpx
import pytest

from belated.serve.engine.applied import Applied
from belated.serve.http import request_ids
from belated.serve.http.app import build
from belated.serve.process import logs
from belated.serve.service import managing
from belated.serve.service.service import Service
from tests.support.engines import Driven
from tests.support.in_process import Caller, visit


def ask(driven: Driven, path: str, **headers: str | bytes) -> httpx.Response:
    """Send one request to the application."""
    named: Any = {name.replace("_", "-"): value for name, value in headers.items()}

    async def send() -> httpx.Response:
        transport = httpx.ASGITransport(build(Service(driven.engine)), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
            return await http.get(path, headers=named)

    return asyncio.run(send())


@pytest.mark.parametrize("path", ["/healthz", "/v1/store", "/v1/nothing", "/nothing", "/", "/static/style.css"])
def test_every_answer_has_one(tmp_path: Path, path: str) -> None:
    driven = Driven(tmp_path)
    own = ask(driven, path, X_Request_ID="front-end/7.a=")
    assert own.headers.get_list("X-Request-ID") == ["front-end/7.a="]
    made = [ask(driven, path).headers["X-Request-ID"] for _ in range(2)]
    assert made[0] != made[1]
    assert all(re.fullmatch("[0-9a-f]{16}", id) for id in made)
    if own.status_code >= 400:
        assert own.json()["request_id"] == "front-end/7.a="


@pytest.mark.parametrize("bad", ["", "a b", "a\tb", "x" * 101, '"', "a\\nb", "{}", "\xef"])
def test_an_id_that_could_confuse_a_log_is_replaced(tmp_path: Path, bad: str) -> None:
    assert request_ids.FORM.fullmatch(bad.encode("latin-1")) is None
    answer = ask(Driven(tmp_path), "/healthz", X_Request_ID=bad.encode("latin-1"))
    assert re.fullmatch("[0-9a-f]{16}", answer.headers["X-Request-ID"])


def test_the_log_repeats_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Here for a bug, after which a caller has only the id to tell."""
    handlers = logging.getLogger().handlers[:]
    monkeypatch.setattr(Service, "store_view", lambda _self: 1 / 0)
    logs.start()
    try:
        answer = ask(Driven(tmp_path), "/v1/store", X_Request_ID="mine-1")
    finally:
        logging.captureWarnings(capture=False)
        logging.getLogger().handlers[:] = handlers
    assert (answer.status_code, answer.json()["request_id"], answer.headers["X-Request-ID"]) == (
        500,
        "mine-1",
        "mine-1",
    )
    [line] = map(json.loads, capsys.readouterr().err.splitlines())
    assert line["request_id"] == "mine-1"
    assert "ZeroDivisionError" in line["exception"]


def test_the_log_of_the_writer_repeats_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Changes and bugs are logged by the thread that writes, which serves many requests."""

    async def work(caller: Caller) -> None:
        await caller.post("/v1/experiments", {"name": "layout", "arms": ["a", "b"]}, **{"X-Request-ID": "made-1"})
        await caller.post("/v1/experiments/layout/pause", **{"X-Request-ID": "made-2"})
        await caller.post("/v1/experiments/layout/resume")
        monkeypatch.setattr(Applied, "append", lambda *_: 1 / 0)
        for path, id in (("decisions", "bug-1"), ("close", "bug-2")):
            failed = await caller.post(f"/v1/experiments/layout/{path}", **{"X-Request-ID": id})
            assert (failed.status_code, failed.json()["request_id"]) == (500, id)
        monkeypatch.setattr(managing, "create", lambda *_: 1 / 0)
        body = {"scopes": ["admin"]}
        assert (await caller.post("/v1/keys", body, **{"X-Request-ID": "bug-3"})).status_code == 500
        monkeypatch.undo()

    handlers = logging.getLogger().handlers[:]
    logs.start()
    try:
        visit(Service(Driven(tmp_path).engine), work)
    finally:
        logging.captureWarnings(capture=False)
        logging.getLogger().handlers[:] = handlers
    lines = list(map(json.loads, capsys.readouterr().err.splitlines()))
    said = {line["request_id"]: line["message"] for line in lines if "request_id" in line}
    assert (said["made-1"], said["made-2"]) == ("created", "operated")
    assert said["bug-1"] == "this request has failed unexpectedly. A line just before says why"
    assert said["bug-2"] == said["bug-3"] == "a request failed unexpectedly, and the others go on"
    assert sum("ZeroDivisionError" in line.get("exception", "") for line in lines) == 3


class Terminal(StringIO):
    """A stream that may be a terminal."""

    def __init__(self, *, is_terminal: bool) -> None:
        super().__init__()
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal


@pytest.fixture
def stream(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The stream to which the log goes, put back afterwards."""
    stream = Terminal(is_terminal=request.param)
    root, before = logging.getLogger(), logging.getLogger().handlers[:]
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    logs.start()
    yield stream
    logging.captureWarnings(capture=False)
    root.handlers[:] = before


@pytest.mark.parametrize("stream", [False], indirect=True)
def test_a_line_is_one_json_object_whatever_it_says(stream: Terminal) -> None:
    request_ids.CURRENT.set("abc")
    logging.getLogger("belated.x").info("two\nlines", extra={"by": 'a "quoted"\x1b[31m\u2028name'})
    try:
        raise ValueError("two\nlines")
    except ValueError:
        logging.getLogger("uvicorn.error").exception("Exception in ASGI application")
    warnings.showwarning("old", DeprecationWarning, "file.py", 1)
    failing = threading.Thread(target=lambda: 1 / 0, name="failing")
    failing.start()
    failing.join()
    request_ids.CURRENT.set("")
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [line["logger"] for line in lines] == ["belated.x", "uvicorn.error", "py.warnings", "belated"]
    assert lines[0]["message"] == "two\nlines"
    assert lines[0]["request_id"] == "abc"
    assert "ValueError: two\nlines" in lines[1]["exception"]
    assert "ZeroDivisionError" in lines[3]["exception"]
    assert lines[3]["failed"] == "failing"


@pytest.mark.parametrize("stream", [True], indirect=True)
def test_a_terminal_gets_lines_for_people(stream: Terminal) -> None:
    logging.getLogger("belated.x").warning("slow", extra={"experiment": "layout", "by": "a\nforged line\x1b[2J"})
    [line] = stream.getvalue().splitlines()
    assert re.fullmatch(r"\d\d:\d\d:\d\d warning  slow  experiment=layout by='a\\nforged line\\x1b\[2J'", line), line
