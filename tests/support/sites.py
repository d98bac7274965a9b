"""A database and a server far from it. The connection between them can be cut silently, and healed."""

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, final

import httpx

from tests.support import network, relay
from tests.support.postgres import Cluster
from tests.support.service import NO_TLS, Served


class Site(NamedTuple):
    """A database, and ways to reach it and cut it off. `near` and `far` turn a database name into a URL."""

    cluster: Cluster
    near: Callable[[str], str]
    far: Callable[[str], str]
    inside: Sequence[str]  # a command that runs another beside the far server
    serve_far: Callable[[Path, str], Served]
    cut: Callable[[], None]
    heal: Callable[[], None]
    cut_at: Callable[[bytes, int], None] | None = None  # cuts when the mark was sent this often


@final
class Inside(Served):
    """A service in another network. Tests reach it through a Unix socket."""

    def __init__(self, folder: Path, *options: str, inside: Sequence[str]) -> None:
        self._relay: subprocess.Popen[str] | None = None
        super().__init__(folder, *options, inside=inside)

    def launch(self) -> str:
        first = super().launch()
        if self.url:
            self._folder = tempfile.TemporaryDirectory(
                prefix="belated-http-"
            )  # short, because the path of a socket has a limit
            self._path = f"{self._folder.name}/socket"
            command = [*self._inside, sys.executable, relay.__file__, self._path, self.url.rpartition(":")[2]]
            self._relay = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603
            assert self._relay.stdout is not None
            assert self._relay.stdout.readline() == "ready\n"
        return first

    def client(self) -> httpx.Client:
        transport = httpx.HTTPTransport(verify=NO_TLS, uds=self._path)
        return httpx.Client(base_url=self.url, timeout=30, transport=transport)

    def ended(self, within: float = 30) -> int:
        code = super().ended(within)
        if self._relay is not None:
            assert self._relay.stdout is not None
            self._relay.stdout.close()
            self._relay.kill()
            self._relay.wait()
            self._relay = None
            self._folder.cleanup()
        return code


@contextmanager
def behind_a_relay() -> Iterator[Site]:
    """A site on loopback. TCP acknowledges data sent during a cut, which arrives after the cut."""
    cluster = Cluster()
    with relay.relay_to(cluster.port) as (between, port):

        def far(name: str) -> str:
            return cluster.url(name).replace(f":{cluster.port}/", f":{port}/")

        def serve_far(folder: Path, url: str) -> Served:
            return Served(folder, "--store", url)

        yield Site(cluster, cluster.url, far, [], serve_far, between.cut, between.heal, between.cut_at)
    cluster.remove()


@contextmanager
def in_namespaces() -> Iterator[Site]:
    """A site with two networks and a cable between them. Data sent during a cut is lost."""
    cable = network.Cable()
    cluster, inside = Cluster(namespace=cable.near), network.inside(cable.far)

    def serve_far(folder: Path, url: str) -> Served:
        return Inside(folder, "--store", url, inside=inside)

    yield Site(cluster, cluster.local_url, cluster.url, inside, serve_far, cable.cut, cable.heal)
    cluster.remove()
    cable.remove()


WAYS: dict[str, Any] = {"relay": behind_a_relay}
if network.are_there():
    WAYS["namespaces"] = in_namespaces
