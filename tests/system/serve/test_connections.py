"""Callers that send too much, too slowly or nothing at all are answered where HTTP allows it, and cannot stay."""

import json
import re
import select
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from belated.serve.process.connections import MAX_HEAD, MAX_HEADERS, MAX_PATH, MAX_PIPELINED, Limits
from tests.support.machine import ROOT
from tests.support.service import NO_TLS, compile_kernels

START = """
import sys
from belated.serve.process import logs, run
from belated.serve.process.connections import Limits
logs.start()
run.REPORT_EVERY = 10
limits = Limits(connections=20, head=1.0, body=1.5, keep_alive=2.0, reading=1.5, linger=0.5)
run.serve(run.Plan(sys.argv[1], "127.0.0.1", 0, limits=limits), [lambda url, _: print(url, flush=True)])
"""
HOST = b"Host: 127.0.0.1\r\n"
HEALTH = b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n"
CREATE = b"POST /v1/experiments HTTP/1.1\r\n" + HOST + b"Content-Type: application/json\r\n"
MEGABYTE = 2**20


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("service") / "service.log"


@pytest.fixture(scope="module")
def port(log: Path) -> Iterator[int]:
    """A server with short timeouts and few connections."""
    compile_kernels()
    command = [sys.executable, "-c", START, str(log.parent / "belated.db")]
    with (
        log.open("w") as output,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=output, text=True) as process,  # noqa: S603
    ):
        assert process.stdout is not None
        yield int(process.stdout.readline().rpartition(":")[2])
        process.terminate()
        assert process.wait(20) == 0


def call(port: int) -> socket.socket:
    made = socket.create_connection(("127.0.0.1", port))
    made.settimeout(10)
    return made


def send(caller: socket.socket, content: bytes) -> None:
    """Send as much as the server takes."""
    with suppress(OSError):
        caller.sendall(content)


def to_the_end(caller: socket.socket) -> bytes:
    """Everything that the server sends until it closes the connection."""
    got = b""
    while part := caller.recv(65536):
        got += part
    return got


def problem(got: bytes) -> dict[str, Any]:
    """The problem document of an answer, after which the connection was closed."""
    head, _, body = got.partition(b"\r\n\r\n")
    assert b"connection: close" in head.lower()
    assert b"content-type: application/problem+json" in head.lower()
    found: dict[str, Any] = json.loads(body)
    assert head.startswith(b"HTTP/1.1 %d " % found["status"])
    return found


def status_of(port: int, content: bytes) -> int:
    with call(port) as caller:
        send(caller, content)
        return int(problem(to_the_end(caller))["status"])


def is_well(port: int) -> bool:
    return httpx.get(f"http://127.0.0.1:{port}/healthz", verify=NO_TLS, timeout=5).status_code == 200


# -- too much -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"GET /healthz HTTP/1.1\r\nX: " + b"x" * (63 * MEGABYTE) + b"\r\n\r\n", 431),
        (b"GET /healthz HTTP/1.1\r\nX: " + b"x" * MAX_HEAD + b"\r\n\r\n", 431),
        (b"GET /healthz HTTP/1.1\r\n" + b"x" * MEGABYTE, 431),
        (b"GET /healthz HTTP/1.1\r\n" + b"X: y\r\n" * (MAX_HEADERS + 1) + b"\r\n", 431),
        (b"GET /healthz HTTP/1.1\r\n" + b"X: y\r\n" * 1_000_000, 431),
        (b"GET /" + b"x" * MAX_PATH + b" HTTP/1.1\r\n" + HOST + b"\r\n", 414),
        (b"GET /healthz?" + b"x" * (63 * MEGABYTE), 414),
        (b"x" * MEGABYTE, 400),
        (b"\x16\x03\x01\x02\x00\x01", 400),
        (b"POST /healthz HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
    ],
    ids=["header-63MB", "header", "name", "headers", "million-headers", "path", "query-63MB", "x", "tls", "both"],
)
def test_a_head_that_is_too_large_is_refused(port: int, content: bytes, status: int) -> None:
    assert status_of(port, content) == status
    assert is_well(port)


