"""A relay between two sockets that can be cut like a cable. Nothing is refused or closed, but nothing comes through.

As a program it passes on from a Unix socket to a port of the network that it runs in: `relay.py PATH PORT`.
"""

import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread

LOOPBACK = "127.0.0.1"


class Relay:
    """Passes on whatever comes to `listening` to a port on this machine; after a cut what was sent comes late."""

    def __init__(self, listening: socket.socket, port: int) -> None:
        self._listening, self._port, self._is_whole, self._ends = listening, port, Event(), list[socket.socket]()
        self._is_whole.set()
        self._mark, self._times = b"", 0
        self._start(self._accept)

    @staticmethod
    def _start(target: "object", *arguments: socket.socket) -> None:
        Thread(target=target, args=arguments, daemon=True).start()  # type: ignore[arg-type]

    def cut(self) -> None:
        """From now on both sides hear nothing."""
        self._is_whole.clear()

    def cut_at(self, mark: bytes, times: int) -> None:
        """As soon as this has come so often: the last of it is held back."""
        self._mark, self._times = mark, times

    def heal(self) -> None:
        """What has been sent meanwhile comes through."""
        self._is_whole.set()

    def close(self) -> None:
        """For good."""
        self._is_whole.set()
        for end in (self._listening, *self._ends):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _accept(self) -> None:
        with suppress(OSError):  # closed
            while True:
                near, _ = self._listening.accept()
                self._ends.append(near)
                self._start(self._join, near)

    def _join(self, near: socket.socket) -> None:
        self._is_whole.wait()
        with suppress(OSError):
            far = socket.create_connection((LOOPBACK, self._port))
            self._ends.append(far)
            self._start(self._pass_on, near, far)
            self._pass_on(far, near)

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):  # one of them has gone
            while data := source.recv(65536):
                if self._times and self._mark in data:
                    self._times -= 1
                    if not self._times:
                        self.cut()
                self._is_whole.wait()
                target.sendall(data)
        self._is_whole.wait()
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


def listen_on_loopback() -> socket.socket:
    """At any free port."""
    return socket.create_server((LOOPBACK, 0))


@contextmanager
def relay_to(port: int) -> Iterator[tuple[Relay, int]]:
    """A relay to this port, and its own port."""
    listening = listen_on_loopback()
    relay = Relay(listening, port)
    yield relay, listening.getsockname()[1]
    relay.close()


def main(path: str, port: str) -> None:
    """Until it is killed."""
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(path)
    listening.listen(100)
    Relay(listening, int(port))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    Event().wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
