"""The ASGI application: routes, dashboard pages, and answers to errors."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, final

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Mount
from starlette.routing import Route as StarletteRoute
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

from belated.errors import InvalidInput, StoreError, StoreUnreachable
from belated.serve.domain.refusals import STORE_UNREACHABLE, STORE_UNREADABLE, Refusal, try_later
from belated.serve.http import openapi, request_ids
from belated.serve.http.auditing import note_change, note_refusal
from belated.serve.http.boards import Board
from belated.serve.http.calls import Answer, Call
from belated.serve.http.guard import guard
from belated.serve.http.metrics import Metrics
from belated.serve.http.problem_documents import PROBLEM_MEDIA, HTTPProblem, problem_of
from belated.serve.http.routes import ROUTES, Route
from belated.serve.service.service import Service

NOT_MODIFIED: Final = 304
DASHBOARD: Final = Path(__file__).parent.parent / "dashboard"
SAFE_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
}  # of every answer. No other site may show it in a frame, and a browser takes it for what it is
PAGE_HEADERS: Final = {
    **SAFE_HEADERS,
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",  # for browsers that do not know frame-ancestors
    "Content-Security-Policy": (
        "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; object-src 'none'; "
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "Cache-Control": "no-cache",
}
RAW_HEADERS: Final = [(name.lower().encode(), value.encode()) for name, value in SAFE_HEADERS.items()]
log = logging.getLogger("belated.http")
encode = msgspec.json.Encoder().encode


def problem_answer(problem: HTTPProblem) -> Answer:
    """Return the answer to a request with a problem."""
    return Answer(problem.status, problem.document(request_ids.CURRENT.get()), problem.headers, PROBLEM_MEDIA)


def refusal_of(error: InvalidInput | StoreError) -> Refusal:
    """Turn an error of the library into a refusal."""
    if isinstance(error, InvalidInput):
        return Refusal("invalid", str(error))
    log.error("the store cannot be read", extra={"error": str(error)})
    return (
        try_later(STORE_UNREACHABLE)
        if isinstance(error, StoreUnreachable)
        else Refusal("unavailable", STORE_UNREADABLE)
    )


def headers_of(answer: Answer) -> list[tuple[bytes, bytes]]:
    """Return the headers in the form that ASGI wants."""
    headers = [(b"content-type", answer.media.encode()), (b"cache-control", b"no-store"), *RAW_HEADERS]
    if answer.headers:
        headers += [(name.lower().encode(), value.encode()) for name, value in answer.headers.items()]
    return headers


async def send_all(chunks: AsyncGenerator[bytes], receive: Receive, send: Send) -> None:
    """Send a long or endless body until it ends or the client leaves. Stops at once then, whatever it waits for.

    If it cannot be completed, the connection ends before the body does. So the client notices that some is missing.
    """
    gone = asyncio.create_task(disconnected(receive))
    try:
        while True:
            following = asyncio.ensure_future(anext(chunks, None))
            await asyncio.wait((gone, following), return_when=asyncio.FIRST_COMPLETED)
            if gone.done():
                following.cancel()
                await asyncio.wait((following,))
                break
            if (chunk := following.result()) is None:
                break
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
    except Refusal as refusal:
        log.warning("a download was cut off", extra={"reason": refusal.detail})
        return
    finally:
        gone.cancel()
        await chunks.aclose()
    await send({"type": "http.response.body", "body": b""})


async def disconnected(receive: Receive) -> None:
    """Wait until the client has left."""
    while (await receive())["type"] != "http.disconnect":
        pass


@final
class Endpoint:
    """The ASGI application of one path. It admits the caller, calls the method's handler and sends the answer."""

    def __init__(self, service: Service, metrics: Metrics, routes: Mapping[str, Route]) -> None:
        self._service, self._routes = service, routes
        self._metrics, self._counters = metrics, dict[tuple[str, int], Any]()
        self._path = next(iter(routes.values())).path
        self._seconds = metrics.seconds.labels(self._path)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started, call, refused = time.perf_counter(), Call(self._service, scope, receive), None
        try:
            answer = await self._handle(call)
        except HTTPProblem as problem:
            answer = problem_answer(problem)
        except Refusal as refusal:
            self._metrics.refused(refusal)
            answer, refused = problem_answer(problem_of(refusal)), refusal
        except (InvalidInput, StoreError) as error:
            answer = problem_answer(problem_of(refusal_of(error)))
        if answer.status >= 400:
            note_refusal(call, self._path, answer.status, refused)
        await self._send(answer, receive, send)
        self._count(scope["method"], answer.status, time.perf_counter() - started)

    async def _handle(self, call: Call) -> Answer:
        route = self._routes.get(call.scope["method"])
        if route is None:
            allowed = ", ".join(sorted(self._routes))
            raise HTTPProblem(405, f"{self._path} takes only {allowed}", {"Allow": allowed})
        if not self._service.is_locked:
            guard(call)
        if route.scope is not None:
            call.grant = self._service.admit(call.key(), route.scope, is_reading=route.method == "GET")
        answer = await route.handler(call)
        if route.scope == "admin":
            await note_change(call, self._path, answer)
        return answer

    @staticmethod
    async def _send(answer: Answer, receive: Receive, send: Send) -> None:
        headers = headers_of(answer)
        if isinstance(answer.body, AsyncGenerator):
            await send({"type": "http.response.start", "status": answer.status, "headers": headers})
            await send_all(answer.body, receive, send)
            return
        body = answer.body if isinstance(answer.body, bytes) else encode(answer.body)
        if answer.status != NOT_MODIFIED:
            headers.append((b"content-length", str(len(body)).encode()))
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    def _count(self, method: str, status: int, seconds: float) -> None:
        key = method if method in self._routes else "other", status
        if key not in self._counters:
            self._counters[key] = self._metrics.requests.labels(f"{key[0]} {self._path}", str(status))
        self._counters[key].inc()
        self._seconds.observe(seconds)


