"""The contract of a journal: an append-only list of entries, durable when `append` returns.

Every store keeps to it, and one test suite (tests/test_journal.py) holds all of them to it. What must be unique is the
store's to enforce, so that retries and races have one effect whoever sends them.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar, NamedTuple

from belated.errors import StoreUnreachable
from belated.serve.domain.entries import Entry, Found
from belated.serve.domain.fold import Snapshot

PAGE = 5_000
TRANSACTION_TIMEOUT = 60.0  # seconds to wait for another client's open transaction
POLL_SECONDS = 0.02


class Conflict(Exception):
    """Something unique is there already: nothing was written."""


class Key(NamedTuple):
    """A key to the service. Only the hash of its secret is kept."""

    id: str
    digest: bytes
    scope: str
    experiment: str | None
    created_at: int
    revoked_at: int | None = None


class Journal(ABC):
    """Append-only, ordered by `seq`; any number of processes read and write at once, a connection each.

    Every method may raise StoreUnreachable, and connects again at the next call.
    """

    kind: ClassVar[str]

    @abstractmethod
    def append(self, entries: Sequence[Entry]) -> list[int]:
        """Write all entries in one durable step and return their places, which rise, perhaps with gaps.

        All or nothing: `Conflict` if something unique is there already, or comes twice. Unique are: the name of an
        experiment (its body), (experiment, request, position) of decisions, (decision, revision) of outcomes,
        (experiment, revision) of events. StoreUnreachable if it is not known whether they were written. Any other
        StoreError is for good: nothing may be acknowledged any more, and a file refuses every later append.
        """

    @abstractmethod
    def last(self) -> int:
        """The place of the newest entry that is committed, 0 if there is none; `read` may not be there yet."""

    @abstractmethod
    def named(self, name: str) -> int | None:
        """The place of the experiment of this name, also if `read` is not there yet."""

    @abstractmethod
    def read(self, after: int, limit: int) -> list[Entry]:
        """The next entries in order; what is not among them yet never comes before one that is."""

    @abstractmethod
    def find(self, seqs: Sequence[int]) -> dict[int, Found]:
        """The decisions at these places; other places are left out."""

    @abstractmethod
    def requested(self, experiment: int, request: str) -> list[Entry]:
        """The decisions made for this Idempotency-Key, in order."""

    @abstractmethod
    def decisions(self, experiment: int, after: int, limit: int) -> list[Found]:
        """A page of an experiment's decisions in order."""

    @abstractmethod
    def outcomes(self, experiment: int, after: int, limit: int) -> list[Entry]:
        """A page of an experiment's outcomes in order."""

    @abstractmethod
    def history(self, decision: int) -> list[Entry]:
        """All outcomes of one decision, oldest first."""

    @abstractmethod
    def events(self, experiment: int, after: int, limit: int) -> list[Entry]:
        """A page of what happened to the experiment itself: creation, arms, closing."""

    @abstractmethod
    def snapshots(self) -> list[Snapshot]:
        """Newest first."""

    @abstractmethod
    def save(self, snapshot: Snapshot) -> None:
        """Keep this snapshot and the one before it."""

    @abstractmethod
    def add_key(self, key: Key) -> None:
        """Keep a key."""

    @abstractmethod
    def revoke_key(self, id: str, at: int) -> bool:
        """False if there is no such key, or it is revoked already."""

    @abstractmethod
    def keys(self) -> list[Key]:
        """All keys, oldest first, revoked ones too."""

    @abstractmethod
    def fill(self, entries: Iterable[Entry], snapshots: Sequence[Snapshot], keys: Sequence[Key]) -> None:
        """Copy these into an empty store, entries with the places they have, all or nothing; later places follow."""

    @abstractmethod
    def size(self) -> int:
        """Bytes on disk."""

    @abstractmethod
    def reader(self) -> "Journal":
        """Another connection to the same store, for another thread, that only reads."""

    @abstractmethod
    def check(self) -> list[str]:
        """What the store itself finds damaged."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the store."""


def entries(journal: Journal, after: int = 0, until: int | None = None) -> Iterator[Entry]:
    """All entries in order, a page at a time; `until` the last place wanted, which is waited for if it is there."""
    while page := journal.read(after, PAGE) or _awaited(journal, after, until):
        for entry in page:
            if until is not None and entry.seq > until:
                return
            yield entry
        after = page[-1].seq


def _awaited(journal: Journal, after: int, until: int | None) -> list[Entry]:
    """What is committed, but not in reach of `read` while an older transaction goes on."""
    end = time.monotonic() + TRANSACTION_TIMEOUT
    while until is not None and after < min(until, journal.last()):
        if page := journal.read(after, PAGE):
            return page
        if time.monotonic() > end:
            raise StoreUnreachable(
                f"a transaction goes on in the store that hides what follows entry {after}: try again"
            )
        time.sleep(POLL_SECONDS)
    return []
