"""A refused request gets a problem document with the right status, and changes nothing."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any

import httpx
import pytest

from belated.serve.domain.messages import OutcomeReport
from belated.serve.domain.refusals import Refusal
from belated.serve.engine.engine import Engine
from belated.serve.engine.requests import Ask, Request, Tell
from belated.serve.engine.writer import Writer
from belated.serve.http.problem_documents import TITLES
from belated.serve.http.routes import ROUTES
from belated.serve.service.keys import Gate
from tests.support.engines import Driven
from tests.support.service import NO_TLS, Served

LAYOUT = {"name": "layout", "arms": ["blue", "green", "red"]}
MEGABYTE = 2**20


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with Served(tmp_path_factory.mktemp("service")) as server:
        assert server.post("/v1/experiments", LAYOUT).status_code == 201
        yield server


def send(served: Served, method: str, path: str, **more: Any) -> httpx.Response:
    return httpx.request(method, served.url + path, timeout=30, verify=NO_TLS, **more)


def assert_problem(answer: httpx.Response, status: int, said: str = "") -> None:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem.keys() == {"type", "title", "status", "detail", "request_id"}
    assert (problem["type"], problem["title"], problem["status"]) == ("about:blank", TITLES[status], status)
    assert said in problem["detail"]
    assert problem["detail"]


DECISIONS, BATCH = "/v1/experiments/layout/decisions", "/v1/experiments/layout/decisions/batch"
UNKNOWN = "01a1e2bd-f86b-7000-8000-000a30d63908"


@pytest.mark.parametrize(
    ("path", "body", "status", "said"),
    [
        (BATCH, {}, 422, "size"),
        (BATCH, {"size": 0}, 422, "size"),
        (BATCH, {"size": 10_001}, 422, "size"),
        (BATCH, {"size": 1.5}, 422, "size"),
        (BATCH, {"size": True}, 422, "size"),
        (BATCH, {"size": 1, "sise": 2}, 422, "sise"),
        (BATCH, [], 422, "object"),
        (DECISIONS, {"user": 7}, 422, "user"),
        ("/v1/experiments/nobody/decisions", {}, 404, "nobody"),
        ("/v1/experiments/nobody/decisions/batch", {"size": 1}, 404, "nobody"),
        ("/v1/experiments/nobody/close", {}, 404, "nobody"),
        ("/v1/feedback", {"reports": []}, 422, "reports"),
        ("/v1/feedback", {"reports": [{"decision_id": UNKNOWN, "reward": 1}] * 10_001}, 422, "reports"),
        ("/v1/feedback", {"reports": [{"decision_id": UNKNOWN}]}, 422, "a reward, a loss or parts"),
        ("/v1/feedback", {"reports": [{"decision_id": UNKNOWN, "reward": 1, "loss": 1}]}, 422, "a reward, a loss or"),
        ("/v1/feedback", {"reports": [{"decision_id": "x" * 101, "reward": 1}]}, 422, "decision_id"),
        (f"/v1/decisions/{UNKNOWN}/feedback", {"reward": 1}, 404, UNKNOWN),
        (f"/v1/decisions/{UNKNOWN}/feedback", {"reward": "1"}, 422, "reward"),
        (f"/v1/decisions/{UNKNOWN}/feedback", {"reward": None}, 422, "reward"),
        (f"/v1/decisions/{UNKNOWN}/feedback", {"reward": 1, "amend": "yes"}, 422, "amend"),
        ("/v1/decisions/nonsense/feedback", {"reward": 1}, 404, "nonsense"),
        ("/v1/experiments", {"name": "a"}, 422, "arms"),
        ("/v1/experiments", {"name": "a", "arms": []}, 422, "arms"),
        ("/v1/experiments", {"name": "a", "arms": ["x"] * 2}, 422, "'x' twice"),
        ("/v1/experiments", {"name": "a", "arms": [str(n) for n in range(1001)]}, 422, "1,000"),
        ("/v1/experiments", {"name": "a" * 101, "arms": ["x"]}, 422, "name"),
        ("/v1/experiments", {"name": "a", "arms": ["x" * 101]}, 422, "arms"),
        ("/v1/experiments", {"name": "a", "arms": [" x"]}, 422, "space"),
        ("/v1/experiments", {"name": "a", "arms": ["x\u0000"]}, 422, "printable"),
        ("/v1/experiments", {"name": "a/b", "arms": ["x"]}, 422, "name"),
        ("/v1/experiments", {"name": "a", "arms": ["x"], "default_outcome": 0}, 422, "reward_wait"),
        ("/v1/experiments", {"name": "a", "arms": ["x"], "reward_wait": 1, "default_outcome": 2}, 422, "between 0"),
        ("/v1/experiments", {"name": "a", "arms": ["x"], "reward_wait": 0}, 422, "reward_wait"),
        ("/v1/experiments", {"name": "a", "arms": ["x"], "outcome": {"lowest": 1}}, 422, "less than"),
        ("/v1/experiments", {"name": "a", "arms": ["x"], "outcome": {"lowest": -1e308, "highest": 1e308}}, 422, "less"),
        ("/v1/experiments", {"name": "a", "arms": ["x"], "tuning": {"name": "best"}}, 422, "tuning"),
        ("/v1/experiments", {"name": "a", "arms": ["x"], "tuning": {"name": "exp3"}}, 422, "needs eta"),
        ("/v1/experiments", {"name": "a", "arms": ["x"], "tuning": {"eta": 1}}, 422, "no eta"),
        ("/v1/experiments", {**LAYOUT, "arms": ["other"]}, 409, "layout"),
        ("/v1/experiments", {**LAYOUT, "name": "x\n"}, 422, "name"),
        ("/v1/experiments", {**LAYOUT, "name": "t", "tuning": {"name": "exp3", "eta": 1e-20}}, 422, "tuning"),
        ("/v1/experiments", {**LAYOUT, "name": "t", "tuning": {"name": "thompson"}}, 422, '"thompson"'),
        ("/v1/experiments", {**LAYOUT, "name": "t", "outcome": {"lowest": -1e200, "highest": 1e200}}, 422, "1e+100"),
        ("/v1/experiments/layout/arms", {}, 422, "name at least one arm"),
        ("/v1/experiments/layout/arms", {"retire": ["violet"]}, 404, "violet"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(served: Served, path: str, body: Any, status: int, said: str) -> None:
    before = served.get("/v1/store").json()["entries"]
    assert_problem(served.post(path, body), status, said)
    assert served.get("/v1/store").json()["entries"] == before


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=1001", "limit=x", "limit=", "cursor=-1", "cursor=1e3", "cursor=9" * 30, "limits=5"]
)
@pytest.mark.parametrize("path", ["/v1/experiments", DECISIONS, "/v1/experiments/layout/feedback"])
def test_a_page_that_cannot_be_is_refused(served: Served, path: str, query: str) -> None:
    assert_problem(served.get(f"{path}?{query}"), 422, query.partition("=")[0])


def test_the_size_of_a_body_is_limited(served: Served) -> None:
    """With and without a Content-Length header."""
    body = b'{"size": 1' + b" " * (2 * MEGABYTE) + b"}"
    headers = {"Content-Type": "application/json"}
    assert_problem(send(served, "POST", BATCH, content=body, headers=headers), 413, "2,097,152")
    chunks = (body[start : start + 65536] for start in range(0, len(body), 65536))
    assert_problem(send(served, "POST", BATCH, content=chunks, headers=headers), 413, "2,097,152")
    assert send(served, "POST", BATCH, content=body[: 2 * MEGABYTE - 1] + b"}", headers=headers).status_code == 201


@pytest.mark.parametrize(
    "content", [b"{", b"{'size': 1}", b'{"size": 1}}', b"\xff\xfe", b'{"size": 1e999}', b'{"size": "\xc3\x28"}', b"NaN"]
)
def test_what_is_not_json_is_refused(served: Served, content: bytes) -> None:
    answer = send(served, "POST", BATCH, content=content, headers={"Content-Type": "application/json"})
    assert_problem(answer, answer.status_code)
    assert answer.status_code in (400, 422)


DEEP = 100_000


@pytest.mark.parametrize(
    "content",
    [
        b"[" * DEEP,
        b"[" * DEEP + b"]" * DEEP,
        b'{"size":' * DEEP,
        b'{"size": ' + b"[" * DEEP + b"]" * DEEP + b"}",
        b'{"sise": ' + b"[" * DEEP + b"]" * DEEP + b"}",
        b'{"size": 1, "size": ' + b'{"a":' * DEEP + b"1" + b"}" * DEEP + b"}",
    ],
    ids=["open", "closed", "objects", "value", "unknown", "twice"],
)
@pytest.mark.parametrize("path", [BATCH, DECISIONS, "/v1/experiments", "/v1/feedback", "/v1/experiments/layout/arms"])
def test_deep_json_is_refused(served: Served, path: str, content: bytes) -> None:
    answer = send(served, "POST", path, content=content, headers={"Content-Type": "application/json"})
    assert answer.status_code in (400, 422)
    assert_problem(answer, answer.status_code)


def test_only_json_is_read(served: Served) -> None:
    for media in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        answer = send(served, "POST", BATCH, content=b'{"size": 1}', headers={"Content-Type": media})
        assert_problem(answer, 415, media)
    for media in ("application/json; charset=utf-8", "Application/JSON"):
        answer = send(served, "POST", BATCH, content=b'{"size": 1}', headers={"Content-Type": media})
        assert answer.status_code == 201
    assert send(served, "POST", DECISIONS).status_code == 201  # an empty body is fine if every field is optional


@pytest.mark.parametrize("key", ["", "x" * 201, "tab\there"])
def test_an_idempotency_key_has_limits(served: Served, key: str) -> None:
    for path, body in ((DECISIONS, None), (DECISIONS, {"subject": "ann"}), (BATCH, {"subjects": ["ann"]})):
        assert_problem(served.post(path, body, Idempotency_Key=key), 422, "Idempotency-Key")
    assert served.post(DECISIONS, None, Idempotency_Key="x" * 200).status_code == 201


@pytest.mark.parametrize(
    "path",
    [
        "/v1",
        "/v1/",
        "/v1/experiment",
        "/v2/experiments",
        "/nothing",
        "/v1/experiments/a/b/c",
        "/v1/experiments/",
        "/v1/experiments/%2F",
    ],
)
def test_an_unknown_path_is_a_problem_too(served: Served, path: str) -> None:
    assert_problem(served.get(path), 404, "/docs")


@pytest.mark.parametrize("path", sorted({route.path for route in ROUTES} | {"/metrics", "/openapi.json"}))
def test_other_methods_are_refused_and_the_right_ones_told(served: Served, path: str) -> None:
    methods = {route.method for route in ROUTES if route.path == path} or {"GET"}
    is_stream = path.endswith(("/live", ".csv", ".parquet"))
    methods |= {"HEAD"} if "GET" in methods and not is_stream else set()
    for method in {"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"} - methods:
        answer = send(served, method, path.format(name="layout", decision_id=UNKNOWN, key_id="a" * 12))
        assert_problem(answer, 405)
        assert {one.strip() for one in answer.headers["allow"].split(",")} == methods


# -- without keys: this machine only --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "localhost.evil.example", "127.0.0.1.nip.io", "[", ""]
)
def test_a_foreign_host_is_not_answered(served: Served, host: str) -> None:
    """Otherwise a web page could point its domain at this machine and read everything (DNS rebinding)."""
    for method, path in (("GET", "/v1/experiments"), ("POST", DECISIONS), ("GET", "/metrics"), ("GET", "/healthz")):
        assert_problem(send(served, method, path, headers={"Host": host}), 403, "belated keys create")


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://localhost:1", "https://[", "http://[::1"])
def test_a_foreign_page_is_not_answered(served: Served, origin: str) -> None:
    before = served.get("/v1/store").json()["entries"]
    for method, path in (("GET", "/v1/experiments"), ("POST", DECISIONS)):
        assert_problem(send(served, method, path, headers={"Origin": origin}), 403, "pages of")
    assert served.get("/v1/store").json()["entries"] == before


def test_this_machine_and_its_own_pages_are_answered(served: Served) -> None:
    port = served.url.rpartition(":")[2]
    for host in (f"localhost:{port}", f"127.0.0.1:{port}", f"[::1]:{port}", "localhost"):
        headers = {"Host": host, "Origin": f"http://{host}", "Sec-Fetch-Site": "same-origin"}
        assert send(served, "POST", DECISIONS, headers=headers).status_code == 201


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_page_of_another_site_is_not_answered_without_an_origin_either(served: Served, site: str) -> None:
    answer = send(served, "GET", "/v1/experiments", headers={"Sec-Fetch-Site": site})
    assert_problem(answer, 403, "pages of other sites")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("X-Forwarded-For", "203.0.113.7"),
        ("X-Forwarded-For", "127.0.0.1"),
        ("X-Forwarded-Proto", "https"),
        ("X-Forwarded-Host", "localhost"),
        ("X-Real-IP", "127.0.0.1"),
        ("Forwarded", "for=127.0.0.1"),
        ("Via", "1.1 proxy"),
        ("CF-Connecting-IP", "203.0.113.7"),
        ("CDN-Loop", "cloudflare"),
        ("X-Amzn-Trace-Id", "Root=1"),
        ("Client-IP", "203.0.113.7"),
        ("X-Forwarded", "x"),
    ],
)
def test_what_comes_through_a_proxy_is_not_answered(served: Served, name: str, value: str) -> None:
    for method, path in (("GET", "/v1/experiments"), ("POST", DECISIONS), ("GET", "/metrics")):
        answer = send(served, method, path, headers={name: value})
        assert_problem(answer, 403, "belated keys create")
        assert name.lower() in answer.json()["detail"]


def test_an_unknown_query_parameter_is_refused_with_the_known_ones(served: Served) -> None:
    assert_problem(served.get("/v1/experiments?size=1"), 422, "Known are limit, cursor.")
    assert_problem(served.get("/v1/experiments/layout?size=1"), 422, "This route takes none.")


# -- a full queue ---------------------------------------------------------------------------------------------------


class Stuck:
    """An engine that waits for an event before it does anything."""

    def __init__(self, engine: Engine) -> None:
        self._engine, self.entered, self.free = engine, Event(), Event()
        self.fold, self.journal, self.commit_seconds, self.unsnapshotted = engine.fold, engine.journal, 0.0, 0
        self.entries, self.is_behind, self.applied = 0, False, engine.applied

    def process(self, requests: list[Request]) -> Any:
        self.entered.set()
        assert self.free.wait(30)
        return self._engine.process(requests)

    def catch_up(self) -> None:
        """No other server writes."""

    def expire(self) -> int:
        return 0

    def forget_keys(self) -> None:
        """No key is old enough."""

    def confirm_history(self) -> None:
        """Nothing is lost."""

    def is_snapshot_due(self) -> bool:
        return False

    def snapshot(self) -> None:
        """Not now."""

    def is_last_snapshot_due(self) -> bool:
        return False


def test_a_full_queue_asks_to_come_again(tmp_path: Path) -> None:
    driven = Driven(tmp_path)
    driven.create()
    stuck = Stuck(driven.engine)

    async def run() -> None:
        writer = Writer(stuck, Gate([]).learn, capacity=10)  # type: ignore[arg-type]
        writer.start(asyncio.get_running_loop())
        try:
            await fill(writer)
        finally:
            stuck.free.set()
            await asyncio.to_thread(writer.stop)

    async def fill(writer: Writer) -> None:
        first = asyncio.create_task(writer.submit(Ask("layout", 4)))
        await asyncio.to_thread(stuck.entered.wait, 30)
        second = asyncio.create_task(writer.submit(Ask("layout", 6)))
        await asyncio.sleep(0)
        assert writer.queued == 10
        for request in (Ask("layout", 1), Tell([OutcomeReport("x", "reward", 1.0)])):
            with pytest.raises(Refusal) as refused:
                await asyncio.wait_for(writer.submit(request), 5)
            assert refused.value.kind == "unavailable"
            assert refused.value.retry_after == 1
        stuck.free.set()
        assert [len((await task).decisions) for task in (first, second)] == [4, 6]
        assert writer.queued == 0
        assert len((await writer.submit(Ask("layout", 1))).decisions) == 1

    asyncio.run(run())
    assert driven["layout"].counts.decisions == 11
