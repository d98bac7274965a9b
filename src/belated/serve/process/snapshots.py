"""A process that follows the journal and saves snapshots. So no server stalls while a large one is written.

A server starts it when a snapshot is due. Of all servers of a store one has such a process at a time. It ends by itself
when nothing has been due for a while, and when its server has ended.
"""

import logging
import os
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from threading import Lock
from typing import Final, final

from belated.errors import StoreError
from belated.serve.engine.engine import Engine
from belated.serve.process import logs
from belated.serve.service.reading import SILENCE_TIMEOUT
from belated.serve.store.opening import open_journal

STORE_VARIABLE: Final = "BELATED_SNAPSHOT_STORE"  # other users cannot read it, unlike a command line
NICENESS: Final = 10
POLL_SECONDS: Final = 0.2
LINGER_SECONDS: Final = 30.0  # it stays while snapshots are due this often, because a start takes a second
RESTART_PAUSE: Final = 10.0  # seconds between two starts
STOP_TIMEOUT: Final = 5.0
log = logging.getLogger("belated.snapshots")


@final
class SnapshotProcess:
    """The server's side: starts the process when a snapshot is due, and ends it."""

    def __init__(self, store: str | Path) -> None:
        self._store, self._started_at = str(store), -RESTART_PAUSE
        self._process: subprocess.Popen[bytes] | None = None
        self._is_stopped, self._lock = False, Lock()

    def start(self) -> None:
        """Start the process unless it runs, was started a moment ago, or was stopped."""
        with self._lock:
            self._start()

    def _start(self) -> None:
        is_running = self._process is not None and self._process.poll() is None
        if self._is_stopped or is_running or time.monotonic() < self._started_at + RESTART_PAUSE:
            return
        self._started_at = time.monotonic()
        environment = {**os.environ, STORE_VARIABLE: self._store}
        command = [sys.executable, "-m", __name__]
        self._process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL)  # noqa: S603

    def stop(self) -> None:
        """End the process for good. A snapshot that it was writing does not count."""
        with self._lock:
            self._is_stopped = True
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def follow(store: str, server: int) -> None:
    """Save snapshots while they are due and the server with this process id runs."""
    with closing(open_journal(store, silence_timeout=SILENCE_TIMEOUT, may_create=False)) as journal:
        if not journal.claim_snapshots():
            return  # another server's process saves them
        engine, last_due = Engine(journal), time.monotonic()
        while os.getppid() == server and time.monotonic() < last_due + LINGER_SECONDS:
            before = engine.fold.seq
            engine.catch_up()
            if engine.is_snapshot_due():
                engine.snapshot()
                last_due = time.monotonic()
            elif engine.fold.seq == before:
                time.sleep(POLL_SECONDS)


def main() -> None:
    """Run the process that `SnapshotProcess` starts."""
    server = os.getppid()
    os.nice(NICENESS)
    logs.start()
    try:
        follow(os.environ[STORE_VARIABLE], server)
    except StoreError as error:
        log.error("a snapshot could not be saved", extra={"error": str(error)})
        sys.exit(1)


if __name__ == "__main__":
    main()
