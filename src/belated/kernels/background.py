"""Compiles what was interpreted, in a process of its own. So decisions go on as fast as before until they are faster.

Numba would hold the interpreter's lock while it compiles. The process fills Numba's cache on disk, and a thread loads
each kernel from there as soon as it is ready. If no such process can be had, the thread compiles.
"""

import atexit
import os
import pickle
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Hashable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple, Self, final

from belated.kernels import keeping, native

WORTH_IT: Final = 0.05  # seconds in interpreted kernels, after which it compiles. Short programs never load Numba
NICENESS: Final = 5
DONE: Final = b"compiled "
JOIN_TIMEOUT: Final = 1.0  # seconds to end the thread before the interpreter goes
# The first thing it reads is sys.path, because a program may have changed its own.
CHILD: Final = (
    "import os, pickle, sys; sys.path[:] = pickle.load(sys.stdin.buffer); "
    "from belated.kernels.background import compile_requested; compile_requested(); os._exit(0)"
)
# The child obeys the same environment and finds the same byte code, which is part of the name of a kernel on disk. It
# imports nothing from the folder that the program happens to be in.
FLAGS: Final = {"isolated": "-I", "ignore_environment": "-E", "no_user_site": "-s", "no_site": "-S", "optimize": "-O"}


class Wanted(NamedTuple):
    """A kernel to compile for arguments of these types."""

    kernel: Any
    examples: tuple[Any, ...]
    is_ready: Callable[[Any], None]  # called with the compiled function

    @classmethod
    def of(cls, kernel: Any, arguments: tuple[Any, ...], is_ready: Callable[[Any], None]) -> Self:
        """With small examples, because the arguments themselves may be large, and change."""
        return cls(kernel, tuple(map(native.stand_in, arguments)), is_ready)

    @property
    def signature(self) -> tuple[Any, ...]:
        """Numba's types."""
        return native.signature_of(self.examples)

    def load(self) -> None:
        """Load the compiled function, or compile it here."""
        self.is_ready(keeping.entry_point_of(self.kernel.dispatcher, self.signature))


