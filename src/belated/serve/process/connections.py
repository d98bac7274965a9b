"""Connections with limits. Nobody can occupy the server with requests that are too large, too slow or never end."""

import asyncio
import logging
import socket
import struct
import sys
import time
from collections import Counter, deque
from collections.abc import Iterable
from typing import Any, Final, Literal, NamedTuple, final

import msgspec
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from belated.serve.http.calls import MAX_BODY
from belated.serve.http.guard import OWN
from belated.serve.http.problem_documents import PROBLEM_MEDIA, HTTPProblem
from belated.serve.process.peers import is_own

MAX_PATH: Final = 8 * 2**10  # bytes of the path and the query
MAX_HEAD: Final = 32 * 2**10  # bytes of the path and all headers
MAX_HEADERS: Final = 100
MAX_RAW_BODY: Final = 4 * MAX_BODY  # bytes of a body with what chunks and trailers add
MAX_PIPELINED: Final = 100  # requests that a caller may send ahead, before the first is answered
OTHER_FILES: Final = 200  # open files besides connections
log = logging.getLogger("belated.connections")
Stage = Literal["idle", "head", "body"]


class Limits(NamedTuple):
    """How many connections there may be, and for how many seconds each may keep the server waiting."""

    connections: int = 1_000
    head: float = 10.0  # for the path and the headers, from the first byte
    body: float = 60.0  # for the whole body
    keep_alive: float = 75.0  # between two requests. Longer than a proxy's, so that the proxy closes first
    reading: float = 60.0  # for a caller to read some of its answer
    linger: float = 2.0  # between the last answer and the end, so that the caller can read it