def test_what_is_just_within_the_limits_is_answered(port: int) -> None:
    large = HOST + b"X: y\r\n" * (MAX_HEADERS - 2) + b"X: " + b"x" * (MAX_HEAD - 1024) + b"\r\n\r\n"
    path = b"/healthz?" + b"x" * (MAX_PATH - 9)
    for content in (b"GET /healthz HTTP/1.1\r\n" + large, b"GET " + path + b" HTTP/1.1\r\n" + HOST + b"\r\n"):
        with call(port) as caller:
            for start in range(0, len(content), 1000):  # in many reads
                caller.sendall(content[start : start + 1000])
            assert caller.recv(65536).startswith(b"HTTP/1.1 200 ")


def test_a_body_that_is_too_large_is_refused(port: int) -> None:
    """Also one that was never announced, never read, or made of what is not counted as a body."""
    with call(port) as caller:
        send(caller, CREATE + b"Content-Length: 100000000000\r\n\r\n" + b"x" * (20 * MEGABYTE))
        assert to_the_end(caller).startswith(b"HTTP/1.1 413 ")
    chunk = b"10000\r\n" + b" " * 65536 + b"\r\n"
    with call(port) as caller:
        send(caller, CREATE + b"Transfer-Encoding: chunked\r\n\r\n" + chunk * 400)
        assert to_the_end(caller).startswith(b"HTTP/1.1 413 ")
    with call(port) as caller:  # nobody reads it, because this route takes no body
        send(caller, b"GET /healthz HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n" + chunk * 400)
        assert to_the_end(caller).startswith(b"HTTP/1.1 200 ")
    extension = b"1;" + b"x" * (20 * MEGABYTE)
    assert status_of(port, CREATE + b"Transfer-Encoding: chunked\r\n\r\n" + extension) == 413
    trailers = CREATE + b"Transfer-Encoding: chunked\r\n\r\n0\r\n" + b"X: y\r\n" * 1_000
    assert status_of(port, trailers) == 431
    assert is_well(port)


def test_requests_sent_ahead_are_answered_in_order_and_limited(port: int) -> None:
    with call(port) as caller:
        caller.sendall(HEALTH * 20)
        got = b""
        while got.count(b"HTTP/1.1 200 ") < 20:
            got += caller.recv(65536)
    with call(port) as caller:
        send(caller, HEALTH * 10 * MAX_PIPELINED)
        assert to_the_end(caller).count(b"HTTP/1.1 ") <= MAX_PIPELINED + 1


def refused(port: int, status: int) -> float:
    """How many requests broke a limit of their connection and got this status, by the metrics."""
    text = httpx.get(f"http://127.0.0.1:{port}/metrics", verify=NO_TLS, timeout=5).text
    found = re.search(rf'^belated_connections_refused_total{{status="{status}"}} (\S+)$', text, re.MULTILINE)
    return float(found[1]) if found else 0.0


def test_nobody_can_fill_the_log(port: int, log: Path) -> None:
    before, counted = len(log.read_text().splitlines()), refused(port, 400)
    for _ in range(500):
        assert status_of(port, b"junk\r\n\r\n") == 400
    time.sleep(1.2)
    lines = [json.loads(line) for line in log.read_text().splitlines()[before:]]
    assert {line["message"] for line in lines} == {"requests were refused"}
    assert len(lines) < 20
    assert sum(line["by_status"].get("400", 0) for line in lines) in range(500, 510)  # each of them once
    assert refused(port, 400) == counted + 500


# -- too slow -------------------------------------------------------------------------------------------------------


def drip(caller: socket.socket, seconds: float) -> bytes:
    """Send a byte now and then, and return what the server sends."""
    caller.settimeout(0.1)
    got, until = b"", time.monotonic() + seconds
    while time.monotonic() < until:
        send(caller, b"x")
        try:
            part = caller.recv(65536)
        except TimeoutError:
            continue
        if not part:
            return got
        got += part
    raise AssertionError(f"still open, got {got!r}")


