"""Run one server process, with its socket, HTTP server and store."""

import gc
import logging
import math
import os
import signal
import socket
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from threading import Timer
from types import FrameType
from typing import Any, Final, NamedTuple, final

import uvicorn

from belated import kernels
from belated.errors import InvalidInput
from belated.serve.domain.quotas import Quotas
from belated.serve.http.addresses import is_loopback
from belated.serve.http.app import build
from belated.serve.http.boards import Board
from belated.serve.process.connections import Connection, Limits, allow_files
from belated.serve.process.peers import can_tell
from belated.serve.process.snapshots import SnapshotProcess
from belated.serve.service.service import CAPACITY, Service
from belated.serve.store.journal import Key
from belated.serve.store.opening import shown
from belated.warming import use_every_kernel

PORT: Final = 8321
COMPILE_NOTICE: Final = 3.0  # seconds of compiling before the log mentions it
SHUTDOWN_TIMEOUT: Final = 10  # seconds for requests in flight when the service stops
CHECK_EVERY: Final = 5  # tenths of a second between two searches for slow callers
LAST_WORDS: Final = 5.0  # seconds for which a process whose store has failed can still be read
STOPPED_WITHOUT_STORE, STORE_FAILED = 1, 3  # exit codes. 2 is an error of the command line, or at the start
REPORT_EVERY: Final = 100  # tenths of a second between two lines of the log about refused requests
SWITCH_INTERVAL: Final = 0.0001  # seconds. With Python's 5 ms the writer would wait too long for its turn
Announce = Callable[[str, bool], None]  # called with the address, and whether keys are needed
log = logging.getLogger("belated.serve")


def listen(host: str, port: int, *, is_shared: bool = False) -> socket.socket:
    """Bind a socket. With `is_shared` other processes can bind the same address."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # allows a restart, also of shared sockets
    if is_shared:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try:
        sock.bind((host, port))
    except (OSError, OverflowError) as error:
        sock.close()
        raise InvalidInput(
            f"cannot listen on {host} port {port}: {error}. Choose another with --host or --port"
        ) from error
    return sock


def url_of(sock: socket.socket) -> str:
    """The address of the service on this socket."""
    host, port = sock.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


@final
class Server(uvicorn.Server):
    """Uvicorn's server. Calls `ready` once it listens. Tells the service to end live streams at the first signal."""

    def __init__(self, service: Service, ready: Callable[[], None], plan: "Plan") -> None:
        self._refused, self._logged = service.refused_connections, Counter[int]()  # by status
        protocol: Any = partial(Connection, limits=plan.limits, refused=self._refused)
        config = uvicorn.Config(
            build(service, plan.board),
            http=protocol,
            ws="none",
            log_config=None,
            access_log=plan.access_log,
            timeout_keep_alive=math.ceil(plan.limits.keep_alive),
            timeout_graceful_shutdown=SHUTDOWN_TIMEOUT,
            server_header=False,
        )
        super().__init__(config)
        self._service, self._ready = service, ready
        self._hanging_since: float | None = None
        self._seen = 0  # the newest entry that was applied at the last look

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()

    async def on_tick(self, counter: int) -> bool:
        """End connections of slow callers, and a process whose failure only a restart can end.

        Uvicorn calls this ten times a second.
        """
        if counter % CHECK_EVERY == 0:
            now = time.monotonic()
            for connection in list(self.server_state.connections):
                if isinstance(connection, Connection):
                    connection.check(now)
        if self._service.failed_for > LAST_WORDS:
            self._service.is_stopping = self.should_exit = True
        self._give_up_if_hanging(time.monotonic())
        if counter % REPORT_EVERY == 0 and (new := self._refused - self._logged):
            # not each of them, because anybody could fill the disk
            log.warning("requests were refused", extra={"by_status": dict(new)})
            self._logged = self._refused.copy()
        return await super().on_tick(counter)

    def _give_up_if_hanging(self, now: float) -> None:
        """End the process at once if its writer hangs for good, because a clean stop would wait for it.

        It must hang for a while that this loop has seen. A process that was suspended goes on, and so does one that
        applies many entries.
        """
        if not self._service.is_hanging() or self._service.seq != self._seen:
            self._hanging_since, self._seen = None, self._service.seq
        elif self._hanging_since is None:
            self._hanging_since = now
        elif now > self._hanging_since + LAST_WORDS:
            log.critical("the store has not answered for very long, and the process ends")
            os._exit(STORE_FAILED)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Like uvicorn's, but does not raise the signal again, so that a requested stop exits with 0."""
        before = {number: signal.signal(number, self._stop) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self._service.is_stopping = True
        self.handle_exit(number, frame)


def compile_soon() -> None:
    """Load the compiled kernels while the service already decides. On a new machine this compiles them, and says so."""
    kernels.compile_soon()
    notice = Timer(COMPILE_NOTICE, log_compiling)
    notice.daemon = True
    notice.start()


def log_compiling() -> None:
    """Say why decisions take longer than usual."""
    if kernels.is_compiling():
        log.warning("compiling the kernels, which happens once for an installation. Until then decisions take longer")


class Plan(NamedTuple):
    """What to serve, and where."""

    store: str | Path
    host: str
    port: int
    capacity: int = CAPACITY
    access_log: bool = False
    internal_keys: tuple[Key, ...] = ()
    limits: Limits = Limits()
    quotas: Quotas = Quotas()
    board: Board | None = None  # where workers share their metrics
    may_create: bool = True  # whether the store may be missing


def check_keys(plan: Plan, *, is_locked: bool) -> None:
    """Refuse to serve other machines without keys."""
    if not is_loopback(plan.host) and not is_locked:
        raise InvalidInput(
            f"without keys the service stays on this machine. Make a key with `belated keys create --scope admin "
            f"--store {shown(plan.store)}` before you bind to {plan.host}"
        )
    if not is_locked and not can_tell():
        log.warning("this system does not tell whose program calls. Create a key before you run a proxy here")


def serve(plan: Plan, announce: Sequence[Announce]) -> None:
    """Serve until a signal comes. Then answer the accepted requests and stop."""
    with closing(listen(plan.host, plan.port)) as sock:
        use_every_kernel()
        serve_on(sock, plan, announce)


def serve_on(sock: socket.socket, plan: Plan, announce: Sequence[Announce]) -> None:
    """Serve on a bound socket. Calls each of `announce` when it is ready."""
    sys.setswitchinterval(SWITCH_INTERVAL)
    compile_soon()
    snapshots = SnapshotProcess(plan.store)
    service = Service.open(
        plan.store,
        capacity=plan.capacity,
        internal_keys=plan.internal_keys,
        make_snapshot=snapshots.start,
        end_snapshots=snapshots.stop,
        quotas=plan.quotas,
        may_create=plan.may_create,
    )
    allow_files(plan.limits.connections)
    try:
        check_keys(plan, is_locked=service.is_locked)
        gc.freeze()  # keep the loaded state out of collections, which would delay requests
        gc.set_threshold(20_000, 20, 100)
        url, entries = url_of(sock), service.seq
        log.info("start", extra={"store": shown(plan.store), "url": url, "entries": entries})

        def ready() -> None:
            for tell in announce:
                tell(url, service.is_locked)

        Server(service, ready, plan).run([sock])
    finally:
        snapshots.stop()
        service.stop()
    log.info("stopped", extra={"entries": service.seq})
    if service.failure:
        raise SystemExit(STORE_FAILED if service.failed_for else STOPPED_WITHOUT_STORE)
