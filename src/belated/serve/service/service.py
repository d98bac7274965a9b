"""The service: one store, its engine and writer, the gate, and a connection for readers."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Lock
from typing import Final, Self, TypeVar, final

from belated.errors import StoreUnreachable
from belated.serve.domain.entries import Entry
from belated.serve.domain.experiment import Experiment
from belated.serve.domain.refusals import STORE_SILENT, behind, try_later
from belated.serve.engine.administration import find
from belated.serve.engine.engine import Engine
from belated.serve.engine.writer import Writer
from belated.serve.service.keys import Gate
from belated.serve.service.views import ExperimentView, StoreView, view
from belated.serve.store.journal import Journal, Key
from belated.serve.store.opening import open_journal

T = TypeVar("T")
CAPACITY: Final = 100_000  # decisions and reports that may wait for the disk
PATIENCE: Final = 5.0  # seconds for a database to say something
SHORT: Final = 1.0  # seconds within which a lost connection is noticed, if the server is there


@final
class Service:
    """What the handlers work with."""

    def __init__(self, engine: Engine, *, capacity: int = CAPACITY, lent: Sequence[Key] = ()) -> None:
        self.engine = engine
        self._reader, self._reading = engine.journal.reader(), Lock()  # one thread at a time may use the connection
        self._given_up_at = 0.0  # when it was last waited for in vain
        self.gate = Gate(engine.journal.keys(), lent)
        self.writer = Writer(engine, self.gate.learn, capacity=capacity)
        self.is_stopping = False

    @classmethod
    def open(cls, store: str | Path, *, capacity: int = CAPACITY, lent: Sequence[Key] = ()) -> Self:
        """The service on this store, which other processes may serve too; `lent`: keys that the store does not have."""
        return cls(Engine(open_journal(store, patience=PATIENCE)), capacity=capacity, lent=lent)

    def require(self, seq: int) -> None:
        """The fold must have come to this place, or a Refusal 503 says that it is behind."""
        if self.engine.fold.seq < seq:
            raise behind(self.engine.fold.seq, seq)

    def require_decision(self, decision: Entry) -> None:
        """The fold must know its experiment and its arm, as far as the journal can be read."""
        self.require(decision.experiment)
        if (decision.arm or 0) >= len(self.engine.fold.experiments[decision.experiment].arms):
            self.require(decision.seen or 0)

    def find(self, name: str) -> Experiment:
        """The experiment of this name; a Refusal 404, or 503 if another server has just created it.

        Only if it `knows` the name it may be called in the event loop: otherwise the store is asked.
        """
        if not self.knows(name):
            self.require(self.ask(lambda reader: reader.named(name)) or 0)
        with self.engine.lock:
            return find(self.engine.fold, name)

    def knows(self, name: str) -> bool:
        """Whether an experiment of this name is folded."""
        with self.engine.lock:
            return name in self.engine.fold.by_name

    def ask(self, question: Callable[[Journal], T]) -> T:
        """What the store says, waited for in any thread but the event loop's; a Refusal 503 if it is out of reach."""
        self.check_reach()
        came = time.monotonic()
        if not self._reading.acquire(timeout=PATIENCE):
            raise try_later(STORE_SILENT)
        try:
            if self._given_up_at > came:  # whoever was before has waited in vain
                raise try_later(STORE_SILENT)
            return self._answer(question)
        except StoreUnreachable:
            self._given_up_at = time.monotonic()
            raise
        finally:
            self._reading.release()

    def _answer(self, question: Callable[[Journal], T]) -> T:
        began = time.monotonic()
        try:
            return question(self._reader)
        except StoreUnreachable:
            if self.writer.failure or time.monotonic() > began + SHORT:
                raise
            return question(self._reader)  # only this connection was lost, perhaps long ago

    def open_reader(self) -> Journal:
        """A connection for what takes long; also not to be called in the event loop."""
        self.check_reach()
        return self.engine.journal.reader()

    def check_reach(self) -> None:
        """A Refusal 503 while the store is out of reach; one that only cannot be written can be read."""
        if self.writer.failure and self.writer.may_recover:
            raise try_later(self.writer.failure)

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
        with self._reading:
            self._reader.close()
        self.engine.journal.close()
