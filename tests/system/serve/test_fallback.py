"""With a fallback and a deadline, a client answers in time and raises nothing, whatever the service does."""

import asyncio
import gc
import inspect
import logging
import math
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from belated.client import AsyncClient, Client, Report
from belated.deadlines import Timely
from belated.errors import InvalidInput, ServiceError
from tests.support.failing import FAILURES, answering, serving, silent
from tests.support.service import Served

DEADLINE = 0.5
Use = Callable[[Any], Any]
Run = Callable[..., Any]


@pytest.fixture(params=[Client, AsyncClient])
def run(request: pytest.FixtureRequest) -> Run:
    """Use one of the clients. Returns what it returned and how long that took."""
    kind = request.param

    async def use_it(url: str, use: Use, options: dict[str, Any]) -> tuple[Any, float]:
        client = kind(url, **options)
        began = time.monotonic()
        try:
            got = use(client)
            result = await got if inspect.isawaitable(got) else got
            return result, time.monotonic() - began
        finally:
            closed = client.close()
            await closed if inspect.isawaitable(closed) else None

    return lambda url, use, **options: asyncio.run(use_it(url, use, options))


def promptly(run: Run, url: str) -> tuple[Any, float]:
    """Ask with one of the clients. Tries again if it was late, because a busy machine may stall every process."""
    for _ in range(3):
        decision, took = run(url, ask)
        if took <= DEADLINE:
            break
    return decision, took


def ask(client: Any) -> Any:
    return client.ask("layout", fallback="blue", deadline=DEADLINE)


@pytest.mark.parametrize("name", FAILURES)
def test_a_failing_service(run: Run, caplog: pytest.LogCaptureFixture, name: str) -> None:
    with serving(FAILURES[name]) as address:
        decision, took = promptly(run, f"http://{address}")
    assert took <= DEADLINE
    assert (decision.arm, decision.id, decision.is_fallback) == ("blue", "", True)
    record = [one for one in caplog.records if one.levelno >= logging.WARNING][-1]
    assert record.name == "belated.client"
    assert record.getMessage().startswith("'layout' shows its fallback 'blue', after ")


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_tls_handshake_that_hangs(run: Run) -> None:
    """If a handshake is cancelled, httpcore leaves its socket to the garbage collector, which warns."""
    with serving(silent) as address:
        decision, took = promptly(run, f"https://{address}")
    gc.collect()
    assert decision.is_fallback
    assert took <= DEADLINE


