"""The service: one store, its engine and writer, the gate, and a connection for readers."""

from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import Final, Self, final

from belated.serve.administration import find
from belated.serve.engine import Engine
from belated.serve.entries import Entry
from belated.serve.experiments import Experiment
from belated.serve.journal import Key
from belated.serve.keys import Gate
from belated.serve.problems import behind
from belated.serve.stores import open_journal
from belated.serve.views import ExperimentView, StoreView, view
from belated.serve.writer import Writer

CAPACITY: Final = 100_000  # decisions and reports that may wait for the disk


@final
class Service:
    """What the handlers work with."""

    def __init__(self, engine: Engine, *, capacity: int = CAPACITY, lent: Sequence[Key] = ()) -> None:
        self.engine = engine
        self.reader, self.reading = engine.journal.reader(), Lock()  # one thread at a time may use the connection
        self.gate = Gate(engine.journal.keys(), lent)
        self.writer = Writer(engine, self.gate, capacity=capacity)
        self.is_stopping = False

    @classmethod
    def open(cls, store: str | Path, *, capacity: int = CAPACITY, lent: Sequence[Key] = ()) -> Self:
        """The service on this store, which other processes may serve too; `lent`: keys that the store does not have."""
        return cls(Engine(open_journal(store)), capacity=capacity, lent=lent)

    def require(self, seq: int) -> None:
        """The fold must have come to this place, or a Problem 503 says that it is behind."""
        if self.engine.fold.seq < seq:
            raise behind(self.engine.fold.seq, seq)

    def require_decision(self, decision: Entry) -> None:
        """The fold must know its experiment and its arm, as far as the journal can be read."""
        self.require(decision.experiment)
        if (decision.arm or 0) >= len(self.engine.fold.experiments[decision.experiment].arms):
            self.require(decision.seen or 0)

    def find(self, name: str) -> Experiment:
        """The experiment of this name; a Problem 404, or 503 if another server has just created it."""
        with self.engine.lock:
            is_known = name in self.engine.fold.by_name
        if not is_known and not self.writer.failure:
            with self.reading:
                self.require(self.reader.named(name) or 0)
        with self.engine.lock:
            return find(self.engine.fold, name)

    def store_view(self) -> StoreView:
        """The health of the store."""
        writer, engine = self.writer, self.engine
        return StoreView(
            kind=engine.journal.kind,
            writable=not writer.failure,
            entries=engine.fold.seq,
            bytes=writer.health.bytes,
            last_commit_ms=engine.commit_seconds * 1000,
            queue=writer.queued,
            unsnapshotted=engine.unsnapshotted,
            lag_entries=writer.health.lag_entries,
            lag_seconds=writer.lag_seconds(),
        )

    def experiment_view(self, name: str) -> ExperimentView:
        """All about an experiment, at one moment."""
        experiment = self.find(name)
        with self.engine.lock:
            return view(experiment, self.store_view(), self.engine.now())

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