@final
class Background:
    """What is wanted, the thread that sees to it, and the process that compiles."""

    def __init__(self) -> None:
        self._wanted: dict[Hashable, Wanted] = {}
        self._noted: set[Hashable] = set()
        self._spent = 0.0
        self._thread: threading.Thread | None = None
        self._child: subprocess.Popen[bytes] | None = None
        self._is_ending = False
        self._starting = threading.Lock()
        # Held in every step with Numba. A fork waits for it, because the copy could never release Numba's own locks.
        self._step = threading.RLock()
        self._is_prepared = False

    def note(self, key: Hashable, describe: Callable[[], Wanted], seconds: float) -> None:
        """A kernel was interpreted, which took so long. Once enough time was spent, all of them are compiled."""
        self._spent += seconds
        if key not in self._noted:
            self._noted.add(key)
            self._wanted[key] = describe()
        if self._spent > WORTH_IT:
            self.start()

    def start(self) -> None:
        """Compile what was noted, without waiting for it."""
        if not self._starting.acquire(blocking=False):
            return  # another thread does the same
        try:
            if self._wanted and not self._is_ending and not self.is_busy:
                self._start()
        finally:
            self._starting.release()

    def _start(self) -> None:
        self._prepare()
        self._thread = threading.Thread(target=self._run, name="belated-kernels", daemon=True)
        try:
            self._thread.start()
        except RuntimeError:  # this system allows no more threads, so the kernels stay interpreted
            self._is_ending = True

    def _prepare(self) -> None:
        """Before the first thread starts, prepare for forks and for the end of the program."""
        if self._is_prepared:
            return
        self._is_prepared = True
        atexit.register(self._end)
        if hasattr(os, "register_at_fork"):
            import logging  # noqa: F401, PLC0415  # Numba logs. Who forks must get its lock after ours, so it registers first

            before, after = self._step.acquire, self._step.release
            os.register_at_fork(before=before, after_in_parent=after, after_in_child=self._after_fork)

    @property
    def is_busy(self) -> bool:
        """Whether something is being compiled."""
        return self._thread is not None and self._thread.is_alive()

    def load_kept(self) -> None:
        """Load those of the noted kernels that were compiled before. The others stay noted."""
        for key, one in list(self._wanted.items()):
            if self._load_kept(one):
                self._wanted.pop(key, None)

    def _load_kept(self, one: Wanted) -> bool:
        with self._step:
            is_kept = keeping.is_on_disk(one.kernel.dispatcher, one.signature)
            if is_kept:
                one.load()
            return is_kept

    def _run(self) -> None:
        try:
            with self._step:
                keeping.folder()
            while self._wanted and not self._is_ending:
                self._serve(self._take())
        except Exception as error:  # noqa: BLE001  # whatever is wrong with the compiler, decisions go on
            self._give_up(f"Numba failed: {error!r}")

    def _take(self) -> list[Wanted]:
        """All that is wanted, but for what another thread takes at the same time."""
        taken = (self._wanted.pop(key, None) for key in list(self._wanted))
        return [one for one in taken if one is not None]

    def _give_up(self, why: str) -> None:
        if not self._is_ending:
            self._is_ending = True
            warnings.warn(f"the kernels stay interpreted. {why}", RuntimeWarning, stacklevel=1)

    def _serve(self, batch: list[Wanted]) -> None:
        """Load what is on the disk at once, and the rest as it gets there."""
        missing = [one for one in batch if not self._load_kept(one)]
        left = dict(enumerate(missing))  # they are told apart by number: arrays among examples have no plain equality
        for number in self._compiled_elsewhere(missing):
            with self._step:
                left.pop(number).load()
        for one in left.values():
            if not self._is_ending:
                with self._step:
                    one.load()

    def _compiled_elsewhere(self, batch: list[Wanted]) -> Iterator[int]:
        """Let a process compile, and yield each one's number once it is on the disk. It may yield less than all."""
        with self._step:
            if not batch or not can_start_python() or keeping.folder() is None:
                return
            request = [(one.kernel.__module__, one.kernel.__name__, one.signature) for one in batch]
        environment = {**os.environ, "NUMBA_CACHE_DIR": native.load().config.CACHE_DIR}
        command = [sys.executable, *flags(), "-c", CHILD]
        try:  # in a process group of its own: it ends with this process, but not by its Ctrl-C
            child = self._child = subprocess.Popen(  # noqa: S603
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment,
                process_group=0,
            )
        except OSError:
            return
        if self._is_ending:  # since a moment ago, so nobody else ends it
            child.kill()
        requests: Any = child.stdin
        done: Any = child.stdout
        with child, suppress(BrokenPipeError):
            requests.write(pickle.dumps([one for one in sys.path if isinstance(one, str)]) + pickle.dumps(request))
            requests.flush()  # and stays open, because its end says that this process has ended
            for line in done:
                if line.startswith(DONE):  # and not printed by somebody's sitecustomize
                    yield int(line.removeprefix(DONE))
        if child.returncode < 0:  # what has killed it, lack of memory for instance, would end this process too
            self._give_up(f"The process that compiled them was ended by signal {-child.returncode}")

    def _end(self) -> None:
        """No thread may be inside Numba when the interpreter goes."""
        self._is_ending = True
        if self._child is not None:
            self._child.kill()
        if self._thread is not None:
            self._thread.join(JOIN_TIMEOUT)

    def _after_fork(self) -> None:
        self._thread = self._child = None
        self._starting = threading.Lock()  # another thread of the parent may have held it
        self._noted.clear()  # what the parent was loading is not loaded here
        self._step.release()


def can_start_python() -> bool:
    """Whether sys.executable is a Python. Where Python is part of another program, it may be that program."""
    return Path(sys.executable or "").name.startswith("python") and not hasattr(sys, "frozen")


def flags() -> list[str]:
    """How to start another Python like this one."""
    return ["-P", "-W", "ignore", *(flag for name, flag in FLAGS.items() for _ in range(getattr(sys.flags, name)))]


def compile_requested() -> None:
    """The process: compile what standard input asks for, and say what is done."""
    answers = os.dup(1)
    os.dup2(2, 1)  # Numba prints there what it is told to by variables for debugging
    request = pickle.load(sys.stdin.buffer)  # noqa: S301  # from the process that has started this one
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    with suppress(AttributeError, OSError):  # not on every system, or not allowed
        os.nice(NICENESS)
    for index, (module, name, signature) in enumerate(request):
        kernel = getattr(import_module(module), name)
        with alone(kernel.dispatcher):
            keeping.entry_point_of(kernel.dispatcher, signature)
        os.write(answers, b"%s%d\n" % (DONE, index))


def _exit_with_parent() -> None:
    sys.stdin.buffer.read()
    os._exit(1)


@contextmanager
def alone(dispatcher: Any) -> Iterator[None]:
    """Wait for other processes that fill the same cache. What they have compiled need not be compiled again."""
    with ExitStack() as stack:
        kept = dispatcher.stats.cache_path
        with suppress(ImportError, OSError):
            import fcntl  # noqa: PLC0415  # not on every system

            folder = Path(kept)
            folder.mkdir(parents=True, exist_ok=True)
            fcntl.flock(stack.enter_context((folder / "belated.lock").open("w")), fcntl.LOCK_EX)
        yield
