"""A progress bar for work that takes longer than two seconds. It shows on a terminal only, one at a time.

A command that takes minutes may ask for lines in place of the bar, for when its errors go to a file or a pipe.
"""

import math
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from types import TracebackType
from typing import Any, ClassVar, Self, final

SHOW_AFTER = 2.0  # seconds
LINE_EVERY = 10.0  # seconds between two lines
STRIDE = 1000  # rounds between two updates of the bar by a game that runs round by round


@final
class Progress:
    """Counts finished work, from any thread, and draws a bar after SHOW_AFTER seconds.

    Inside another one it only counts, because the outer bar stands for the whole.
    """

    _outermost: ClassVar["Progress | None"] = None
    in_lines: ClassVar[bool] = False  # whether to print lines if there is no terminal

    def __init__(self, title: str, total: float | None, console: Any = None) -> None:
        self._title, self._total, self._console = title, total, console
        self._started, self._done = time.monotonic(), 0.0
        self._lock = threading.Lock()
        self._bar: Any = None
        self._next_line = self._started + SHOW_AFTER
        self._is_shown = console is not None or sys.stderr.isatty()

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
        elif Progress.in_lines and not self._is_shown and (now := time.monotonic()) >= self._next_line:
            self._next_line = now + LINE_EVERY
            after = f"after {now - self._started:,.0f} s"
            done = "" if self._total is None else f": {self._done:,.0f} of {self._total:,.0f}"
            sys.stderr.write(f"{self._title}{done} {after}\n")
            sys.stderr.flush()

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
def while_busy(title: str) -> Iterator[None]:
    """Say what one long step is doing, if it takes longer than SHOW_AFTER seconds."""
    with Progress(title, None) as progress:
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
