"""Notices that the files of a store were moved, deleted or replaced while they are open.

SQLite goes on writing to a file that no longer has a name. All of it is lost when the process ends.
"""

from pathlib import Path
from typing import Final, final

SUFFIXES: Final = ("", "-wal")  # a commit is in one of them


@final
class StoreFiles:
    """The files of an open store, as they were when they were first seen."""

    def __init__(self, path: Path) -> None:
        self._paths = [Path(f"{path.absolute()}{suffix}") for suffix in SUFFIXES]
        self._known: dict[Path, tuple[int, int]] = {}
        self.lost()

    def lost(self) -> Path | None:
        """Return the name of a file that is not the one that was opened, or None."""
        for path in self._paths:
            try:
                found = path.stat()
                identity = found.st_dev, found.st_ino
            except OSError:
                identity = None
            known = self._known.get(path)
            if known is None and identity is not None:  # the log is made by the first write
                self._known[path] = identity
            elif identity != known:
                return path
        return None
