"""The contract of a journal: an append-only list of entries, durable when `append` returns.

One test suite checks every store against it. The store enforces uniqueness, so that retries and races have one effect.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar, NamedTuple

from belated.errors import StoreUnreachable
from belated.serve.domain import timestamps
from belated.serve.domain.entries import Drawings, Entry, Found
from belated.serve.domain.fold import Snapshot
from belated.serve.domain.history import Mark

PAGE = 5_000
MOST_OUTCOMES = 2**62  # no limit
TRANSACTION_TIMEOUT = 60.0  # seconds to wait for another client's open transaction
POLL_SECONDS = 0.02
LATEST = 2**62  # microseconds since 1970. No entry is dated later
NO_MARK = Mark()  # of a state that was folded from nothing


class Conflict(Exception):
    """A unique value exists already. Nothing was written."""


class Rejected(Exception):
    """The store cannot hold or look up a value. Nothing was written, and the store is sound."""


class Busy(Exception):
    """An open transaction of somebody else has locked what is to be changed. Nothing was written."""


class Key(NamedTuple):
    """A key to the service. The store keeps only the hash of its secret."""

    id: str
    digest: bytes
    scope: str
    experiment: str | None
    created_at: int
    revoked_at: int | None = None
    label: str = ""  # whose it is
    expires_at: int | None = None
    used_at: int | None = None  # when it was last used, to the minute or so


class Record(NamedTuple):
    """Part of the audit trail: a change, or refusals of one kind that came within about a minute."""

    number: int  # rises. 0 before it is written
    is_change: bool
    first: int
    last: int
    times: int
    what: str  # the route or the command
    status: int  # of the answer
    label: str  # of the key
    key: str  # its id
    experiment: str
    request_id: str  # of the last one


MOST_CHANGES, MOST_REFUSALS = 100_000, 20_000  # records of each kind that a store keeps, the newest ones
MOST_ENDED_KEYS = 1_000  # revoked and expired ones that an SQL store keeps. Every server reads all keys twice a second


class Base(NamedTuple):
    """A saved state that stands for all entries up to `seq`. Any of these may be removed, except events."""

    seq: int  # the last entry of the state
    entry: int  # the entry of kind BASE that has put it in force
    at: int  # when that was, in microseconds since 1970
    version: int  # of the state
    release: str  # that wrote it
    digest: bytes  # SHA-256 of the state
    is_removing: bool  # whether entries may be missing already


class Removal(NamedTuple):
    """What to remove. Only entries up to `until` go, which must be the number of the base in force.

    Exactly one of the others says which decisions go, with all their outcomes. Outcomes whose decision went before
    them go too.
    """

    until: int
    experiments: tuple[int, ...] | None = None  # all decisions of these experiments
    decisions_until: int = 0  # all decisions up to this number
    decisions: tuple[int, ...] = ()  # these decisions


Requested = tuple[int, str]  # an experiment, and the Idempotency-Key that decisions of it were asked with
Aliased = tuple[int, bytes]  # an experiment, and the alias of decisions or outcomes of it


class Journal(ABC):
    """An append-only list of entries, ordered by `seq`.

    Any number of processes may read and write at once, each with its own connection. Every method may raise
    StoreUnreachable. The next call connects again.
    """

    kind: ClassVar[str]
    is_far: ClassVar[bool] = False  # whether it may be milliseconds away, so that look-ups are worth avoiding

    @abstractmethod
    def append(self, entries: Sequence[Entry], mark: Mark = NO_MARK) -> list[int]:
        """Write all entries in one durable step, or none. Return their numbers, which rise but may have gaps.

        Raises HistoryLost and writes nothing if the store does not hold what the mark says, or if entries are being
        removed and the mark's newest entry is before the base that allows it.

        Raises Conflict if a unique value exists already or comes twice. These are unique: the name of an experiment
        (in its body), (experiment, request, position) of decisions, (decision, revision) of outcomes,
        (experiment, revision) of events, and (experiment, alias, position) of decisions and outcomes.

        Raises Rejected if the store cannot hold a value, such as text with a NUL in PostgreSQL. Nothing was written.

        Raises StoreUnreachable if it is unknown whether the entries were written. Any other StoreError is permanent.
        The caller must then acknowledge nothing more, and a file refuses every later append.
        """

    def settle(self) -> None:
        """Return once everything that can be read here now would also survive a failover.

        An append does so by itself. Call this before an answer that rests only on what was read, because somebody's
        commit may be readable although it did not wait for its standby. Raises StoreUnreachable if that cannot be said.
        """
        return

    def clock(self) -> int | None:
        """Return the time by the store's own clock, in microseconds since 1970, or None if it has none."""
        return None

    def now(self) -> int:
        """Return the time for a command to write down. The store's clock is that of all servers, if it has one."""
        clock = self.clock()
        return timestamps.now() if clock is None else clock

    @abstractmethod
    def confirms(self, mark: Mark) -> bool:
        """Whether the store still holds the history of this mark."""

    @abstractmethod
    def last(self) -> int:
        """Return the number of the newest committed entry, or 0. `read` may not return that entry yet."""

    @abstractmethod
    def named(self, names: Sequence[str]) -> dict[str, int]:
        """Return the numbers of the experiments of these names, even if `read` does not return them yet."""

    @abstractmethod
    def read(self, after: int, limit: int) -> list[Entry]:
        """Return the next entries in order. No entry appears later before one that was returned.

        Raises HistoryLost if entries after this one may be missing because their removal has begun.
        """

    @abstractmethod
    def left(self, after: int, until: int, limit: int) -> list[Entry]:
        """Return the next entries in order that are left, up to the number `until`. Others may have been removed."""

    @abstractmethod
    def find(self, seqs: Sequence[int]) -> dict[int, Found]:
        """Return the decisions with these numbers. Other numbers are left out."""

    def drawings(self, seqs: Sequence[int]) -> Drawings:
        """Return the decisions with these numbers, without their requests. Faster than `find` for many."""
        return Drawings.of(found.decision for found in self.find(seqs).values())

    @abstractmethod
    def requested(self, requests: Sequence[Requested]) -> dict[Requested, list[Entry]]:
        """Return the decisions made for each of these requests, in order. Requests without decisions are left out."""

    @abstractmethod
    def aliased(self, aliases: Sequence[Aliased]) -> dict[Aliased, list[Entry]]:
        """Return the entries of each of these aliases by position. Aliases without entries are left out."""

    @abstractmethod
    def decisions(self, experiment: int, after: int, limit: int) -> list[Found]:
        """Return a page of an experiment's decisions in order."""

    @abstractmethod
    def outcomes(self, experiment: int, after: int, limit: int) -> list[Entry]:
        """Return a page of an experiment's outcomes in order."""

    @abstractmethod
    def history(self, decision: int, first: int = 0, limit: int = MOST_OUTCOMES) -> list[Entry]:
        """Return the outcomes of one decision from the revision `first` on, oldest first. By default, all of them."""

    @abstractmethod
    def events(self, experiment: int, after: int, limit: int) -> list[Entry]:
        """Return a page of what happened to the experiment itself: creation, changes of arms, closing."""

    @abstractmethod
    def snapshots(self) -> list[Snapshot]:
        """Return the snapshots, newest first."""

    @abstractmethod
    def snapshot_seq(self) -> int:
        """Return the entry of the newest snapshot, or 0. This takes little time."""

    @abstractmethod
    def claim_snapshots(self) -> bool:
        """Claim to be the one connection that saves snapshots, until it is closed. False if another one has claimed."""

    @abstractmethod
    def save(self, snapshot: Snapshot) -> None:
        """Save this snapshot. Keep the one before it, and drop older ones.

        Appends of other connections go on meanwhile, because it is written in small parts.
        """

    @abstractmethod
    def drop_snapshot(self, seq: int) -> None:
        """Drop the snapshot after this entry, if there is one."""

    @abstractmethod
    def drop_snapshots(self, before: int) -> None:
        """Drop the snapshots of earlier entries than this one."""

    @abstractmethod
    def prepare_base(self, state: Snapshot) -> None:
        """Save the state of a base in small parts. It comes into force with an entry of kind BASE, whose `seen` is
        its number. An entry may only say so of a base that was saved before.
        """

    @abstractmethod
    def base(self) -> Base | None:
        """Return the base in force, which is the one with the largest number. None if there is none.

        Raises StoreError if an entry names a base that is not there.
        """

    @abstractmethod
    def base_state(self, seq: int) -> bytes:
        """Return the state of a base, or nothing if it is not there."""

    @abstractmethod
    def begin_removal(self, base: Base) -> None:
        """Note that entries up to this base are removed from now on. Drop earlier bases, and snapshots before it.

        Raises HistoryLost and changes nothing if the store has lost the entry that puts it in force.
        """

    @abstractmethod
    def remove(self, what: Removal) -> Iterator[int]:
        """Remove entries in small transactions. Yields how many were removed by each. Events stay.

        A decision goes together with its outcomes up to `until`. So nobody finds it without them. Each transaction
        looks whether the base `until` is in force and its removal has begun. Raises HistoryLost otherwise, such as
        after a failover that has lost it, because the removed entries would be needed again.
        """

    @abstractmethod
    def forget_requests(self, until: int, before: int = LATEST, now: int = LATEST) -> Iterator[int]:
        """Forget the Idempotency-Keys of decisions up to this number, in small transactions.

        Yields how many were forgotten by each. The store remembers how far it has come.

        A date may be wrong. So it stops at an entry that was made from `before` to `now`, because those after it are
        not older. Only decisions that are dated before `before` lose their keys.
        """

    def scrub(self) -> None:
        """Overwrite the traces of what was removed, as far as the store can. Others may have to wait meanwhile."""
        return

    @abstractmethod
    def add_key(self, key: Key, replaced: Key | None = None, record: Record | None = None) -> None:
        """Save a key, and with it a record. Of `replaced`, which is saved already, the scope and the end change.

        A store may drop keys that were revoked or have expired, but for the MOST_ENDED_KEYS that ended last.
        This and the other methods that read or change keys and records may raise Busy, and `forget_requests` may. A
        server has more to do than to wait for a lock.
        """

    @abstractmethod
    def revoke_key(self, id: str, at: int, record: Record | None = None) -> bool:
        """Revoke a key, and save a record. Returns False if there is no such key, or it is revoked already."""

    @abstractmethod
    def note_uses(self, uses: Mapping[str, int]) -> None:
        """Save when keys were last used, by their ids. An earlier time than the saved one changes nothing."""

    @abstractmethod
    def note(self, records: Sequence[Record]) -> None:
        """Add records to the audit trail. Drop old ones, so that there are at most MOST_CHANGES and MOST_REFUSALS."""

    @abstractmethod
    def records(self, after: int, limit: int, experiment: str | None = None) -> list[Record]:
        """Return a page of the audit trail, oldest first. No record appears later before one that was returned."""

    @abstractmethod
    def keys(self) -> list[Key]:
        """Return all keys, oldest first, including revoked ones."""

    @abstractmethod
    def fill(
        self,
        entries: Iterable[Entry],
        snapshots: Sequence[Snapshot],
        keys: Sequence[Key],
        base: tuple[Base, bytes] | None = None,
        records: Sequence[Record] = (),
    ) -> None:
        """Copy all of these into an empty store, or nothing. Entries keep their numbers, and later numbers follow.

        The base comes with its state. Entries up to it may be missing.
        """

    @abstractmethod
    def size(self) -> int:
        """Return the bytes on disk."""

    def require_durability(self) -> None:
        """Raise StoreUnreachable while the store is set up so that a commit may not survive a crash of its machine."""
        return

    @abstractmethod
    def reader(self) -> "Journal":
        """Open a read-only connection to the same store, for another thread."""

    @abstractmethod
    def check(self) -> list[str]:
        """Return what the store itself finds damaged."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection."""


def entries(journal: Journal, after: int = 0, until: int | None = None) -> Iterator[Entry]:
    """Yield all entries in order, up to `until` if it is given. Waits for entries that are committed but hidden."""
    while page := journal.read(after, PAGE) or _awaited(journal, after, until):
        for entry in page:
            if until is not None and entry.seq > until:
                return
            yield entry
        after = page[-1].seq


def left(journal: Journal, until: int) -> Iterator[Entry]:
    """Yield the entries up to `until` that were not removed, in order."""
    after = 0
    while page := journal.left(after, until, PAGE):
        yield from page
        after = page[-1].seq


def _awaited(journal: Journal, after: int, until: int | None) -> list[Entry]:
    """Wait for entries that are committed, but that an older open transaction hides from `read`."""
    end = time.monotonic() + TRANSACTION_TIMEOUT
    while until is not None and after < min(until, journal.last()):
        if page := journal.read(after, PAGE):
            return page
        if time.monotonic() > end:
            raise StoreUnreachable(f"an open transaction in the store hides the entries after {after}. Try again.")
        time.sleep(POLL_SECONDS)
    return []