@final
class Connection(HttpToolsProtocol):
    """One connection. A request that breaks a limit gets a problem document, and the connection ends."""

    def __init__(self, *arguments: Any, limits: Limits, refused: Counter[int], **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._refused = refused  # counts by status, of all connections
        self._limits, self._problem = limits, HTTPProblem(400, "this is not HTTP")
        self._stage: Stage = "idle"
        self._begun = 0  # requests
        self._unanswered: deque[RequestResponseCycle] = deque()
        self._size = self._unfinished = 0  # bytes of the head, and of all reads after the one in which it began
        self.waiting_since: float | None = time.monotonic()  # None while the caller waits for the server
        self._unread_since: float | None = None  # when the caller stopped reading
        self._ended_at: float | None = None  # when it began to end
        self._is_ending = False
        self._is_own: bool | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        super().connection_made(transport)
        if len(self.connections) > self._limits.connections and not give_up_one(self.connections - {self}):
            detail = f"the server has {self._limits.connections:,} connections, and all are busy. Try again."
            self._refuse(HTTPProblem(503, detail, {"Retry-After": "1"}))

    # -- what the caller sends -----------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        if self._is_ending:
            return
        before = self._begun
        super().data_received(data)
        if self._stage != "idle" and self._begun == before and not self._is_ending:
            self._unfinished += len(data)
            if self._stage == "head" and self._unfinished > MAX_HEAD:
                self._refuse(head_too_large())
            elif self._stage == "body" and self._unfinished > MAX_RAW_BODY:
                self._refuse(HTTPProblem(413, f"a body may have at most {MAX_BODY:,} bytes"))

    def send_400_response(self, msg: str) -> None:  # uvicorn calls it after an error of the parser
        self._refuse(self._problem)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._begun += 1
        self.scope["state"][OWN] = self._is_own_program
        self._stage, self._size, self._unfinished, self.waiting_since = "head", 0, 0, time.monotonic()

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        self._size += len(url)
        if len(self.url) > MAX_PATH:
            self._fail(HTTPProblem(414, f"a path may have at most {MAX_PATH:,} bytes, with its query"))

    def on_header(self, name: bytes, value: bytes) -> None:
        self._size += len(name) + len(value)
        if self._size > MAX_HEAD or len(self.headers) >= MAX_HEADERS:  # trailers of a body count too
            self._fail(head_too_large())
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        if len(self.pipeline) >= MAX_PIPELINED:
            self._fail(HTTPProblem(400, f"send at most {MAX_PIPELINED} requests before their answers"))
        super().on_headers_complete()
        self._unanswered.append(self.cycle)
        self._stage, self._unfinished, self.waiting_since = "body", 0, time.monotonic()

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._stage, self.waiting_since = "idle", None
        if self.cycle.response_complete:
            self.waiting_since = time.monotonic()

    def on_response_complete(self) -> None:
        self._unanswered.popleft()
        super().on_response_complete()
        if self._stage == "idle" and not self.pipeline:
            self.waiting_since = time.monotonic()

    def _is_own_program(self) -> bool | None:
        """Whether the caller is a program of this user. Asked only by a service without keys, once for a connection."""
        if self._is_own is None and self.client is not None and self.server is not None:
            self._is_own = is_own(self.client, (self.server[0], self.server[1] or 0))
        return self._is_own

    def _fail(self, problem: HTTPProblem) -> None:
        """Stop the parser. uvicorn then calls `send_400_response`."""
        self._problem = problem
        raise problem

    # -- what the caller does not read ---------------------------------------------------------------------------------

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread_since = time.monotonic()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._unread_since = None

    def connection_lost(self, exc: Exception | None) -> None:
        for cycle in self._unanswered:  # uvicorn tells only the last one
            cycle.disconnected = True
            cycle.message_event.set()
        super().connection_lost(exc)

    # -- the end -------------------------------------------------------------------------------------------------------

    def check(self, now: float) -> None:
        """End the connection if the caller is too slow."""
        if self._is_ending or self.transport.is_closing():
            self._ended_at = self._ended_at or now
            if now > self._ended_at + (self._limits.linger if self._is_ending else self._limits.reading):
                self.abort()
        elif self._unread_since is not None:
            if now > self._unread_since + self._limits.reading:
                self.abort()
        elif self.waiting_since is not None and self.flow.read_paused:
            self.waiting_since = now  # the server does not read now
        elif self.waiting_since is not None:
            self._check_wait(now - self.waiting_since)

    def _check_wait(self, waited: float) -> None:
        if self._stage == "head" and waited > self._limits.head:
            self._refuse(HTTPProblem(408, f"the headers took longer than {self._limits.head:g} seconds"))
        elif self._stage == "body" and waited > self._limits.body:
            self._refuse(HTTPProblem(408, f"the body took longer than {self._limits.body:g} seconds"))
        elif self._stage == "idle" and waited > (self._limits.head if self.cycle is None else self._limits.keep_alive):
            self.transport.close()

    def abort(self) -> None:
        """End at once. The system does not keep what the caller has not read."""
        made = self.transport.get_extra_info("socket")
        if made is not None:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()

    def _can_answer(self) -> bool:
        """Whether an answer sent now would be the answer to the present request."""
        if self._stage == "body":
            return not self.pipeline and not self.cycle.response_started
        return self.cycle is None or self.cycle.response_complete

    def _refuse(self, problem: HTTPProblem) -> None:
        """Answer, if the protocol allows it, and end. Reads on for a moment, or the caller might not get the answer."""
        if self._is_ending or self.transport.is_closing():
            return
        self._is_ending = True
        self._refused[problem.status] += 1
        self._unset_keepalive_if_required()
        if self._can_answer():
            self.transport.write(answer_of(problem))
        elif self._stage != "body" or not self.cycle.response_complete:
            self.transport.close()  # in the middle of another answer
            return
        if self._stage == "body" and not self.cycle.response_complete:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.flow.resume_reading()
        self.transport.write_eof()


def give_up_one(connections: Iterable[Any]) -> bool:
    """End the connection that has kept the server waiting longest. Returns False if all are busy."""
    waiting = [one for one in connections if one.waiting_since is not None and not one.transport.is_closing()]
    if not waiting:
        return False
    min(waiting, key=lambda one: one.waiting_since).abort()
    return True


def allow_files(connections: int) -> None:
    """Let this process open enough files for all connections. Warns if the system does not allow it."""
    if sys.platform == "win32":  # it has no such limit
        return
    import resource  # noqa: PLC0415

    wanted = connections + OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    got = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (got, hard))
    if got < wanted:
        said = "the system allows too few open files for all connections. Raise `ulimit -n` or lower --connections"
        log.warning(said, extra={"connections": connections, "files": got, "needed": wanted})


def head_too_large() -> HTTPProblem:
    """Return the answer to a head that is too large."""
    return HTTPProblem(431, f"the headers may have at most {MAX_HEAD:,} bytes and be {MAX_HEADERS} in number")


def answer_of(problem: HTTPProblem) -> bytes:
    """Return a whole answer, after which the connection ends."""
    body = msgspec.json.encode(problem.document())
    headers = {"content-type": PROBLEM_MEDIA, "content-length": str(len(body)), "connection": "close"}
    lines = "".join(f"{name}: {value}\r\n" for name, value in {**headers, **problem.headers}.items())
    return STATUS_LINE[problem.status] + lines.encode() + b"\r\n" + body
