"""A progress bar with the time left, for anything longer than two seconds, on a terminal."""

import sys
import time
from types import TracebackType
from typing import Any, Self, final

PATIENCE = 2.0  # seconds before it shows


@final
class Progress:
    """Counts finished games; draws a bar once they take longer than PATIENCE."""

    def __init__(self, total: int) -> None:
        self.total, self.done, self.started = total, 0, time.monotonic()
        self.bar: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.bar is not None:
            self.bar.stop()

    def advance(self) -> None:
        """One more game is finished."""
        self.done += 1
        if self.bar is None and time.monotonic() - self.started > PATIENCE and sys.stderr.isatty():
            from rich.console import Console  # noqa: PLC0415  (only a terminal needs it)
            from rich.progress import Progress as Bar  # noqa: PLC0415

            self.bar = Bar(console=Console(stderr=True), transient=True)
            self.task = self.bar.add_task("games", total=self.total)
            self.bar.start()
        if self.bar is not None:
            self.bar.update(self.task, completed=self.done)
