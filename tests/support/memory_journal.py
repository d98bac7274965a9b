"""A journal in memory, the smallest store that keeps the contract."""

import copy
import hashlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, ClassVar, final

import msgspec

from belated.errors import HistoryLost, StoreError
from belated.serve.domain.entries import Entry, EntryKind, Found, with_seq
from belated.serve.domain.fold import Snapshot
from belated.serve.domain.history import LOW_BITS, Mark, place_of
from belated.serve.store.bases import is_removed_by
from belated.serve.store.journal import (
    MOST_OUTCOMES,
    NO_MARK,
    Aliased,
    Base,
    Conflict,
    Journal,
    Key,
    Record,
    Removal,
    Requested,
)
from tests.support.memory_keys import KeptKeys, KeysInMemory

OUTCOMES = (EntryKind.REPORTED, EntryKind.EXPIRED, EntryKind.LATE, EntryKind.AMENDED, EntryKind.REMOVED)
EVENTS = (EntryKind.CREATED, EntryKind.ARMS, EntryKind.CLOSED, EntryKind.OPERATED)


@final
class MemoryStore(KeptKeys):
    """The content of one store, shared by all its connections."""

    def __init__(self) -> None:
        super().__init__()
        self.entries: list[Entry] = []
        self.snapshots: dict[int, Snapshot] = {}
        self.bases: dict[int, Snapshot] = {}
        self.removal: Base | None = None  # the base up to which entries are removed
        self.claimed_by: MemoryJournal | None = None


seq_of = attrgetter("seq")


def uniques(entry: Entry) -> set[tuple[Any, ...]]:
    """The values that no other entry may have."""
    alias = None if entry.alias is None else ("alias", entry.experiment, entry.alias, entry.position)
    return {one for one in (unique(entry), alias) if one is not None}


def unique(entry: Entry) -> tuple[Any, ...] | None:
    """The value of its own kind that no other entry may have, or None if there is none."""
    if entry.kind is EntryKind.CREATED:
        return "name", msgspec.json.decode(entry.body or b"{}")["name"]
    if entry.kind is EntryKind.DECIDED:
        return None if entry.request is None else ("request", entry.experiment, entry.request, entry.position)
    if entry.kind in OUTCOMES:
        return "outcome", entry.decision, entry.revision
    return None if entry.revision is None else ("event", entry.experiment, entry.revision)


def is_in_force(base: Base, found: Sequence[Entry]) -> bool:
    """Whether the entry of a base is there."""
    return any(entry.kind is EntryKind.BASE and entry.seen == base.seq for entry in found)


def base_of(entries: Iterable[Entry], bases: Mapping[int, Snapshot], removal: Base | None) -> Base | None:
    """The base in force."""
    named = [entry for entry in entries if entry.kind is EntryKind.BASE]
    if not named:
        return None
    entry = max(named, key=lambda one: (one.seen or 0, -one.seq))
    state = bases[entry.seen or 0]
    digest, is_removing = hashlib.sha256(state.state).digest(), removal is not None and removal.seq == state.seq
    return Base(state.seq, entry.seq, entry.at, state.version, "test", digest, is_removing)


