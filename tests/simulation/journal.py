"""A connection to the simulated database, which keeps the contract of a journal."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import ClassVar, Protocol, TypeVar, final

import msgspec

from belated.errors import HistoryLost, StoreError, StoreUnreachable
from belated.serve.domain.entries import Entry, EntryKind, Found
from belated.serve.domain.fold import Snapshot
from belated.serve.domain.history import Mark, place_of
from belated.serve.store.journal import (
    LATEST,
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
from tests.simulation.database import Begun, Database, Forgotten, Prepared, Removed, Transaction
from tests.support.memory_journal import EVENTS, OUTCOMES
from tests.support.memory_keys import KeysInMemory

T = TypeVar("T")
MOST_WAITS = 12  # turns that an append waits for another transaction before it gives up


class Line(Protocol):
    """What lies between a server and the database."""

    def pause(self, what: str) -> None:
        """Let others go on. May raise anything that ends the server."""

    def request(self, what: str) -> None:
        """A request is on its way. Raises StoreUnreachable if it is lost."""

    def answer(self, what: str) -> None:
        """An answer is on its way. Raises StoreUnreachable if it is lost."""

    def holds(self) -> bool:
        """Whether the connection of an open append holds."""

    def is_broken(self) -> bool:
        """Whether the disk fails now."""

    def abandon(self, transaction: Transaction) -> None:
        """A transaction has lost its client. It ends later by itself."""

    def chance(self) -> bool:
        """Toss a coin."""


@final
class Calm:
    """A line without faults."""

    def pause(self, what: str) -> None: ...
    def request(self, what: str) -> None: ...
    def answer(self, what: str) -> None: ...

    def holds(self) -> bool:
        return True

    def is_broken(self) -> bool:
        return False

    def abandon(self, transaction: Transaction) -> None: ...

    def chance(self) -> bool:
        return False


@final
class SimulatedJournal(KeysInMemory):
    """A journal over one connection, which comes back by itself after it is lost."""

    kind: ClassVar[str] = "simulated"

    def __init__(self, database: Database, line: Line | None = None, *, may_write: bool = True) -> None:
        self._database, self.kept = database, database
        self._line, self._may_write = Calm() if line is None else line, may_write
        self._incarnation = database.incarnation
        self.newest: Entry | None = None  # the newest entry read or written
        self._is_new = False  # whether the connection has not been used yet
        self._failure = ""  # a disk that has failed stays so until the store is opened again

    # -- the connection ------------------------------------------------------------------------------------------------

    def _connect(self, what: str) -> None:
        """Send a request, on a new connection if the last one is gone."""
        self._line.request(what)
        database = self._database
        if not database.is_up:
            raise StoreUnreachable("the database is down")
        if self._incarnation != database.incarnation:
            self._incarnation, self._is_new = database.incarnation, True
            raise StoreUnreachable("the database has closed the connection")
        if self._is_new:
            self._begin_anew()

    def _begin_anew(self) -> None:
        """Check that the newest known entry still exists, as the journal in PostgreSQL does on a new connection."""
        known = None if self.newest is None else self._database.entries.get(self.newest.seq)
        if self.newest is not None and (known is None or place_of(known) != place_of(self.newest)):
            raise HistoryLost(f"the store has lost entry {self.newest.seq}. Restart the service.")
        self._is_new = False

    def _call(self, what: str, do: Callable[[], T]) -> T:
        self._line.pause(what)
        self._connect(what)
        result = do()
        self._line.answer(what)
        return result

    def _know(self, entry: Entry) -> None:
        if self.newest is None or entry.seq >= self.newest.seq:
            self.newest = entry

    # -- writing -------------------------------------------------------------------------------------------------------

    def append(self, entries: Sequence[Entry], mark: Mark = NO_MARK) -> list[int]:
        if not self._may_write:
            raise StoreError("this connection only reads")
        if not entries:
            return []
        self._line.pause("append")
        if self._failure:
            raise StoreError(self._failure)
        self._connect("append")
        if not self._database.holds(mark):
            raise HistoryLost(f"the store has lost entries up to {mark.newest.seq}. Restart the service.")
        transaction = self._database.begin(entries)
        try:
            self._insert(transaction, entries)
            self._line.pause("commit")
            self._check_open(transaction)
            if self._line.is_broken():
                self._break(transaction)
            if self._line.holds():
                self._database.commit(transaction)
        finally:
            if transaction.is_open:  # the client is gone, or no longer hears
                self._line.abandon(transaction)
        if transaction.is_open:
            raise StoreUnreachable("the connection broke during a commit")
        self._line.pause("committed")
        self._check_same()
        self._line.answer("append")
        self._know(transaction.entries[-1])
        return [entry.seq for entry in transaction.entries]

    def _insert(self, transaction: Transaction, entries: Sequence[Entry]) -> None:
        """Take numbers, perhaps while others take some too, and wait for whoever holds the same unique value."""
        half = len(entries) // 2 if self._line.chance() else 0
        self._database.take(transaction, entries[:half])
        if half:
            self._line.pause("between numbers")
            self._check_open(transaction)
        self._database.take(transaction, entries[half:])
        self._line.pause("insert")
        for _ in range(MOST_WAITS):
            self._check_open(transaction)
            is_inserted = self._database.insert(transaction)
            if is_inserted:
                return
            if is_inserted is False:
                self._database.abort(transaction)
                raise Conflict
            self._line.pause("wait for another transaction")
        self._check_open(transaction)
        self._database.abort(transaction)
        raise StoreUnreachable("no answer for some seconds")

    def _check_same(self) -> None:
        if self._incarnation != self._database.incarnation:
            raise StoreUnreachable("the database has closed the connection")

    def _check_open(self, transaction: Transaction) -> None:
        self._check_same()
        if not transaction.is_open:
            raise StoreUnreachable("the transaction was ended by an administrator")

    def _break(self, transaction: Transaction) -> None:
        """Fail for good. It is unknown whether the entries were written."""
        if self._line.chance():
            self._database.commit(transaction)
        else:
            self._database.abort(transaction)
        self._failure = "the disk has failed. Nothing more is written until a restart."
        raise StoreError(self._failure)

    def save(self, snapshot: Snapshot) -> None:
        self._call("save", lambda: self._database.save(snapshot))

    def drop_snapshot(self, seq: int) -> None:
        self._call("drop_snapshot", lambda: self._database.snapshots.pop(seq, None))

    # -- reading -------------------------------------------------------------------------------------------------------

    def clock(self) -> int | None:
        return None if self._database.clock is None else self._call("clock", self._database.clock)

    def confirms(self, mark: Mark) -> bool:
        return self._call("confirms", lambda: self._database.holds(mark))

    def last(self) -> int:
        return self._call("last", self._database.last)

    def aliased(self, aliases: Sequence[Aliased]) -> dict[Aliased, list[Entry]]:
        def find() -> dict[Aliased, list[Entry]]:
            known = self._database.aliases  # now, because a failover during the call has others
            return {one: [self._database.entries[seq] for _, seq in known[one]] for one in aliases if known.get(one)}

        return self._call("aliased", find)

    def named(self, names: Sequence[str]) -> dict[str, int]:
        def do() -> dict[str, int]:
            return {name: self._database.names[name] for name in names if name in self._database.names}

        return self._call("named", do)

    def read(self, after: int, limit: int) -> list[Entry]:
        page = self._call("read", lambda: self._database.next_after(after, limit))
        if page:
            self._know(page[-1])
        return page

    def _found(self, decision: Entry) -> Found:
        outcomes = self._database.outcomes.get(decision.seq)
        newest = max((self._database.entries[seq] for seq in outcomes or ()), key=_revision, default=None)
        return Found(decision, newest)

    def find(self, seqs: Sequence[int]) -> dict[int, Found]:
        def do() -> dict[int, Found]:
            entries = (self._database.entries.get(seq) for seq in sorted(set(seqs)))
            return {one.seq: self._found(one) for one in entries if one and one.kind is EntryKind.DECIDED}

        return self._call("find", do)

    def requested(self, requests: Sequence[Requested]) -> dict[Requested, list[Entry]]:
        def do() -> dict[Requested, list[Entry]]:
            known = self._database.requests
            found = {one: [self._database.entries[seq] for seq in known[one]] for one in requests if one in known}
            return {one: sorted(made, key=_position) for one, made in found.items()}

        return self._call("requested", do)

    def decisions(self, experiment: int, after: int, limit: int) -> list[Found]:
        def do() -> list[Found]:
            return list(map(self._found, self._database.of_experiment(experiment, after, limit, (EntryKind.DECIDED,))))

        return self._call("decisions", do)

    def outcomes(self, experiment: int, after: int, limit: int) -> list[Entry]:
        return self._call("outcomes", lambda: self._database.of_experiment(experiment, after, limit, OUTCOMES))

    def events(self, experiment: int, after: int, limit: int) -> list[Entry]:
        return self._call("events", lambda: self._database.of_experiment(experiment, after, limit, EVENTS))

    def history(self, decision: int, first: int = 0, limit: int = MOST_OUTCOMES) -> list[Entry]:
        def do() -> list[Entry]:
            found = [self._database.entries[seq] for seq in self._database.outcomes.get(decision, [])]
            return [entry for entry in found if (entry.revision or 0) >= first][:limit]

        return self._call("history", do)

    def snapshots(self) -> list[Snapshot]:
        def do() -> list[Snapshot]:
            return [self._database.snapshots[seq] for seq in sorted(self._database.snapshots, reverse=True)]

        return self._call("snapshots", do)

    def snapshot_seq(self) -> int:
        return self._call("snapshot_seq", lambda: max(self._database.snapshots, default=0))

    def claim_snapshots(self) -> bool:
        if self._database.claimed_by is None:
            self._database.claimed_by = self
        return self._database.claimed_by is self

    def left(self, after: int, until: int, limit: int) -> list[Entry]:
        return self._call("left", lambda: self._database.after(after, until, limit))

    # -- bases and removals --------------------------------------------------------------------------------------------

    def drop_snapshots(self, before: int) -> None:
        self._call("drop snapshots", lambda: self._database.drop_snapshots(before))

    def prepare_base(self, state: Snapshot) -> None:
        self._call("prepare base", lambda: self._database.change(Prepared(state)))

    def base(self) -> Base | None:
        return self._call("base", self._database.base)

    def base_state(self, seq: int) -> bytes:
        return self._call("base state", lambda: self._database.base_state(seq))

    def begin_removal(self, base: Base) -> None:
        self._call("begin removal", lambda: self._database.change(Begun(base)))

    def remove(self, what: Removal) -> Iterator[int]:
        if not self._may_write:
            raise StoreError("this connection only reads")

        def do() -> int:
            gone = self._database.next_removed(what)
            self._database.change(Removed(gone))
            return len(gone)

        while count := self._call("remove", do):
            yield count

    def forget_requests(self, until: int, before: int = LATEST, now: int = LATEST) -> Iterator[int]:
        while gone := self._call("forget", lambda: self._database.next_forgotten(until, before, now)):
            self._call("forget", lambda gone=gone: self._database.change(Forgotten(gone)))  # type: ignore[misc]
            yield len(gone)

    # -- the rest of the contract, without faults ----------------------------------------------------------------------

    def fill(
        self,
        entries: Iterable[Entry],
        snapshots: Sequence[Snapshot],
        keys: Sequence[Key],
        base: tuple[Base, bytes] | None = None,
        records: Sequence[Record] = (),
    ) -> None:
        self.note(records)
        database = self._database
        if database.entries or database.snapshots or database.keys:
            raise StoreError("the store is not empty. Choose another.")
        copied = Transaction()
        copied.entries = list(entries)
        database.open.append(copied)
        database.commit(copied)
        database.drawn = database.last()
        if base is not None:
            database.change(Prepared(Snapshot(base[0].seq, base[0].version, base[1])))
            database.change(Begun(base[0]))
        for snapshot in snapshots:
            database.save(snapshot)
        for key in keys:
            self.add_key(key)

    def size(self) -> int:
        return len(msgspec.msgpack.encode(list(self._database.entries.values())))

    def reader(self) -> Journal:
        return SimulatedJournal(self._database, self._line, may_write=False)

    def check(self) -> list[str]:
        return []

    def close(self) -> None:
        if self._database.claimed_by is self:
            self._database.claimed_by = None


def _position(entry: Entry) -> int:
    return entry.position or 0


def _revision(entry: Entry) -> int:
    return entry.revision or 0