def test_a_host_that_takes_no_connections(run: Run) -> None:
    """Its backlog is full, so that a connection is neither made nor refused."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener:
        waiting = []
        for _ in range(8):
            one = socket.socket()
            one.setblocking(False)  # noqa: FBT003
            one.connect_ex(listener.getsockname())
            waiting.append(one)
        decision, took = promptly(run, f"http://127.0.0.1:{listener.getsockname()[1]}")
        for one in waiting:
            one.close()
    assert decision.is_fallback
    assert took <= DEADLINE


def test_a_name_that_is_never_found(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """No timeout of a socket holds for this. The threads that look it up go on, and end when they can."""
    over = Event()

    def look_up(*_: object, **__: object) -> Any:
        over.wait(2 * DEADLINE)
        raise socket.gaierror("no such name")

    monkeypatch.setattr("socket.getaddrinfo", look_up)
    decision, took = promptly(run, "http://service.example")
    over.set()
    assert decision.is_fallback
    assert took <= DEADLINE


def test_a_service_that_dies_and_comes_back(run: Run, tmp_path: Path) -> None:
    async def use(client: Any) -> list[Any]:
        async def done(got: Any) -> Any:
            return await got if inspect.isawaitable(got) else got

        decisions = [await done(ask(client))]
        served.process.send_signal(signal.SIGSTOP)
        began = time.monotonic()
        decisions.append(await done(ask(client)))
        status = await done(client.tell(decisions[0], reward=1, fallback="lost", deadline=DEADLINE))
        assert time.monotonic() - began <= 2 * DEADLINE
        served.process.send_signal(signal.SIGCONT)
        decisions.append(await done(client.ask("layout", fallback="blue", deadline=10)))
        again = await done(client.tell(decisions[0], reward=1, fallback="lost", deadline=10))
        assert (status, again in ("applied", "duplicate")) == ("lost", True)
        served.kill()
        decisions += [await done(ask(client)) for _ in range(3)]
        return decisions

    with Served(tmp_path) as served:
        served.post("/v1/experiments", {"name": "layout", "arms": ["blue", "green"]})
        decisions, _ = run(served.url, use)
    assert [one.is_fallback for one in decisions] == [False, True, False, *[True] * 3]


# -- what is done with a fallback -----------------------------------------------------------------------------------


def test_the_outcome_of_a_fallback_is_not_reported(run: Run) -> None:
    with serving(answering("404 Not Found")) as address:
        decision, _ = run(f"http://{address}", ask)
    with serving(answering("200 OK", b'{"results": [{"status": "applied"}]}')) as address:
        url = f"http://{address}"
        assert run("http://127.0.0.1:1", lambda client: client.tell(decision, reward=1))[0] == "fallback"
        assert run("http://127.0.0.1:1", lambda client: client.amend(decision, reward=1))[0] == "fallback"
        results, _ = run(url, lambda client: client.tell_batch([Report(decision, 1.0), Report("7", 1.0)]))
        amended, _ = run(url, lambda client: client.tell_batch([Report(decision, 1.0, amend=True)]))
    assert [one["status"] for one in results] == ["fallback", "applied"]
    assert [one["status"] for one in amended] == ["fallback"]


def test_a_lost_report_is_in_the_log(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    with serving(answering("500 Internal Server Error")) as address:
        for use in (
            lambda client: client.tell("the-id", reward=0.25, fallback="lost", deadline=DEADLINE),
            lambda client: client.amend("the-id", reward=0.25, fallback="lost", deadline=DEADLINE),
        ):
            caplog.clear()
            assert run(f"http://{address}", use)[0] == "lost"
            assert "not reported: Report(decision='the-id', reward=0.25" in caplog.text


def test_a_batch_falls_back_as_a_whole(run: Run) -> None:
    batch, _ = run("http://127.0.0.1:1", lambda client: client.ask("layout", size=3, fallback="blue", deadline=0.1))
    assert [one.arm for one in batch] == ["blue"] * 3


def test_a_wrong_call_falls_back_too(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    decision, _ = run("http://127.0.0.1:1", lambda client: client.ask(None, fallback="blue", deadline=0.1))
    assert decision.arm == "blue"
    assert "None shows its fallback" in caplog.text


@pytest.mark.parametrize("given", [{"subject": "ann", "size": 2}, {"size": "2"}, {"size": 0}, {"subject": 7}])
def test_wrong_arguments_fall_back_too(run: Run, given: dict[str, Any]) -> None:
    use = lambda client: client.ask("layout", fallback="blue", deadline=0.2, **given)  # noqa: E731
    got, _ = run("http://127.0.0.1:1", use)
    assert all(one.arm == "blue" for one in (got if isinstance(got, list) else [got]))
    status, _ = run("http://127.0.0.1:1", lambda client: client.tell("7", parts=[1], fallback="lost", deadline=0.2))
    assert status == "lost"


def test_without_a_fallback_errors_are_raised(run: Run) -> None:
    with pytest.raises(ServiceError, match="does not answer"):
        run("http://127.0.0.1:1", lambda client: client.ask("layout", deadline=0.1))
    with serving(FAILURES["a web page"]) as address, pytest.raises(ServiceError, match="200 not an answer of this"):
        run(f"http://{address}", lambda client: client.ask("layout"))


@pytest.mark.parametrize("given", [{"fallback": 7}, {"fallback": "blue", "deadline": 0}, {"deadline": math.nan}])
def test_a_fallback_is_a_name_and_a_deadline_is_positive(run: Run, given: dict[str, Any]) -> None:
    for use in (
        lambda client: client.ask("layout", **given),
        lambda client: client.tell("7", reward=1, **given),
        lambda client: client.amend("7", reward=1, **given),
    ):
        with pytest.raises(InvalidInput, match=r"(fallback|deadline) must be"):
            run("http://127.0.0.1:1", use)


def test_late_calls_do_not_pile_up() -> None:
    timely, over, begun = Timely(most=2), Event(), []

    def late() -> None:
        begun.append(1)
        over.wait(5)

    for _ in range(4):
        with pytest.raises(TimeoutError):
            timely.run(0.01, late)
    over.set()
    assert timely.run(1, lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        timely.run(1, lambda: 1 / 0)
    assert len(begun) == 2
