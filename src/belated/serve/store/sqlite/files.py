"""Notices that the files of a store were moved, deleted, replaced or cut short while they are open.

SQLite goes on writing to a file that no longer has a name, and to a log that has lost its beginning. All of it is lost
when the process ends.
"""

import os
import stat
from pathlib import Path
from typing import Final, final

import apsw

from belated.errors import StoreError

SUFFIXES: Final = ("-wal", "-shm")  # a commit is in the first or in the store. Processes lock each other by the second
LOG_HEADER: Final = 32  # bytes. This and the next are of SQLite's file format
FRAME_HEADER: Final = 24  # of a page in the log
TRIES: Final = 3  # looks at a log that seems too short, because another process may just be emptying it


@final
class StoreFiles:
    """The files of an open store, as they were when they were first seen."""

    def __init__(self, path: Path, db: apsw.Connection) -> None:
        # the first by its own name, because a symbolic link may be made to lead somewhere else
        self._paths = [str(path.absolute()), *(f"{real(path)}{suffix}" for suffix in SUFFIXES)]
        self._known: dict[str, tuple[int, int]] = {}
        self._db, self._page_size = db, int(db.execute("PRAGMA page_size").get)
        self._size, self._schema = 0, 0  # of the store itself
        self.lost()

    def lost(self) -> str | None:
        """Return the name of a file that is not the one that was opened, or None."""
        for path in self._paths:
            found = _look(path)
            identity = None if found is None else (found.st_dev, found.st_ino)
            known = self._known.get(path)
            if known is None and identity is not None:  # the log is made by the first write
                self._known[path] = identity
            elif identity != known:
                return path
        return None

    def cut(self) -> str | None:
        """Return the name of a file that has lost its end, or None. Must not be called in a transaction."""
        store, log, _ = self._paths
        if self._is_smaller(store):
            return store
        return log if all(self._lacks_pages(log) for _ in range(TRIES)) else None

    def is_log(self, path: str) -> bool:
        """Whether this is not the store itself."""
        return path != self._paths[0]

    def _is_smaller(self, path: str) -> bool:
        """Whether the file is smaller than before. It may be after a VACUUM, which counts up the schema."""
        found = _look(path)
        size = 0 if found is None else found.st_size
        if size == self._size:
            return False
        schema = int(self._db.execute("PRAGMA schema_version").get)
        if size < self._size and (size == 0 or schema == self._schema):
            return True
        self._size, self._schema = size, schema
        return False

    def _lacks_pages(self, path: str) -> bool:
        """Whether the log lacks pages that were written to it and are in use."""
        pages = int(self._db.execute("PRAGMA wal_checkpoint(NOOP)").fetchall()[0][1])  # type: ignore[arg-type]
        found = _look(path)
        return pages > 0 and (found is None or found.st_size < LOG_HEADER + pages * (FRAME_HEADER + self._page_size))


def _look(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)  # noqa: PTH116  # with every commit, and a Path takes twice as long
    except OSError:
        return None


def real(path: Path) -> Path:
    """Return the file behind symbolic links. SQLite puts the log beside that one."""
    return Path(os.path.realpath(path))


def check_only_name(path: Path) -> None:
    """Raise StoreError if the file has another name. SQLite names the log and its locks after the name.

    So processes that use different names do not notice each other, and each writes over what the others have written.
    """
    found = _look(str(path))
    if found is not None and stat.S_ISREG(found.st_mode) and found.st_nlink > 1:
        raise StoreError(
            f"the store {path} has another name, because somebody has made a hard link. Entries would be lost if "
            "both names are used. Remove the other one, or give it a copy that `belated copy` makes."
        )


def is_log_without_store(path: Path) -> bool:
    """Whether there is a log, but its store is missing or empty. SQLite would delete the log."""
    store, log = _look(str(path)), _look(f"{path}-wal")
    return log is not None and log.st_size > 0 and (store is None or store.st_size == 0)
