"""The state of all experiments. The same journal always gives the same state, to the last bit."""

from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Any, Final, NamedTuple, final

import msgspec

from belated.errors import SnapshotError, StoreError
from belated.serve.domain.entries import Entry, EntryKind
from belated.serve.domain.experiment import Experiment
from belated.serve.domain.failures import OtherRelease
from belated.serve.domain.history import Tail
from belated.serve.domain.owned import Owned

# A snapshot of another version is not used, and the journal is read instead. A base cannot be done without. So who
# raises this must also let `restore` read the states of version 10 and later (tests/serve/test_bases.py).
VERSION: Final = 13
# The oldest version of a base that can be read. It does not count removed decisions. Before 13 no decision names a key
BASES_FROM: Final = 10

# errors of the store or of this process. They say nothing about an experiment, and other servers may not have them
NOT_ITS_OWN: Final = (StoreError, MemoryError, RecursionError)


class Snapshot(NamedTuple):
    """The state after the entry `seq`, as bytes that only the same version of the fold can read."""

    seq: int
    version: int
    state: bytes


class FailedApply(NamedTuple):
    """An experiment that has just failed, and why. Only logs and `belated verify` show the error."""

    experiment: Experiment
    error: Exception


@final
class Fold:
    """All experiments, by the number of their first entry and by name."""

    def __init__(self) -> None:
        self.seq = self.at = 0  # number and time of the last entry applied
        self.restored = 0  # the entry of the snapshot it started from
        self.experiments: dict[int, Experiment] = {}
        self.by_name: dict[str, Experiment] = {}
        self.owned = Owned()  # open decisions of keys that have a limit
        self.tail = Tail()  # of the history it was folded from
        self.failures: list[FailedApply] = []  # of this object, since somebody took them. They are no part of the state

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
                self._create(batch[0])
            elif kind is not EntryKind.BASE:  # which says that this state was saved, and changes only the tail
                self._change(self._of(batch[0], number), batch)
            self.seq, self.at = batch[-1].seq, max(self.at, *(entry.at for entry in batch))
            self.tail.add(batch)

    def _create(self, entry: Entry) -> None:
        try:
            experiment = Experiment(entry)
        except NOT_ITS_OWN:
            raise
        except Exception as error:  # noqa: BLE001
            experiment = Experiment.stillborn(entry)
            self.failures.append(FailedApply(experiment, error))
        self._add(experiment)

    def _change(self, experiment: Experiment, batch: list[Entry]) -> None:
        """Apply entries of one kind to their experiment. If that fails, it is the experiment's own failure."""
        is_whole = len(batch) == 1 or batch[0].kind is EntryKind.DECIDED
        pieces = [batch] if is_whole else [[entry] for entry in batch]
        for piece in pieces:
            if experiment.failure is not None:
                experiment.note(piece)
                continue
            try:
                experiment.apply(piece)
                self.owned.note(piece)
            except NOT_ITS_OWN:
                raise
            except Exception as error:  # noqa: BLE001
                experiment.fail(piece)
                self.owned.drop(experiment.seq)
                self.failures.append(FailedApply(experiment, error))

    def take_failures(self) -> "list[FailedApply]":
        """Return the experiments that have failed since the last call."""
        taken, self.failures = self.failures, []
        return taken

    def _of(self, entry: Entry, number: int) -> Experiment:
        try:
            return self.experiments[number]
        except KeyError:
            raise StoreError(f"entry {entry.seq} belongs to experiment {number}, which was never created") from None

    def _add(self, experiment: Experiment) -> None:
        self.experiments[experiment.seq] = self.by_name[experiment.name] = experiment

    def snapshot(self) -> Snapshot:
        """Return the whole state as bytes."""
        return self._saved(self.tail)

    def base(self) -> Snapshot:
        """Return the whole state as bytes that need no earlier entry of the journal."""
        return self._saved(Tail.after_base(self.seq))

    def _saved(self, tail: Tail) -> Snapshot:
        states = [experiment.state() for experiment in self.experiments.values()]
        state = {"at": self.at, "tail": tail.state(), "owned": self.owned.state(), "experiments": states}
        return Snapshot(self.seq, VERSION, msgspec.msgpack.encode(state))


def restore(snapshot: Snapshot, *, is_base: bool = False) -> Fold:
    """Restore the state from a snapshot, or raise a SnapshotError."""
    if snapshot.version != VERSION and not (is_base and BASES_FROM <= snapshot.version < VERSION):
        raise OtherRelease(f"it has version {snapshot.version}, and this release reads version {VERSION}")
    fold = Fold()
    try:
        state: dict[str, Any] = msgspec.msgpack.decode(snapshot.state)
        fold.seq = fold.restored = snapshot.seq
        fold.at, fold.tail = state["at"], Tail.restore(state["tail"])
        if (newest := fold.tail.newest.seq or fold.tail.since) != fold.seq:  # a base knows no newest entry
            raise SnapshotError(f"it is called that of entry {fold.seq}, but is of entry {newest}")
        fold.owned = Owned.restore(state.get("owned", ()))
        for one in state["experiments"]:
            fold._add(Experiment.restore(one, is_base=is_base))
    except (*NOT_ITS_OWN, SnapshotError):
        raise
    except Exception as error:  # such as that of a learner. The journal can be read in place of a snapshot
        raise SnapshotError(f"it is damaged: {type(error).__name__}: {error}") from error
    return fold