def documents(metrics: Metrics) -> list[Route]:
    """Return the routes that describe or measure the service itself."""
    described = msgspec.json.encode(openapi.document(ROUTES))

    async def openapi_document(_call: Call) -> Answer:
        """Return this API description."""
        return Answer(200, described)

    async def prometheus(call: Call) -> Answer:
        """Return metrics for Prometheus."""
        only, arms = call.grant.experiment, call.query("arms").get("arms", "")
        if arms not in ("", "all"):
            raise Refusal("invalid", f"arms must be all, or left out, got {arms!r:.80}")
        made = call.service.views.make(("/metrics", only, arms), lambda: metrics.text(only, all_arms=arms == "all"))
        body, media = await made
        return Answer(200, body, media=media)

    return [
        Route("GET", "/openapi.json", openapi_document, None, "The API description", {}),
        Route("GET", "/metrics", prometheus, "metrics", "Metrics", {}),
    ]


def whole(scope: Scope) -> Scope:
    """Return the same request, but for the whole file. What Starlette says to a wrong range is no problem document."""
    headers = [(name, value) for name, value in scope["headers"] if name not in (b"range", b"if-range")]
    return {**scope, "headers": headers}


@final
class Assets(StaticFiles):
    """The files of the pages."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await super().__call__(whole(scope), receive, send)

    def file_response(self, *arguments: Any, **named: Any) -> Response:
        response = super().file_response(*arguments, **named)
        response.headers.update(PAGE_HEADERS)
        return response


@final
class Page(FileResponse):
    """A dashboard page. It gets its data through the API."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await super().__call__(whole(scope), receive, send)


def page(name: str) -> Any:
    """Return a handler for a dashboard page."""

    async def show(_request: Request) -> Response:
        return Page(DASHBOARD / name, headers=PAGE_HEADERS)

    return show


async def on_http_error(_request: Request, error: Exception) -> Response:
    """Answer what Starlette itself refuses, such as an unknown path."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    detail = "there is nothing at this path. See /docs for the API." if status == 404 else "this is not possible here"
    headers = {**SAFE_HEADERS, **((error.headers or {}) if isinstance(error, HTTPException) else {})}
    return Response(encode(problem_answer(HTTPProblem(status, detail)).body), status, headers, PROBLEM_MEDIA)


async def on_failure(request: Request, error: Exception) -> Response:
    """Answer a request that met a bug."""
    log.error("unexpected failure", exc_info=error, extra={"path": request.url.path})
    detail = "an unexpected failure. The service's log has more."
    return Response(encode(problem_answer(HTTPProblem(500, detail)).body), 500, SAFE_HEADERS, PROBLEM_MEDIA)


def routes(service: Service, metrics: Metrics) -> list[BaseRoute]:
    """Return all routes of the service."""
    by_path: dict[str, dict[str, Route]] = {}
    for route in (*ROUTES, *documents(metrics)):
        methods = by_path.setdefault(route.path, {})
        methods[route.method] = route
        if route.method == "GET" and not any(isinstance(given, str) for given in route.gives.values()):
            methods["HEAD"] = route  # not of a stream, which would have to be read to its end to answer
    api = [StarletteRoute(path, Endpoint(service, metrics, methods)) for path, methods in by_path.items()]
    pages = {"/": "index.html", "/experiments/{name}": "experiment.html", "/docs": "docs.html"}
    shown = [StarletteRoute(path, page(file)) for path, file in pages.items()]
    return [*api, *shown, Mount("/static", Assets(directory=DASHBOARD))]


def build(service: Service, board: Board | None = None) -> ASGIApp:
    """Build the application of a service. `board` is where its workers share their metrics, if there are several."""
    metrics = Metrics(service, board)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        service.start(asyncio.get_running_loop())
        publishing = asyncio.create_task(metrics.publish())
        yield
        publishing.cancel()
        metrics.share()  # the last numbers
        service.stop()

    handlers: Any = {HTTPException: on_http_error, Exception: on_failure}
    app = Starlette(routes=routes(service, metrics), lifespan=lifespan, exception_handlers=handlers)
    app.router.redirect_slashes = False  # answer 404 for an unknown path instead of guessing
    return request_ids.with_request_ids(app)