class MemoryJournal(KeysInMemory):
    """A connection to a store that lasts as long as the process."""

    kind: ClassVar[str] = "memory"

    def __init__(self, store: MemoryStore, *, may_write: bool = True) -> None:
        self._store, self.kept, self._may_write = store, store, may_write

    def append(self, entries: Sequence[Entry], mark: Mark = NO_MARK) -> list[int]:
        if not self._may_write:
            raise StoreError("this connection only reads")
        if not self.confirms(mark):
            raise HistoryLost(f"entries up to {mark.newest.seq} are gone")
        taken = set[tuple[Any, ...]]().union(*map(uniques, self._store.entries))
        written = []
        for seq, entry in enumerate(entries, self.last() + 1):
            if taken & (own := uniques(entry)):
                raise Conflict
            taken |= own
            written.append(with_seq(entry, seq))
        self._store.entries += written
        return [entry.seq for entry in written]

    def _between(self, after: int, until: int) -> list[Entry]:
        entries = self._store.entries
        return entries[bisect_right(entries, after, key=seq_of) : bisect_right(entries, until, key=seq_of)]

    def confirms(self, mark: Mark) -> bool:
        if mark.base and mark.base not in self._store.bases:
            return False
        if self._store.removal is not None and 0 < mark.newest.seq < self._store.removal.entry:
            return False
        after, needed = self._between(mark.since, mark.newest.seq), {mark.newest, mark.witness, *mark.also}
        known = [one for place in needed for one in self._between(place.seq - 1, place.seq)]
        sums = len(after), *(sum(place[n] & LOW_BITS for place in map(place_of, after)) for n in (0, 1))
        return needed <= {Mark().newest, *map(place_of, known)} and sums == (mark.n_after, mark.seqs, mark.times)

    def last(self) -> int:
        return self._store.entries[-1].seq if self._store.entries else 0

    def named(self, names: Sequence[str]) -> dict[str, int]:
        known = {own[1]: entry.seq for entry in self._store.entries if (own := unique(entry)) and own[0] == "name"}
        return {name: known[name] for name in names if name in known}

    def read(self, after: int, limit: int) -> list[Entry]:
        if self._store.removal is not None and after < self._store.removal.seq:
            raise HistoryLost(f"entries after {after} may be missing")
        return [entry for entry in self._store.entries if entry.seq > after][:limit]

    def find(self, seqs: Sequence[int]) -> dict[int, Found]:
        decisions = {entry.seq: entry for entry in self._store.entries if entry.kind is EntryKind.DECIDED}
        return {seq: self._found(decisions[seq]) for seq in seqs if seq in decisions}

    def _found(self, decision: Entry) -> Found:
        return Found(decision, next(reversed(self.history(decision.seq)), None))

    def requested(self, requests: Sequence[Requested]) -> dict[Requested, list[Entry]]:
        found: dict[Requested, list[Entry]] = {}
        for entry in sorted(self._store.entries, key=lambda one: one.position or 0):
            if entry.request is not None and (entry.experiment, entry.request) in requests:
                found.setdefault((entry.experiment, entry.request), []).append(entry)
        return found

    def aliased(self, aliases: Sequence[Aliased]) -> dict[Aliased, list[Entry]]:
        found: dict[Aliased, list[Entry]] = {}
        for entry in sorted(self._store.entries, key=lambda one: one.position or 0):
            if entry.alias is not None and (entry.experiment, entry.alias) in aliases:
                found.setdefault((entry.experiment, entry.alias), []).append(entry)
        return found

    def decisions(self, experiment: int, after: int, limit: int) -> list[Found]:
        return [self._found(entry) for entry in self._of(experiment, after, limit, (EntryKind.DECIDED,))]

    def outcomes(self, experiment: int, after: int, limit: int) -> list[Entry]:
        return self._of(experiment, after, limit, OUTCOMES)

    def events(self, experiment: int, after: int, limit: int) -> list[Entry]:
        return self._of(experiment, after, limit, EVENTS)

    def _of(self, experiment: int, after: int, limit: int, kinds: tuple[EntryKind, ...]) -> list[Entry]:
        later = (entry for entry in self._store.entries if entry.seq > after and entry.experiment == experiment)
        return [entry for entry in later if entry.kind in kinds][:limit]

    def history(self, decision: int, first: int = 0, limit: int = MOST_OUTCOMES) -> list[Entry]:
        found = [entry for entry in self._store.entries if entry.decision == decision]
        return [entry for entry in found if (entry.revision or 0) >= first][:limit]

    def snapshots(self) -> list[Snapshot]:
        return [self._store.snapshots[seq] for seq in sorted(self._store.snapshots, reverse=True)]

    def snapshot_seq(self) -> int:
        return max(self._store.snapshots, default=0)

    def claim_snapshots(self) -> bool:
        if self._store.claimed_by is None:
            self._store.claimed_by = self
        return self._store.claimed_by is self

    def save(self, snapshot: Snapshot) -> None:
        self._store.snapshots[snapshot.seq] = snapshot
        while len(self._store.snapshots) > 2:
            del self._store.snapshots[min(self._store.snapshots)]

    def drop_snapshot(self, seq: int) -> None:
        self._store.snapshots.pop(seq, None)

    def drop_snapshots(self, before: int) -> None:
        self._store.snapshots = {seq: one for seq, one in self._store.snapshots.items() if seq >= before}

    def left(self, after: int, until: int, limit: int) -> list[Entry]:
        return self._between(after, until)[:limit]

    def prepare_base(self, state: Snapshot) -> None:
        self._store.bases[state.seq] = state

    def base(self) -> Base | None:
        return base_of(self._store.entries, self._store.bases, self._store.removal)

    def base_state(self, seq: int) -> bytes:
        return self._store.bases[seq].state if seq in self._store.bases else b""

    def begin_removal(self, base: Base) -> None:
        if not is_in_force(base, self._between(base.entry - 1, base.entry)):
            raise HistoryLost(f"the base of entry {base.entry} is gone")
        self._store.removal = base
        self._store.bases = {seq: one for seq, one in self._store.bases.items() if seq >= base.seq}
        self.drop_snapshots(base.entry)

    def remove(self, what: Removal) -> Iterator[int]:
        if not self._may_write:
            raise StoreError("this connection only reads")
        base, before = self._store.removal, self._store.entries
        if base is None or base.seq != what.until or not is_in_force(base, self._between(base.entry - 1, base.entry)):
            raise HistoryLost(f"the state after entry {what.until} is not in force")
        self._store.entries = [entry for entry in before if not is_removed_by(what, entry)]
        yield len(before) - len(self._store.entries)

    def forget_requests(self, until: int) -> Iterator[int]:
        for index, entry in enumerate(self._store.entries):
            if entry.seq <= until and entry.request is not None:
                self._store.entries[index] = msgspec.structs.replace(entry, request=None, position=None)
                yield 1

    def fill(
        self,
        entries: Iterable[Entry],
        snapshots: Sequence[Snapshot],
        keys: Sequence[Key],
        base: tuple[Base, bytes] | None = None,
        records: Sequence[Record] = (),
    ) -> None:
        self.note(records)
        self._store.entries = list(entries)
        self._store.snapshots = {one.seq: one for one in snapshots}
        self._store.keys = {key.id: key for key in keys}
        if base is not None:
            self._store.removal, state = base
            self._store.bases = {base[0].seq: Snapshot(base[0].seq, base[0].version, state)}

    def size(self) -> int:
        return len(msgspec.msgpack.encode(self._store.entries))

    def reader(self) -> Journal:
        other = copy.copy(self)
        other._may_write = False
        return other

    def check(self) -> list[str]:
        return []

    def close(self) -> None:
        pass