@pytest.mark.parametrize(
    "begin",
    [
        b"GET /healthz HTTP/1.1\r\nX: ",
        b"GET /",
        CREATE + b"Content-Length: 1000\r\n\r\n",
        HEALTH + b"GET /healthz HTTP/1.1\r\nX: ",
    ],
    ids=["header", "path", "body", "second"],
)
def test_a_request_that_never_ends_gets_408(port: int, begin: bytes) -> None:
    with call(port) as caller:
        caller.sendall(begin)
        answers = [one for one in re.split(rb"(?=HTTP/1\.1 )", drip(caller, 6)) if one]
    assert len(answers) == 1 + begin.startswith(HEALTH)
    assert problem(answers[-1])["status"] == 408
    assert "seconds" in problem(answers[-1])["detail"]


def test_a_body_that_nobody_reads_may_not_take_for_ever(port: int) -> None:
    with call(port) as caller:
        caller.sendall(b"GET /healthz HTTP/1.1\r\n" + HOST + b"Content-Length: 1000\r\n\r\n")
        assert drip(caller, 6).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("begin", [b"", HEALTH, b"\r\n", HEALTH + b"\r\n"], ids=["new", "used", "line", "used-line"])
def test_an_idle_connection_ends_without_an_answer(port: int, begin: bytes) -> None:
    with call(port) as caller:
        caller.sendall(begin)
        got = to_the_end(caller)
        assert got.count(b"HTTP/1.1") == (HEALTH in begin)


def test_a_caller_that_does_not_read_is_left(port: int) -> None:
    """The answers fill the buffers of both sides."""
    with call(port) as caller:
        caller.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        ask = b"GET /openapi.json HTTP/1.1\r\n" + HOST + b"\r\n"
        caller.sendall(ask * (MAX_PIPELINED - 1))
        waiting = select.poll()
        waiting.register(caller, 0)  # reports only that the connection was reset
        began = time.monotonic()
        assert waiting.poll(8_000)
        assert time.monotonic() - began > 1  # not because it has sent too much


# -- too many -------------------------------------------------------------------------------------------------------


def test_half_requests_do_not_keep_others_out(port: int) -> None:
    """There may be 20 connections. The one that has waited longest makes room."""
    half = [call(port) for _ in range(60)]
    for caller in half:
        send(caller, CREATE + b"Content-Length: 100\r\n\r\n{")
    for _ in range(10):
        assert is_well(port)
    time.sleep(3)
    for caller in half:
        caller.settimeout(0.1)
        with suppress(ConnectionResetError):
            to_the_end(caller)  # it was ended
        caller.close()
    assert is_well(port)


def test_when_all_are_busy_a_new_one_is_asked_to_come_again(port: int) -> None:
    streams = [call(port) for _ in range(20)]
    for stream in streams:
        stream.sendall(b"GET /v1/live HTTP/1.1\r\n" + HOST + b"\r\n")
        assert stream.recv(65536).startswith(b"HTTP/1.1 200 ")
    with call(port) as caller:
        got = to_the_end(caller)
        assert b"retry-after: 1" in got.lower()
        assert problem(got)["status"] == 503
    for stream in streams:
        assert stream.recv(65536)  # it goes on
        stream.close()
    deadline = time.monotonic() + 5
    while not is_well(port):
        assert time.monotonic() < deadline


FILES = """
import resource, sys
from belated.serve.process import logs
from belated.serve.process.connections import allow_files
logs.start()
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]), int(sys.argv[2])))
allow_files(300)
print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""


@pytest.mark.parametrize(("soft", "hard", "allowed"), [(256, 1024, 500), (700, 1024, 700), (256, 400, 400)])
def test_there_are_enough_files_for_all_connections(soft: int, hard: int, allowed: int) -> None:
    command = [sys.executable, "-c", FILES, str(soft), str(hard)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    assert int(done.stdout) == allowed
    assert ("too few open files" in done.stderr) == (allowed < 500)


def test_the_server_keeps_connections_longer_than_nginx() -> None:
    """Otherwise nginx sends a request into a connection that the server is closing, and the caller gets 502."""
    for name in ("replicas.conf", "replicas-compose.conf"):
        [kept] = re.findall(r"keepalive_timeout (\d+)s;", (ROOT / "deploy" / name).read_text())
        assert Limits().keep_alive >= int(kept) + 10


def test_the_options_are_heard(tmp_path: Path) -> None:
    refused = subprocess.run(
        [sys.executable, "-m", "belated", "serve", "--connections", "0"], cwd=tmp_path, capture_output=True, check=False
    )
    assert refused.returncode == 2
