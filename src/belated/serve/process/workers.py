"""Several worker processes that serve one store at one port, and their supervisor."""

import logging
import os
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from threading import Thread
from typing import Final, NoReturn, final

from belated import kernels
from belated.serve.http.boards import Board, Boards
from belated.serve.process import run
from belated.serve.process.run import Announce, Plan
from belated.serve.service.keys import Gate
from belated.serve.store.opening import open_to_serve
from belated.warming import use_every_kernel

RESTART_PAUSE: Final = 1.0  # seconds between two starts of one worker, in case it dies at once
LONGEST_PAUSE: Final = 8.0  # the pause doubles up to this for a worker that ends again and again
STEADY: Final = 60.0  # seconds of life after which the pause begins anew
POLL: Final = 0.05  # seconds between two looks while a worker waits for its start
SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
log = logging.getLogger("belated.workers")


def serve(plan: Plan, count: int, announce: Announce, begin: Sequence[Announce]) -> None:
    """Serve with `count` processes. The first worker, and its replacement after a crash, calls each of `begin`."""
    if count == 1:
        run.serve(plan, [announce, *begin])
        return
    with closing(run.listen(plan.host, plan.port)) as sock:
        port = sock.getsockname()[1]  # nobody else uses it
    with closing(run.listen(plan.host, port, is_shared=True)) as held:  # bound but not listening, to keep the port
        with closing(
            open_to_serve(plan.store, may_create=plan.may_create)
        ) as journal:  # so that a wrong store is reported once, not by each worker
            gate = Gate(journal.keys())
        run.check_keys(plan, is_locked=gate.is_locked)
        use_every_kernel()
        kernels.load_compiled()  # here, so that the workers share the memory
        supervisor = Supervisor(plan._replace(port=port, may_create=False), count, begin)
        supervisor.run(lambda: announce(run.url_of(held), gate.is_locked))


@final
class Supervisor:
    """Forks the workers, restarts those that die and forwards signals. It has no threads and no store."""

    def __init__(self, plan: Plan, count: int, begin: Sequence[Announce]) -> None:
        self._plan, self._count, self._begin = plan, count, begin
        self._workers: dict[int, int] = {}  # from process id to worker number
        self._started: dict[int, float] = {}
        self._pauses: dict[int, float] = {}  # by worker that has ended, the last pause before a start
        self._due: dict[int, float] = {}  # by worker that has ended, when its replacement starts
        self._signal, self._code, self._boards = 0, 0, Boards(count)
        self._parent_reader, self._parent = os.pipe()  # workers see its end when this process dies
        self._ready_reader, self._ready = os.pipe()

    def run(self, ready: Callable[[], None]) -> None:
        """Supervise until a signal comes and all workers have ended."""
        before = {number: signal.signal(number, self._forward) for number in SIGNALS}
        try:
            for number in range(self._count):
                self._start(number)
            self._wait_until_ready(ready)
            while self._workers or self._due:
                if self._due:
                    self._look()
                    time.sleep(POLL)
                else:
                    self._reap(*os.waitpid(-1, 0))
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        if self._code:
            raise SystemExit(self._code)

    def _look(self) -> None:
        """Note the end of a worker, if there is one, and start those that are due."""
        if self._workers:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid:
                self._reap(pid, status)
        for number in [number for number, due in self._due.items() if self._signal or due <= time.monotonic()]:
            del self._due[number]
            self._start(number)

    def _wait_until_ready(self, ready: Callable[[], None]) -> None:
        """Wait for a byte from each worker. Replaces workers that die meanwhile."""
        os.set_blocking(self._ready_reader, False)
        count = 0
        while count < self._count and (self._workers or self._due):
            try:
                count += len(os.read(self._ready_reader, self._count))
            except BlockingIOError:
                self._look()
                time.sleep(0.01)
        if not self._signal:
            ready()

    def _start(self, number: int) -> None:
        self._started[number] = time.monotonic()
        if self._signal:
            return
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # a signal waits until it is clear whose it is
        pid = os.fork()
        if pid == 0:
            self._work(number)
        self._workers[pid] = number
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)

    def _reap(self, pid: int, status: int) -> None:
        if pid not in self._workers:
            return  # a child of somebody else, inherited through exec
        number, code = self._workers.pop(pid), os.waitstatus_to_exitcode(status)
        if self._signal:
            if code not in (0, -signal.SIGTERM):  # SIGTERM kills a worker that has not begun to serve
                self._code = max(self._code, code, 1)
            return
        now, started = time.monotonic(), self._started[number]
        is_new = number not in self._pauses or now > started + STEADY
        pause = self._pauses[number] = (
            0.0 if is_new else min(LONGEST_PAUSE, max(RESTART_PAUSE, 2 * self._pauses[number]))
        )
        self._due[number] = max(now + pause, started + RESTART_PAUSE)
        log.error("a worker has ended and is replaced", extra={"worker": number, "pid": pid, "code": code})

    def _forward(self, number: int, _frame: object) -> None:
        """Forward the first signal as SIGTERM, and a second one as SIGINT, which stops at once."""
        forwarded = signal.SIGINT if self._signal else signal.SIGTERM
        self._signal = number
        for pid in self._workers:
            with suppress(ProcessLookupError):  # it has just ended
                os.kill(pid, forwarded)

    def _work(self, number: int) -> NoReturn:
        """Serve in the child process, then exit."""
        code = 1
        try:
            os.setpgid(0, 0)  # so that Ctrl-C reaches only the supervisor
            for one in SIGNALS:
                signal.signal(one, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
            os.close(self._parent)
            Thread(target=self._exit_with_parent, daemon=True).start()
            with closing(run.listen(self._plan.host, self._plan.port, is_shared=True)) as sock:
                plan = self._plan._replace(board=Board(self._boards, number))
                run.serve_on(sock, plan, [self._report_ready, *(self._begin if number == 0 else [])])
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        except BaseException:
            log.critical("a worker has failed", exc_info=True)
        finally:
            os._exit(code)

    def _report_ready(self, _url: str, _is_locked: bool) -> None:
        os.write(self._ready, b".")

    def _exit_with_parent(self) -> None:
        """Stop when the supervisor has ended, even if it was killed."""
        os.read(self._parent_reader, 1)
        os.kill(os.getpid(), signal.SIGTERM)
