"""Several processes that serve one store at one port: replicas on one machine, and a supervisor of them."""

import logging
import os
import signal
import time
from collections.abc import Callable
from contextlib import closing, suppress
from threading import Thread
from typing import Final, NoReturn, final

from belated.serve.process import run
from belated.serve.process.run import Announce, Plan
from belated.serve.service.keys import Gate
from belated.serve.store.opening import open_journal

PAUSE: Final = 1.0  # seconds between two starts of one worker: one that cannot live is not started all the time
SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
log = logging.getLogger("belated.workers")


def serve(plan: Plan, count: int, announce: Announce, begin: Announce) -> None:
    """Serve with so many processes; `begin` is called in the first of them, and in whoever takes its place."""
    if count == 1:
        run.serve(plan, [announce, begin])
        return
    with closing(run.listen(plan.host, plan.port)) as sock:
        port = sock.getsockname()[1]  # nobody else has it
    with closing(run.listen(plan.host, port, is_shared=True)) as held:  # bound, but not listening: it keeps the port
        with closing(open_journal(plan.store)) as journal:  # what is wrong with it is said once
            gate = Gate(journal.keys())
        run.check_keys(plan, gate)
        run.warm_up()
        supervisor = Supervisor(plan._replace(port=port), count, begin)
        supervisor.run(lambda: announce(run.url_of(held), gate.is_locked))


@final
class Supervisor:
    """Forks the workers, starts those again that die, and passes signals on. It has no threads and no store."""

    def __init__(self, plan: Plan, count: int, begin: Announce) -> None:
        self._plan, self._count, self._begin = plan, count, begin
        self._workers: dict[int, int] = {}  # by process: which one it is
        self._started: dict[int, float] = {}
        self._signal, self._failures = 0, 0
        self._life, self._held = os.pipe()  # a worker that reads its end knows that this process has gone
        self._heard, self._ready = os.pipe()

    def run(self, ready: Callable[[], None]) -> None:
        """Until a signal comes and all have ended."""
        before = {number: signal.signal(number, self._pass_on) for number in SIGNALS}
        try:
            for number in range(self._count):
                self._start(number)
            self._wait_until_ready(ready)
            while self._workers:
                self._bury(*os.waitpid(-1, 0))
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        if self._failures:
            raise SystemExit(1)

    def _wait_until_ready(self, ready: Callable[[], None]) -> None:
        """A byte from each; one that dies first is replaced meanwhile, and counts when its successor is ready."""
        os.set_blocking(self._heard, False)
        count = 0
        while count < self._count and self._workers:
            try:
                count += len(os.read(self._heard, self._count))
            except BlockingIOError:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid:
                    self._bury(pid, status)
                time.sleep(0.01)
        if not self._signal:
            ready()

    def _start(self, number: int) -> None:
        time.sleep(max(0.0, self._started.get(number, 0.0) + PAUSE - time.monotonic()))
        self._started[number] = time.monotonic()
        if self._signal:
            return
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # none comes while it is not clear whose it is
        pid = os.fork()
        if pid == 0:
            self._work(number)
        self._workers[pid] = number
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)

    def _bury(self, pid: int, status: int) -> None:
        if pid not in self._workers:
            return  # who runs this process may have given it other children
        number, code = self._workers.pop(pid), os.waitstatus_to_exitcode(status)
        if self._signal:
            self._failures += code not in (0, -signal.SIGTERM)  # that one had only begun, and accepted nothing
            return
        log.error("a worker has ended: another takes its place", extra={"worker": number, "pid": pid, "code": code})
        self._start(number)

    def _pass_on(self, number: int, _frame: object) -> None:
        """The first asks them to stop, a second says that there is no patience left."""
        passed = signal.SIGINT if self._signal else signal.SIGTERM
        self._signal = number
        for pid in self._workers:
            with suppress(ProcessLookupError):  # it has just ended
                os.kill(pid, passed)

    def _work(self, number: int) -> NoReturn:
        """In the child: serve, and end with it."""
        code = 1
        try:
            os.setpgid(0, 0)  # a Ctrl-C is for the supervisor
            for one in SIGNALS:
                signal.signal(one, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
            os.close(self._held)
            Thread(target=self._mourn, daemon=True).start()
            with closing(run.listen(self._plan.host, self._plan.port, is_shared=True)) as sock:
                run.serve_on(sock, self._plan, [self._tell, *([self._begin] if number == 0 else [])])
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        except BaseException:
            log.critical("a worker could not go on", exc_info=True)
        finally:
            os._exit(code)

    def _tell(self, _url: str, _is_locked: bool) -> None:
        os.write(self._ready, b".")

    def _mourn(self) -> None:
        """End when the supervisor has ended, however that was."""
        os.read(self._life, 1)
        os.kill(os.getpid(), signal.SIGTERM)
