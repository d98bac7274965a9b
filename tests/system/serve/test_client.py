"""Both clients have the same operations. Retries have one effect, and errors repeat the service's words."""

import asyncio
import inspect
import math
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from threading import Event, Thread
from typing import Any

import httpx
import numpy as np
import pytest

from belated.client import AsyncClient, Client, Report, Subject
from belated.errors import InvalidInput, ServiceError
from tests.support.service import Served

URL = "http://service.example"
DECISION = {
    "decision_id": "7",
    "experiment": "layout",
    "arm": "blue",
    "probability": 0.5,
    "round": 1,
    "decided_at": "2024-05-01T12:00:00Z",
    "expires_at": None,
}
BUSY = httpx.Response(503, json={"type": "about:blank", "title": "Not now", "status": 503, "detail": "later"})
Answer = httpx.Response | Exception


class Faked:
    """A fake service with prepared answers. It records the requests and how long the client slept."""

    def __init__(self, *answers: Answer) -> None:
        self._answers = iter(answers)
        self.requests: list[httpx.Request] = []
        self.slept: list[float] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = next(self._answers)
        if isinstance(answer, Exception):
            raise answer
        return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)  # of one client


Use = Callable[[Any], Any]
Run = Callable[..., Any]


@pytest.fixture(params=["Client", "AsyncClient"])
def run(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs an operation with one of the clients against a fake service."""

    def run_plain(faked: Faked, use: Use, **options: Any) -> Any:
        monkeypatch.setattr("belated.client.time.sleep", faked.slept.append)
        with Client(URL, **options) as client:
            client._http._transport = httpx.MockTransport(faked)
            return use(client)

    def run_async(faked: Faked, use: Use, **options: Any) -> Any:
        async def sleep(seconds: float) -> None:  # awaited by the client
            faked.slept.append(seconds)

        async def main() -> Any:
            async with AsyncClient(URL, **options) as client:
                client._http._transport = httpx.MockTransport(faked)
                monkeypatch.setattr("belated.client.asyncio.sleep", sleep)
                return await use(client)

        return asyncio.run(main())

    return run_plain if request.param == "Client" else run_async


def public(cls: type) -> dict[str, inspect.Signature]:
    members = inspect.getmembers(cls, inspect.isfunction)
    return {name: inspect.signature(one) for name, one in members if not name.startswith("_") or name == "__init__"}


def test_both_clients_have_the_same_operations() -> None:
    assert public(Client) == public(AsyncClient)
    assert set(public(Client)) == {
        *("__init__", "create_experiment", "experiment", "change_arms", "close_experiment", "operate"),
        *("ask", "ask_for", "tell", "tell_batch", "amend", "close"),
    }
    for name in public(Client).keys() - {"__init__"}:
        assert inspect.iscoroutinefunction(getattr(AsyncClient, name))
        assert getattr(Client, name).__doc__
        assert getattr(AsyncClient, name).__doc__


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with Served(tmp_path_factory.mktemp("service")) as server:
        yield server


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_a_subject_gets_one_decision_and_its_outcomes(served: Served, kind: type[Client] | type[AsyncClient]) -> None:
    async def use() -> None:
        client, name = kind(served.url), f"sticky-{kind.__name__}"

        async def done(operation: Any) -> Any:
            return await operation if inspect.isawaitable(operation) else operation

        await done(client.create_experiment(name, ["blue", "green"], several="sum"))
        first = await done(client.ask(name, subject="ann"))
        assert (first.repeated, await done(client.ask(name, subject="ann"))) == (False, first._replace(repeated=True))
        [bob, again] = await done(client.ask_for(name, ["bob", "ann"]))
        assert (again.id, bob.repeated) == (first.id, False)
        ann = Subject(name, "ann")
        assert await done(client.tell(ann, reward=0.25, report_id="a")) == "applied"
        assert await done(client.tell(first, reward=0.25, report_id="b")) == "added"
        assert await done(client.tell(ann, reward=0.25, report_id="b")) == "duplicate"
        assert await done(client.amend(ann, reward=0.5, report_id="b")) == "amended"
        results = await done(
            client.tell_batch(
                [Report(ann, 0.125, report_id="c"), {"decision": Subject(name, "eve"), "reward": 1, "report_id": "d"}]
            )
        )
        assert [one["status"] for one in results] == ["added", "problem"]
        with pytest.raises(InvalidInput, match="a subject gets one decision"):
            await done(client.ask(name, subject="ann", size=2))  # type: ignore[call-overload]
        with pytest.raises(InvalidInput, match="subjects must be a list of names"):
            await done(client.ask_for(name, "ann"))
        await done(client.close())

    asyncio.run(use())


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_parts_of_an_outcome_are_told_as_they_come(served: Served, kind: type[Client] | type[AsyncClient]) -> None:
    async def use() -> None:
        client, name = kind(served.url), f"models-{kind.__name__}"

        async def done(operation: Any) -> Any:
            return await operation if inspect.isawaitable(operation) else operation

        parts = {"quality": {"lowest": 1, "highest": 5}, "cost": {"better": "lower"}}
        await done(client.create_experiment(name, ["small", "large"], parts=parts))
        one = await done(client.ask(name))
        assert await done(client.tell(one, parts={"cost": np.float64(0.25)})) == "partial"
        assert await done(client.tell(one.id, parts={"quality": 5})) == "applied"
        assert await done(client.amend(one, parts={"cost": 0.5})) == "amended"
        assert await done(client.tell(one, parts={"cost": 0.5})) == "duplicate"
        ann = await done(client.ask(name, subject="ann"))
        results = await done(client.tell_batch([Report(Subject(name, "ann"), parts={"quality": 3, "cost": 1})]))
        assert [(result["status"], result["decision_id"]) for result in results] == [("applied", ann.id)]
        document = await done(client.experiment(name))
        told = [arm["parts"]["cost"] for arm in document["arms"]]
        assert sum(part["reports"] * (part["mean"] or 0) for part in told) == 1.5
        for wrong in ({"reward": 1.0, "parts": {"cost": 1}}, {"parts": {"cost": math.nan}}, {"parts": {"cost": "1"}}):
            with pytest.raises(InvalidInput):
                await done(client.tell(one, **wrong))
        with pytest.raises(ServiceError, match="takes parts, got a reward"):
            await done(client.tell(one, reward=1))
        await done(client.close())

    asyncio.run(use())


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_every_operation_on_a_real_service(served: Served, kind: type[Client] | type[AsyncClient]) -> None:
    async def use() -> None:
        client, name = kind(served.url), kind.__name__

        async def done(operation: Any) -> Any:
            return await operation if inspect.isawaitable(operation) else operation

        made = await done(client.create_experiment(name, ["blue", "green"], reward_wait=60, default_outcome=0))
        assert (made["name"], made["reward_wait"]) == (name, 60)
        decision = await done(client.ask(name, idempotency_key="k"))
        assert (decision.experiment, decision.probability, decision.round) == (name, 0.5, 1)
        assert decision.arm in ("blue", "green")
        assert decision.decided_at < decision.expires_at
        assert await done(client.ask(name, idempotency_key="k")) == decision
        assert await done(client.ask(name)) != await done(client.ask(name))
        batch = await done(client.ask(name, size=3, idempotency_key="b"))
        assert await done(client.ask(name, size=3, idempotency_key="b")) == batch
        assert [one.round for one in batch] == [4, 5, 6]
        assert await done(client.tell(decision, reward=1)) == "applied"
        assert await done(client.tell(decision.id, reward=1)) == "duplicate"
        assert await done(client.amend(decision, reward=0.5)) == "amended"
        assert await done(client.amend(decision, reward=0.5)) == "duplicate"
        assert await done(client.amend(decision, reward=0.25)) == "amended"
        assert await done(client.amend(decision, reward=0.75, revision=1)) == "superseded"
        assert await done(client.amend(batch[2], reward=0.75)) == "applied"
        ones = [Report(batch[2], reward=one, amend=True) for one in (0.5, 0.25, 0.25)]
        again = await done(client.tell_batch([ones[0], Report(decision, reward=1, amend=True), *ones[1:]]))
        assert [(one["status"], one["revision"]) for one in again] == [
            *[("amended", 1), ("amended", 3), ("amended", 2), ("duplicate", 2)]
        ]
        reports: list[Any] = [Report(batch[0], reward=0.0), {"decision": "nonsense", "reward": 1.0}]
        results = await done(client.tell_batch([*reports, Report(batch[1].id, loss=0.5)]))
        assert [one["status"] for one in results] == ["applied", "problem", "problem"]
        assert [one["problem"]["status"] for one in results[1:]] == [404, 422]
        changed = await done(client.change_arms(name, add=["red"], retire=["blue"]))
        assert [arm["active"] for arm in changed["arms"]] == [False, True, True]
        assert (await done(client.close_experiment(name)))["closed_at"] is not None
        assert (await done(client.experiment(name)))["decisions"] == 6
        with pytest.raises(ServiceError, match=r"409 Conflict: the experiment .* is closed"):
            await done(client.ask(name))
        await done(client.close())

    asyncio.run(use())


# -- retries --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", [None, "mine"])
@pytest.mark.parametrize("size", [None, 1])
def test_retries_have_one_key(run: Run, key: str | None, size: int | None) -> None:
    good = DECISION if size is None else {"decisions": [DECISION]}
    faked = Faked(BUSY, httpx.ConnectError("refused"), httpx.ReadTimeout("slow"), httpx.Response(201, json=good))

    def use(client: Any) -> Any:
        if size is None:
            return client.ask("layout", idempotency_key=key)
        return client.ask("layout", size=size, idempotency_key=key)

    result = run(faked, use)
    assert (result if size is None else result[0]).id == "7"
    keys = [request.headers["Idempotency-Key"] for request in faked.requests]
    assert len(keys) == 4
    assert len(set(keys)) == 1
    assert keys[0] == key or (key is None and len(keys[0]) == 36)


def test_two_decisions_have_two_keys(run: Run) -> None:
    seen = []
    for _ in range(2):
        faked = Faked(httpx.Response(201, json=DECISION))
        run(faked, lambda client: client.ask("layout"))
        seen.append(faked.requests[0].headers["Idempotency-Key"])
    assert seen[0] != seen[1]


def test_pauses_grow(run: Run) -> None:
    faked = Faked(*[BUSY] * 9, httpx.Response(201, json=DECISION))
    run(faked, lambda client: client.ask("layout"), retries=9)
    for number, slept in enumerate(faked.slept):
        longest = min(0.1 * 2**number, 5.0)
        assert longest / 2 <= slept <= longest
    assert len(faked.slept) == 9


def test_retry_after_is_obeyed(run: Run) -> None:
    told = httpx.Response(503, headers={"Retry-After": "7"}, json={})
    date = httpx.Response(503, headers={"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, json={})
    faked = Faked(told, date, httpx.Response(200, json={"status": "applied"}))
    assert run(faked, lambda client: client.tell("7", reward=1)) == "applied"
    assert faked.slept[0] == 7.0
    assert faked.slept[1] <= 0.2


@pytest.mark.parametrize("wanted", ["3600", "9" * 400])
@pytest.mark.parametrize("status", [429, 503])
def test_nobody_waits_longer_than_the_deadline(run: Run, status: int, wanted: str) -> None:
    told = httpx.Response(status, headers={"Retry-After": wanted}, json={"title": "Too many", "detail": "later."})
    faked = Faked(told)
    with pytest.raises(ServiceError, match=r"later\. The next try would be in .* after the deadline of 60") as raised:
        run(faked, lambda client: client.ask("layout"))
    assert (raised.value.status, faked.slept) == (status, [])


def test_without_a_deadline_every_wait_is_obeyed(run: Run) -> None:
    told = httpx.Response(503, headers={"Retry-After": "3600"}, json={})
    faked = Faked(told, httpx.Response(201, json=DECISION))
    assert run(faked, lambda client: client.ask("layout"), deadline=math.inf).id == "7"
    assert faked.slept == [3600.0]


@pytest.mark.parametrize("deadline", [0, -1, math.nan])
def test_a_deadline_is_positive(run: Run, deadline: float) -> None:
    with pytest.raises(InvalidInput, match="deadline must be"):
        run(Faked(), lambda client: client.ask("layout"), deadline=deadline)


@pytest.mark.parametrize("kind", [Client, AsyncClient])
@pytest.mark.parametrize("drip", [b"", b"x"], ids=["silent", "drips"])
def test_a_call_ends_at_its_deadline(kind: type[Client] | type[AsyncClient], drip: bytes) -> None:
    """Also if the service sends a little of its answer now and then, so that no timeout is ever reached."""
    listener, done = socket.create_server(("127.0.0.1", 0)), Event()

    def serve() -> None:
        with suppress(OSError), listener.accept()[0] as caller:
            caller.recv(65536)
            caller.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" if drip else b"")
            while not done.wait(0.1):
                caller.sendall(drip)

    server = Thread(target=serve)
    server.start()
    client = kind(f"http://127.0.0.1:{listener.getsockname()[1]}", deadline=1.0)
    began = time.monotonic()

    async def use() -> Any:
        try:
            asked = client.ask("layout")
            return await asked if inspect.isawaitable(asked) else asked
        finally:
            closed = client.close()
            await closed if inspect.isawaitable(closed) else None

    with pytest.raises(ServiceError, match="does not answer"):
        asyncio.run(use())
    assert 0.5 < time.monotonic() - began < 3
    done.set()
    server.join()
    listener.close()


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_passing_failure_is_raised_when_it_does_not_pass(run: Run, status: int) -> None:
    faked = Faked(*[httpx.Response(status, text="<html>gateway</html>")] * 3)
    with pytest.raises(ServiceError) as raised:
        run(faked, lambda client: client.experiment("layout"), retries=2)
    assert raised.value.status == status
    assert "gateway" in raised.value.detail
    assert (len(faked.requests), len(faked.slept)) == (3, 2)


def test_a_service_that_does_not_answer(run: Run) -> None:
    faked = Faked(*[httpx.ConnectError("nobody is there")] * 2)
    with pytest.raises(ServiceError, match="does not answer: nobody is there") as raised:
        run(faked, lambda client: client.ask("layout"), retries=1)
    assert raised.value.status == 0


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 413, 422, 500])
def test_a_problem_is_raised_at_once(run: Run, status: int) -> None:
    problem = {"type": "about:blank", "title": "No", "status": status, "detail": "because", "request_id": "r"}
    faked = Faked(httpx.Response(status, json=problem))
    with pytest.raises(ServiceError) as raised:
        run(faked, lambda client: client.ask("layout"))
    assert (raised.value.status, raised.value.title, raised.value.detail) == (status, "No", "because")
    assert raised.value.request_id == "r"
    assert str(raised.value) == f"{status} No: because"
    assert (len(faked.requests), faked.slept) == (1, [])


@pytest.mark.parametrize("answer", [httpx.Response(404, json=[]), httpx.Response(404, json={}), httpx.Response(404)])
def test_an_answer_of_something_else_is_told_too(run: Run, answer: httpx.Response) -> None:
    with pytest.raises(ServiceError, match="404 Not Found"):
        run(Faked(answer), lambda client: client.ask("layout"))


def test_an_amendment_says_which_revision_it_replaces(run: Run) -> None:
    """So a copy that comes late changes nothing."""
    contradicted = httpx.Response(409, json={"title": "Conflict", "status": 409, "revision": 3})
    amended = httpx.Response(200, json={"status": "amended"})
    faked = Faked(contradicted, httpx.Response(503), amended)
    assert run(faked, lambda client: client.amend("7", reward=1)) == "amended"
    bodies = [request.content for request in faked.requests]
    assert bodies == [b'{"reward":1}', *[b'{"reward":1,"amend":true,"revision":3}'] * 2]
    faked = Faked(amended)
    assert run(faked, lambda client: client.amend("7", reward=1, revision=2)) == "amended"
    assert faked.requests[0].content == b'{"reward":1,"amend":true,"revision":2}'
    faked = Faked(httpx.Response(404, json={"title": "Not found", "status": 404}))
    with pytest.raises(ServiceError, match="404"):
        run(faked, lambda client: client.amend("7", reward=1))
    with pytest.raises(InvalidInput, match="only an amendment has a revision, got 2"):
        run(Faked(), lambda client: client.tell_batch([Report("7", reward=1, revision=2)]))


# -- what is sent ---------------------------------------------------------------------------------------------------


def test_the_key_is_sent(run: Run) -> None:
    faked = Faked(httpx.Response(200, json={}), httpx.Response(200, json={}))
    run(faked, lambda client: client.experiment("layout"), key="blt_1_2")
    run(faked, lambda client: client.experiment("layout"))
    assert [request.headers.get("Authorization") for request in faked.requests] == ["Bearer blt_1_2", None]


def test_names_are_quoted(run: Run) -> None:
    faked = Faked(*[httpx.Response(200, json={"status": "applied"})] * 2)
    run(faked, lambda client: client.experiment("a/b?c"))
    run(faked, lambda client: client.tell("../x", loss=0.5))
    assert [request.url.raw_path for request in faked.requests] == [
        b"/v1/experiments/a%2Fb%3Fc",
        b"/v1/decisions/..%2Fx/feedback",
    ]
    assert faked.requests[1].content == b'{"loss":0.5}'


def test_no_reports_are_not_sent(run: Run) -> None:
    faked = Faked()
    assert run(faked, lambda client: client.tell_batch([])) == []
    assert faked.requests == []


@pytest.mark.parametrize("outcome", [{}, {"reward": 1, "loss": 1}, {"loss": 1, "parts": {"cost": 1}}])
def test_an_outcome_is_a_reward_or_a_loss(run: Run, outcome: dict[str, float]) -> None:
    faked = Faked()
    for use in (
        lambda client: client.tell("7", **outcome),
        lambda client: client.tell_batch([Report("7", **outcome)]),  # type: ignore[arg-type]
    ):
        with pytest.raises(InvalidInput, match="give a reward, a loss or parts"):
            run(faked, use)
    assert faked.requests == []


@pytest.mark.parametrize("decision", [7, None, (1, 0, 0.5)])
def test_only_decisions_of_a_service_and_their_ids_are_taken(run: Run, decision: object) -> None:
    faked = Faked()
    for use in (
        lambda client: client.tell(decision, reward=1),
        lambda client: client.amend(decision, reward=1),
        lambda client: client.tell_batch([Report(decision, reward=1)]),  # type: ignore[arg-type]
    ):
        with pytest.raises(InvalidInput, match="its id or a Subject, got"):
            run(faked, use)
    assert faked.requests == []


def test_one_text_is_no_list_of_names(run: Run) -> None:
    """Otherwise "ab" would be the arms a and b."""
    faked = Faked()
    for use in (
        lambda client: client.create_experiment("layout", "ab"),
        lambda client: client.change_arms("layout", add="ab"),
        lambda client: client.change_arms("layout", retire="ab"),
    ):
        with pytest.raises(InvalidInput, match=r"must be a list of names, got the text 'ab'\. Write \['ab'\] for one"):
            run(faked, use)
    assert faked.requests == []


def test_a_zero_is_an_outcome(run: Run) -> None:
    faked = Faked(httpx.Response(200, json={"results": [{"status": "applied"}]}))
    run(faked, lambda client: client.tell_batch(Report("7", reward=0) for _ in range(1)))
    assert faked.requests[0].content == b'{"reports":[{"decision_id":"7","reward":0}]}'


def test_closing_lets_go_of_the_connections() -> None:
    client = Client(URL)
    with client as entered:
        assert entered is client
    assert client._http.is_closed

    async def use() -> bool:
        async with AsyncClient(URL) as client:
            assert not client._http.is_closed
        return client._http.is_closed

    assert asyncio.run(use())
