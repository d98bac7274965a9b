"""A progress bar for work that takes longer than two seconds. It shows on a terminal only, one at a time.

A command that takes minutes may ask for lines in place of the bar, for when its errors go to a file or a pipe. A
notebook gets lines too. So does whoever waits for the compiler, because nobody expects that.
"""

import math
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import TracebackType
from typing import Any, ClassVar, Self, final

SHOW_AFTER = 2.0  # seconds
LINE_EVERY = 10.0  # seconds between two lines
STRIDE = 1000  # rounds between two updates of the bar by a game that runs round by round


def to_stderr(line: str) -> None:
    """Print a line at once."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


@final
class Progress:
    """Counts finished work, from any thread, and draws a bar after SHOW_AFTER seconds.

    Inside another one it only counts, because the outer bar stands for the whole.
    """

    _outermost: ClassVar["Progress | None"] = None
    in_lines: ClassVar[bool] = False  # whether to print lines if there is no terminal
    tell: ClassVar[Callable[[str], None]] = staticmethod(to_stderr)  # a service has a log

    def __init__(self, title: str, total: float | None, console: Any = None, *, in_lines: bool = False) -> None:
        self._title, self._total, self._console = title, total, console
        self._started, self._done = time.monotonic(), 0.0
        self._lock = threading.Lock()
        self._bar: Any = None
        self._next_line = self._started + SHOW_AFTER
        self._is_shown = console is not None or sys.stderr.isatty()
        self._in_lines = in_lines or Progress.in_lines or "ipykernel" in sys.modules

    def __enter__(self) -> Self:
        if Progress._outermost is None:
            Progress._outermost = self
        else:
            self._is_shown = False
            self._next_line = math.inf
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if Progress._outermost is self:
            Progress._outermost = None
        if self._bar is not None:
            self._bar.stop()

    def advance(self, more: float, title: str | None = None) -> None:
        """Count more finished work. `title` says what comes next."""
        with self._lock:
            self._done += more
            self._title = title or self._title
            self._show()

    def reach(self, done: float) -> None:
        """Set how much is done in all."""
        with self._lock:
            self._done = done
            self._show()

    def _show(self) -> None:
        if self._bar is None and self._is_shown and time.monotonic() - self._started > SHOW_AFTER:
            self._open()
        if self._bar is not None:
            self._bar.update(0, completed=self._done, description=self._title)
        elif self._in_lines and not self._is_shown and (now := time.monotonic()) >= self._next_line:
            self._next_line = now + LINE_EVERY
            after = f"after {now - self._started:,.0f} s"
            done = "" if self._total is None else f": {self._done:,.0f} of {self._total:,.0f}"
            Progress.tell(f"{self._title}{done} {after}")

    def _open(self) -> None:
        try:
            from rich.console import Console  # noqa: PLC0415  (only a terminal needs it)
            from rich.progress import Progress as Bar  # noqa: PLC0415
            from rich.progress import TimeElapsedColumn  # noqa: PLC0415
        except ModuleNotFoundError:  # the learner alone does not need it
            self._is_shown = False
            sys.stderr.write(f"{self._title} ...\n")
            return

        columns = *Bar.get_default_columns(), TimeElapsedColumn()  # the time moves even while nothing is finished
        self._bar = Bar(*columns, console=self._console or Console(stderr=True), transient=True)
        self._bar.add_task(self._title, total=self._total)
        self._bar.start()


@contextmanager
def while_busy(title: str, *, in_lines: bool = False) -> Iterator[None]:
    """Say what one long step is doing, if it takes longer than SHOW_AFTER seconds."""
    with Progress(title, None, in_lines=in_lines) as progress:
        shown = Progress._outermost or progress
        before = shown._title
        timer = threading.Timer(SHOW_AFTER, partial(shown.advance, 0, title))
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()
            shown._title = before
