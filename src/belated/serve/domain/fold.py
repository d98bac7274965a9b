"""The state of all experiments. The same journal always gives the same state, to the last bit."""

from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Any, Final, NamedTuple, final

import msgspec

from belated.errors import SnapshotError, StoreError
from belated.serve.domain.entries import Entry, EntryKind
from belated.serve.domain.experiment import Experiment
from belated.serve.domain.history import Tail

VERSION: Final = 9  # a snapshot of another version is not used, and the whole journal is read instead


class Snapshot(NamedTuple):
    """The state after the entry `seq`, as bytes that only the same version of the fold can read."""

    seq: int
    version: int
    state: bytes


@final
class Fold:
    """All experiments, by the number of their first entry and by name."""

    def __init__(self) -> None:
        self.seq = self.at = 0  # number and time of the last entry applied
        self.restored = 0  # the entry of the snapshot it started from
        self.experiments: dict[int, Experiment] = {}
        self.by_name: dict[str, Experiment] = {}
        self.tail = Tail()  # of the history it was folded from

    def apply(self, stream: Iterable[Entry], inspect: Callable[[list[Entry]], None] = lambda _: None) -> None:
        """Apply entries in order. Splitting a batch does not change the result.

        `inspect` is called with each run of similar entries before they are applied.
        """
        for (kind, number, _), group in groupby(stream, lambda e: (e.kind, e.experiment, e.seen)):
            batch = list(group)
            if batch[0].seq <= self.seq:
                raise StoreError(f"the journal is damaged. Entry {batch[0].seq} follows entry {self.seq}.")
            inspect(batch)
            if kind is EntryKind.CREATED:
                self._add(Experiment(batch[0]))
            elif kind is EntryKind.DECIDED:
                self._of(batch[0], number).apply_decisions(batch)
            else:
                self._apply_one_by_one(batch)
            self.seq, self.at = batch[-1].seq, max(self.at, *(entry.at for entry in batch))
            self.tail.add(batch)

    def _apply_one_by_one(self, batch: list[Entry]) -> None:
        experiment = self._of(batch[0], batch[0].experiment)
        steps: dict[EntryKind, Callable[[Entry], None]] = {
            EntryKind.ARMS: experiment.change_arms,
            EntryKind.CLOSED: experiment.close,
        }
        step = steps.get(batch[0].kind, experiment.apply_outcome)
        for entry in batch:
            step(entry)

    def _of(self, entry: Entry, number: int) -> Experiment:
        try:
            return self.experiments[number]
        except KeyError:
            raise StoreError(f"entry {entry.seq} belongs to experiment {number}, which was never created") from None

    def _add(self, experiment: Experiment) -> None:
        self.experiments[experiment.seq] = self.by_name[experiment.name] = experiment

    def snapshot(self) -> Snapshot:
        """Return the whole state as bytes."""
        states = [experiment.state() for experiment in self.experiments.values()]
        state = {"at": self.at, "tail": self.tail.state(), "experiments": states}
        return Snapshot(self.seq, VERSION, msgspec.msgpack.encode(state))


def restore(snapshot: Snapshot) -> Fold:
    """Restore the state from a snapshot, or raise a SnapshotError."""
    if snapshot.version != VERSION:
        raise SnapshotError(f"it has version {snapshot.version}, and this release reads version {VERSION}")
    fold = Fold()
    try:
        state: dict[str, Any] = msgspec.msgpack.decode(snapshot.state)
        fold.seq = fold.restored = snapshot.seq
        fold.at, fold.tail = state["at"], Tail.restore(state["tail"])
        if fold.tail.newest.seq != fold.seq:
            raise SnapshotError(f"it is called that of entry {fold.seq}, but is of entry {fold.tail.newest.seq}")
        for one in state["experiments"]:
            fold._add(Experiment.restore(one))
    except SnapshotError:
        raise
    except (msgspec.MsgspecError, LookupError, TypeError, ValueError) as error:
        raise SnapshotError(f"it is damaged: {type(error).__name__}: {error}") from error
    return fold
