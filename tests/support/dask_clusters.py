"""Real Dask clusters for tests, with a scheduler and workers in processes."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.support.ports import free_port

DASK = str(Path(sys.executable).with_name("dask"))


@contextmanager
def running(*arguments: str, folder: Path, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """Runs `dask ...` as a process, and ends it with all its children. Its log is in the folder."""
    with (folder / f"dask-{arguments[0]}.log").open("ab") as log:
        process = subprocess.Popen(  # noqa: S603
            [DASK, *arguments],
            cwd=folder,
            stdout=log,
            stderr=log,
            env={**os.environ, **environment},
            start_new_session=True,
        )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):  # it is dead already
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def wait_for(process: subprocess.Popen[bytes], port: int) -> None:
    """Wait until the port accepts connections."""
    while True:
        assert process.poll() is None
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return


@contextmanager
def scheduler(folder: Path, **environment: str) -> Iterator[str]:
    """The address of a scheduler that answers."""
    port = free_port()
    arguments = ("scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard", "--dashboard-address", ":0")
    with running(*arguments, folder=folder, **environment) as process:
        wait_for(process, port)
        yield f"tcp://127.0.0.1:{port}"


@contextmanager
def worker(address: str, folder: Path, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """A worker with one thread."""
    arguments = ("worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard")
    with running(*arguments, folder=folder, **environment) as process:
        yield process


@contextmanager
def crew(address: str, folder: Path, size: int) -> Iterator[None]:
    """This many workers. A worker that dies is replaced."""
    over = threading.Event()

    def post() -> None:
        while not over.is_set():
            with worker(address, folder) as process:
                while process.poll() is None and not over.wait(0.05):
                    pass

    threads = [threading.Thread(target=post) for _ in range(size)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()
