"""A relay between two sockets that can be cut like a cable. Nothing is refused or closed, but nothing comes through.

The program `relay.py PATH PORT` forwards from a Unix socket to a port of the network it runs in.
"""

import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from queue import SimpleQueue
from threading import Event, Thread

LOOPBACK = "127.0.0.1"


class Relay:
    """Forwards connections from `listening` to a port on this machine. Data sent during a cut arrives late.

    With a `delay` all data arrive so many seconds later, in each direction, as over a long cable.
    """

    def __init__(self, listening: socket.socket, port: int, delay: float = 0.0) -> None:
        self._delay = delay
        self._listening, self._port, self._is_whole, self._ends = listening, port, Event(), list[socket.socket]()
        self._is_whole.set()
        self._mark, self._times = b"", 0
        self._start(self._accept)

    @staticmethod
    def _start(target: "object", *arguments: object) -> None:
        Thread(target=target, args=arguments, daemon=True).start()  # type: ignore[arg-type]

    def cut(self) -> None:
        """Stop forwarding in both directions."""
        self._is_whole.clear()

    def cut_at(self, mark: bytes, times: int) -> None:
        """Cut when `mark` has been seen this many times. The last one is held back."""
        self._mark, self._times = mark, times

    def heal(self) -> None:
        """Forward again, beginning with the data that was held back."""
        self._is_whole.set()

    def close(self) -> None:
        """Close the listener and all connections."""
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
            for end in (near, far):
                if end.family != socket.AF_UNIX:  # or a second small piece would wait for the receipt of the first
                    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._start(self._pass_on, near, far)
            self._pass_on(far, near)

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        send = self._late(target) if self._delay else target.sendall
        with suppress(OSError):  # one side is closed
            while data := source.recv(65536):
                if self._times and self._mark in data:
                    self._times -= 1
                    if not self._times:
                        self.cut()
                self._is_whole.wait()
                send(data)
        self._is_whole.wait()
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _late(self, target: socket.socket) -> Callable[[bytes], object]:
        """Return a function that sends data to the target after the delay."""
        waiting: SimpleQueue[tuple[float, bytes]] = SimpleQueue()

        def send_each() -> None:
            with suppress(OSError):  # closed
                while True:
                    due, data = waiting.get()
                    time.sleep(max(0.0, due - time.monotonic()))
                    target.sendall(data)

        self._start(send_each)
        return lambda data: waiting.put((time.monotonic() + self._delay, data))


def listen_on_loopback() -> socket.socket:
    """A listener on a free port."""
    return socket.create_server((LOOPBACK, 0))


@contextmanager
def relay_to(port: int, delay: float = 0.0) -> Iterator[tuple[Relay, int]]:
    """Run a relay to this port. Yields it with its own port."""
    listening = listen_on_loopback()
    relay = Relay(listening, port, delay)
    yield relay, listening.getsockname()[1]
    relay.close()


def main(path: str, port: str) -> None:
    """Forward until the process is killed."""
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(path)
    listening.listen(100)
    Relay(listening, int(port))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    Event().wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
