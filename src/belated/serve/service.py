"""The service: one store, its engine and writer, the gate, and a connection for readers."""

import fcntl
from pathlib import Path
from threading import Lock
from typing import IO, Final, Self, final

from belated.errors import StoreError
from belated.serve.administration import find
from belated.serve.engine import Engine
from belated.serve.journal import Journal, Key
from belated.serve.keys import Gate
from belated.serve.sqlite import SQLiteJournal
from belated.serve.views import ExperimentView, StoreView, view
from belated.serve.writer import Writer

CAPACITY: Final = 100_000  # decisions and reports that may wait for the disk


@final
class Service:
    """What the handlers work with."""

    def __init__(self, engine: Engine, *, capacity: int = CAPACITY) -> None:
        self.engine = engine
        self.writer = Writer(engine, capacity=capacity)
        self.reader, self.reading = engine.journal.reader(), Lock()  # one thread at a time may use the connection
        self.gate = Gate(self._keys)
        self.is_stopping = False
        self._claim: IO[str] | None = None

    @classmethod
    def open(cls, store: Path, *, capacity: int = CAPACITY) -> Self:
        """The service on this file, which no other process may serve meanwhile."""
        claim = claimed(store)
        service = cls(Engine(open_store(store)), capacity=capacity)
        service._claim = claim
        return service

    def _keys(self) -> list[Key]:
        with self.reading:
            return self.reader.keys()

    def store_view(self) -> StoreView:
        """The health of the store."""
        writer, engine = self.writer, self.engine
        return StoreView(
            kind="sqlite",
            writable=not writer.failure,
            entries=engine.fold.seq,
            bytes=engine.journal.size(),
            last_commit_ms=engine.commit_seconds * 1000,
            queue=writer.queued,
            unsnapshotted=engine.unsnapshotted,
        )

    def experiment_view(self, name: str) -> ExperimentView:
        """All about an experiment, at one moment."""
        with self.engine.lock:
            return view(find(self.engine.fold, name), self.store_view(), self.engine.now())

    def stop(self) -> None:
        """Answer what was accepted, save a snapshot and let go of the store; a second call does nothing."""
        self.is_stopping = True
        self.writer.stop()
        self.close()

    def close(self) -> None:
        """Let go of the store."""
        with self.reading:
            self.reader.close()
        self.engine.journal.close()
        if self._claim is not None:
            self._claim.close()


def open_store(store: Path) -> Journal:
    """The journal at this place, made if there is none."""
    check_folder(store)
    return SQLiteJournal(store)


def check_folder(store: Path) -> None:
    """A store is made where there is a folder for it."""
    if not store.parent.is_dir():
        raise StoreError(f"there is no folder {store.parent} for the store: create it, or choose another --store")


def claimed(store: Path) -> IO[str]:
    """An open file whose lock says that this process serves the store; it ends with the process, however that ends.

    A file beside the store: closing a second handle on the store itself would drop SQLite's own locks.
    """
    check_folder(store)
    file = Path(f"{store.resolve()}-lock").open("w")  # noqa: SIM115  # held as long as the service lives
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise StoreError(
            f"another process serves the store {store} already: stop it, or choose another --store"
        ) from None
    return file
