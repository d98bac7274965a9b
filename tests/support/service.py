"""A real service for tests. `belated serve` runs in its own process and folder."""

import os
import re
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

from belated.warming import use_every_kernel

HERE = Path(sys.executable)
NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # httpx would read all certificates for every request


@cache
def compile_kernels() -> None:
    """Fill Numba's cache once for all servers. On a new machine compiling takes longer than a request may."""
    use_every_kernel()


class Served:
    """A running service that a test can stop, kill and start again."""

    def __init__(self, folder: Path, *options: str, inside: Sequence[str] = (), python: Path = HERE) -> None:
        self.folder, self._options, self.url = folder, options, ""
        self._inside = inside  # a command that runs another, for example in a separate network
        self._python = str(python)
        compile_kernels()
        self.start()

    def start(self) -> None:
        """Start, or start again after a stop, on a free port."""
        first = self.launch()
        assert self.url, f"not ready: {first!r} {self.log()[-2000:]}"

    def log(self) -> str:
        """The whole log, also of earlier starts."""
        return (self.folder / "service.log").read_text()

    def launch(self) -> str:
        """Start it and return the first line that it prints. `url` stays empty if it did not start."""
        self.url = ""
        log = (self.folder / "service.log").open("a")
        command = [*self._inside, self._python, "-m", "belated", "serve", "--port", "0", *self._options]
        environment = {**os.environ, "COLUMNS": "200"}
        began = time.monotonic()
        self.process = subprocess.Popen(  # noqa: S603
            command, cwd=self.folder, stdout=subprocess.PIPE, stderr=log, text=True, env=environment
        )
        log.close()
        assert self.process.stdout is not None
        first = self.process.stdout.readline()
        found = re.search(r"http://\S+", first)
        self.ready_after = time.monotonic() - began
        self.url = found.group().rstrip("/") if found else ""
        return first

    def kill(self) -> None:
        """Like `kill -9`."""
        self.process.kill()
        self.ended()

    def stop(self) -> int:
        """Send SIGTERM, as a system does when it shuts down, and return the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.ended()

    def ended(self, within: float = 30) -> int:
        """Wait for the end and return the exit code."""
        code = self.process.wait(within)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.kill()

    def post(self, path: str, body: Any = None, **headers: str) -> httpx.Response:
        """Send one POST request."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        with self.client() as http:
            return http.post(path, json=body, headers=named)

    def get(self, path: str, **headers: str) -> httpx.Response:
        """Send one GET request."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        with self.client() as http:
            return http.get(path, headers=named)

    def client(self) -> httpx.Client:
        """A client for many requests."""
        return httpx.Client(base_url=self.url, timeout=30, verify=NO_TLS)
