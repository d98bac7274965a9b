"""A database like PostgreSQL: numbers are taken before the commit, and commits come in any order."""

from bisect import bisect_right, insort
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, final

import msgspec

from belated.errors import HistoryLost
from belated.serve.domain.entries import Entry, EntryKind, with_seq
from belated.serve.domain.fold import Snapshot
from belated.serve.domain.history import LOW_BITS, Mark, place_of
from belated.serve.store.bases import is_removed_by
from belated.serve.store.journal import Base, Removal
from tests.support.memory_journal import base_of, is_in_force, unique, uniques
from tests.support.memory_keys import KeptKeys

KEPT_SNAPSHOTS = 2


@final
class Transaction:
    """An append that has begun. It holds its numbers and its unique values until it ends."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.uniques: set[tuple[Any, ...]] = set()
        self.is_open = True

    @property
    def first(self) -> int | None:
        """Its lowest number."""
        return self.entries[0].seq if self.entries else None


class Prepared(NamedTuple):
    """A state was saved for a base."""

    state: Snapshot


class Begun(NamedTuple):
    """Entries up to a base are removed from now on."""

    base: Base


class Removed(NamedTuple):
    """These entries were removed."""

    seqs: tuple[int, ...]


class Forgotten(NamedTuple):
    """The Idempotency-Keys of these decisions were forgotten."""

    seqs: tuple[int, ...]


Change = Prepared | Begun | Removed | Forgotten
AT_ONCE = 3  # decisions that are removed or forgotten by one transaction


@final
class Database(KeptKeys):
    """What is committed, what is in progress, and the order of the commits, of which a failover may lose the last.

    A clean database has no faults of its own. The world crashes it. `committed` is called with each append.
    """

    def __init__(self) -> None:
        super().__init__()
        self.log: list[tuple[Entry, ...] | Snapshot | Change] = []  # in the order of the commits
        self.drawn = 0  # the last number taken
        self.open: list[Transaction] = []
        self.foreign: list[int] = []  # of each open transaction of somebody else, the last number when it began
        self.is_up, self.incarnation = True, 0
        self.conflicts = self.overtaken = 0  # how many appends were refused, and committed after later numbers
        self.clock: Callable[[], int] | None = None  # a file has none
        self.claimed_by: object = None  # the connection that saves snapshots
        self.begun: Callable[[Sequence[Entry]], None] = lambda _: None
        self.committed: Callable[[Sequence[Entry]], None] = lambda _: None
        self.removed: Callable[[Sequence[Entry]], None] = lambda _: None
        self._clear()

    def _clear(self) -> None:
        self.entries: dict[int, Entry] = {}
        self.order: list[int] = []
        self.uniques: set[tuple[Any, ...]] = set()
        self.names: dict[str, int] = {}
        self.requests: dict[tuple[int, str], list[int]] = {}
        self.aliases: dict[tuple[int, bytes], list[tuple[int, int]]] = {}  # positions and numbers of entries
        self.outcomes: dict[int, list[int]] = {}
        self.by_experiment: dict[int, list[int]] = {}
        self.snapshots: dict[int, Snapshot] = {}
        self.bases: dict[int, Snapshot] = {}
        self.removal: Base | None = None  # the base up to which entries are removed
        self.gone: dict[int, Entry] = {}  # what was removed. Only the model sees it

    # -- transactions --------------------------------------------------------------------------------------------------

    def begin(self, entries: Sequence[Entry]) -> Transaction:
        """Begin an append. It has no numbers yet."""
        self.begun(entries)
        transaction = Transaction()
        self.open.append(transaction)
        return transaction

    def take(self, transaction: Transaction, entries: Sequence[Entry]) -> None:
        """Give the next numbers to these entries."""
        for entry in entries:
            self.drawn += 1
            transaction.entries.append(with_seq(entry, self.drawn))

    def insert(self, transaction: Transaction) -> bool | None:
        """Check unique values and hold them. None if another open transaction holds one, False if one exists."""
        wanted = [own for entry in transaction.entries for own in uniques(entry)]
        if len(set(wanted)) < len(wanted) or not self.uniques.isdisjoint(wanted):
            self.conflicts += 1
            return False
        if any(not other.uniques.isdisjoint(wanted) for other in self.open if other is not transaction):
            return None
        transaction.uniques = set(wanted)
        return True

    def commit(self, transaction: Transaction) -> None:
        """Make it durable and visible."""
        self._end(transaction)
        written = tuple(transaction.entries)
        self.log.append(written)
        self.overtaken += self.last() > written[0].seq
        self._keep(written)
        self.committed(written)

    def abort(self, transaction: Transaction) -> None:
        """Forget it. Its numbers are never used."""
        self._end(transaction)

    def _end(self, transaction: Transaction) -> None:
        assert transaction.is_open
        transaction.is_open = False
        self.open.remove(transaction)

    def save(self, snapshot: Snapshot) -> None:
        """Save a snapshot in a transaction of its own."""
        self.log.append(snapshot)
        self._keep_snapshot(snapshot)

    def _keep(self, written: Sequence[Entry]) -> None:
        for entry in written:
            assert entry.seq not in self.entries, f"the number {entry.seq} was used twice"
            self.entries[entry.seq] = entry
            insort(self.order, entry.seq)
            insort(self.by_experiment.setdefault(entry.experiment, []), entry.seq)
            self.uniques |= uniques(entry)
            if (own := unique(entry)) is not None and own[0] == "name":
                self.names[own[1]] = entry.seq
            if entry.alias is not None:
                place = entry.position or 0, entry.seq
                insort(self.aliases.setdefault((entry.experiment, entry.alias), []), place)
            if entry.kind is EntryKind.DECIDED and entry.request is not None:
                insort(self.requests.setdefault((entry.experiment, entry.request), []), entry.seq)
            if entry.decision is not None:
                insort(self.outcomes.setdefault(entry.decision, []), entry.seq)

    def _keep_snapshot(self, snapshot: Snapshot) -> None:
        self.snapshots[snapshot.seq] = snapshot
        for seq in sorted(self.snapshots)[:-KEPT_SNAPSHOTS]:
            del self.snapshots[seq]

    # -- bases and removals --------------------------------------------------------------------------------------------

    def change(self, what: Change) -> None:
        """Do what is no append, in a transaction of its own."""
        self._make(what)
        self.log.append(what)
        if isinstance(what, Removed):
            self.removed([self.gone[seq] for seq in what.seqs])

    def _make(self, what: Change) -> None:
        if isinstance(what, Prepared):
            self.bases[what.state.seq] = what.state
        elif isinstance(what, Begun):
            self.check_in_force(what.base)
            self.removal = what.base
            self.bases = {seq: one for seq, one in self.bases.items() if seq >= what.base.seq}
            self.drop_snapshots(what.base.entry)
        elif isinstance(what, Removed):
            for seq in what.seqs:
                self.gone[seq] = self.entries.pop(seq)
                self._drop(self.gone[seq])
        else:
            for seq in what.seqs:
                entry = self.entries[seq]
                self._drop_request(entry)
                self.entries[seq] = msgspec.structs.replace(entry, request=None, position=None)

    def _drop(self, entry: Entry) -> None:
        self.order.remove(entry.seq)
        self.by_experiment[entry.experiment].remove(entry.seq)
        self._drop_request(entry)
        if entry.alias is not None:
            self.uniques -= uniques(entry)
            self.aliases[entry.experiment, entry.alias].remove((entry.position or 0, entry.seq))
        if entry.decision is not None:
            self.outcomes[entry.decision].remove(entry.seq)
            self.uniques.discard(unique(entry) or ())

    def _drop_request(self, entry: Entry) -> None:
        if entry.kind is EntryKind.DECIDED and entry.request is not None:
            self.uniques.discard(unique(entry) or ())
            self.requests[entry.experiment, entry.request].remove(entry.seq)
            if not self.requests[entry.experiment, entry.request]:
                del self.requests[entry.experiment, entry.request]

    def drop_snapshots(self, before: int) -> None:
        """Drop the snapshots of earlier entries."""
        self.snapshots = {seq: one for seq, one in self.snapshots.items() if seq >= before}

    def base(self) -> Base | None:
        """The base in force."""
        return base_of(self.entries.values(), self.bases, self.removal)

    def base_state(self, seq: int) -> bytes:
        """The state of a base."""
        return self.bases[seq].state if seq in self.bases else b""

    def check_in_force(self, base: Base | None) -> None:
        """Raise HistoryLost if the entry of a base is gone."""
        entry = None if base is None else self.entries.get(base.entry)
        if base is None or entry is None or not is_in_force(base, [entry]):
            raise HistoryLost("the base is not in force")

    def next_removed(self, what: Removal) -> tuple[int, ...]:
        """What a removal takes next: some decisions with their outcomes, then outcomes without a decision."""
        self.check_in_force(self.removal if self.removal is not None and self.removal.seq == what.until else None)
        gone = [self.entries[seq] for seq in self.order if is_removed_by(what, self.entries[seq])]
        made = [entry.seq for entry in gone if entry.kind is EntryKind.DECIDED][:AT_ONCE]
        told = [entry.seq for entry in gone if entry.decision in made or not made]
        return (*made, *told)

    def next_forgotten(self, until: int, before: int, now: int) -> tuple[int, ...]:
        """The next decisions with an Idempotency-Key that are old, and not after an entry that is not."""
        young = min((seq for seq in self.order if before <= self.entries[seq].at <= now), default=until + 1)
        old = (self.entries[seq] for seq in self.order if seq <= until and seq < young)
        return tuple(one.seq for one in old if one.request is not None and one.at < before)[:AT_ONCE]

    def ever(self, seq: int) -> Entry | None:
        """An entry that is there, or was removed."""
        return self.entries.get(seq) or self.gone.get(seq)

    def history(self, after: int = 0) -> list[Entry]:
        """All entries after a number that are there, or were removed, in order."""
        both = (*self.entries.values(), *self.gone.values())
        return sorted((one for one in both if one.seq > after), key=lambda one: one.seq)

    # -- what readers see ----------------------------------------------------------------------------------------------

    def horizon(self) -> int:
        """The number up to which no entry can still appear, as far as a reader can know."""
        return min([self.settled(), *self.foreign])

    def settled(self) -> int:
        """The number up to which no entry can still appear."""
        return min([self.drawn, *(one.first - 1 for one in self.open if one.first is not None)])

    def last(self) -> int:
        """The newest committed number."""
        return self.order[-1] if self.order else 0

    def after(self, after: int, until: int, limit: int) -> list[Entry]:
        """Committed entries in order."""
        low = bisect_right(self.order, after)
        high = min(bisect_right(self.order, until), low + limit)
        return [self.entries[seq] for seq in self.order[low:high]]

    def next_after(self, after: int, limit: int) -> list[Entry]:
        """Entries that a reader sees, unless some of them may have been removed."""
        if self.removal is not None and after < self.removal.seq:
            raise HistoryLost(f"entries after {after} may be missing")
        return self.after(after, self.horizon(), limit)

    def holds(self, mark: Mark) -> bool:
        """Whether the history of a mark is still there."""
        if mark.base and mark.base not in self.bases:
            return False
        if self.removal is not None and 0 < mark.newest.seq < self.removal.entry:
            return False
        after = self.after(mark.since, mark.newest.seq, len(self.order))
        for place in (mark.newest, mark.witness, *mark.also):
            if place.seq and (place.seq not in self.entries or place_of(self.entries[place.seq]) != place):
                return False
        sums = len(after), *(sum(place[n] & LOW_BITS for place in map(place_of, after)) for n in (0, 1))
        return sums == (mark.n_after, mark.seqs, mark.times)

    def of_experiment(self, number: int, after: int, limit: int, kinds: tuple[EntryKind, ...]) -> list[Entry]:
        """A page of an experiment's entries of these kinds."""
        own = self.by_experiment.get(number, [])
        later = (self.entries[seq] for seq in own[bisect_right(own, after) :])
        return [entry for entry in later if entry.kind in kinds][:limit]

    # -- disasters -----------------------------------------------------------------------------------------------------

    def crash(self, skipped: int) -> None:
        """Lose what is not committed, and every connection. A sequence may then skip numbers."""
        for transaction in list(self.open):
            self.abort(transaction)
        self.foreign.clear()
        self.drawn += skipped
        self.incarnation += 1

    def go_back(self, lost: int, skipped: int, *, keeps_connections: bool, keeps_snapshots: bool) -> list[Entry]:
        """Lose the last commits. Numbers are given out again. Returns what was lost.

        That is a failover to a standby that lacks them. If connections are kept, an older backup was restored. If
        snapshots are kept, they were in a file of their own, as those of SQLite are.
        """
        self.crash(0)
        self.incarnation -= keeps_connections
        gone = self.log[len(self.log) - lost :]
        del self.log[len(self.log) - lost :]
        self.log += [one for one in gone if keeps_snapshots and isinstance(one, Snapshot)]
        self._clear()
        for one in self.log:
            if isinstance(one, Snapshot):
                self._keep_snapshot(one)
            elif isinstance(one, Change):
                self._make(one)
            else:
                self._keep(one)
        self.drawn = self.last() + skipped
        return [entry for one in gone if not isinstance(one, Snapshot | Change) for entry in one]
