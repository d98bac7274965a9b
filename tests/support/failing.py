"""Servers that fail in every way a client may meet."""

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread

Serve = Callable[[socket.socket, Event], None]


@contextmanager
def serving(serve: Serve) -> Iterator[str]:
    """A server that does this with every connection."""
    listener, over = socket.create_server(("127.0.0.1", 0)), Event()

    def accept() -> None:
        with suppress(OSError):
            while True:
                Thread(target=treat, args=(listener.accept()[0],), daemon=True).start()

    def treat(caller: socket.socket) -> None:
        with caller, suppress(OSError):
            serve(caller, over)

    acceptor = Thread(target=accept)
    acceptor.start()
    try:
        yield f"127.0.0.1:{listener.getsockname()[1]}"
    finally:
        over.set()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        acceptor.join()


def answering(head: str, body: bytes = b"") -> Serve:
    """Answer every request with this."""

    def serve(caller: socket.socket, _over: Event) -> None:
        while caller.recv(65536):
            caller.sendall(f"HTTP/1.1 {head}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)

    return serve


def dripping(first: bytes, drip: bytes) -> Serve:
    """Answer without an end."""

    def serve(caller: socket.socket, over: Event) -> None:
        caller.recv(65536)
        caller.sendall(first)
        while not over.wait(0.05):
            caller.sendall(drip)

    return serve


def silent(_caller: socket.socket, over: Event) -> None:
    over.wait(5)


FAILURES: dict[str, Serve] = {
    "says nothing": silent,
    "closes at once": lambda caller, _over: caller.close(),
    "headers without an end": dripping(b"HTTP/1.1 200 OK\r\n", b"X-A: b\r\n"),
    "a body without an end": dripping(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", b"x"),
    "not HTTP": dripping(b"220 mail.example\r\n", b"x"),
    "a web page": answering("200 OK", b"<html>sign in</html>"),
    "another document": answering("200 OK", b"[1]"),
    "broken gzip": answering("200 OK\r\nContent-Encoding: gzip", b"nonsense"),
    "a redirect": answering("302 Found\r\nLocation: /elsewhere"),
    "always busy": answering("503 Service Unavailable\r\nRetry-After: 0"),
    "busy for an hour": answering("503 Service Unavailable\r\nRetry-After: 3600"),
    "a failure": answering("500 Internal Server Error"),
    "no key": answering("401 Unauthorized", b'{"title": "A key is needed", "detail": "Send one."}'),
}
