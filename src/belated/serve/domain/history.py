"""Notices that a journal has lost entries that were applied already.

A database that is restored from a backup, or fails over to a standby that is behind, loses the commits after some
moment. It keeps all earlier ones. Numbers are committed in any order, so it may keep entry n and lose entry n - 1.

A decision was written after its server had applied all entries up to `seen`. So if the decision is still there, these
entries are too. The witness is the applied decision with the largest `seen`. Only the few entries after that can be
lost without it, so they are counted and summed.

A base is a witness too, because its state was folded from all entries up to its `seen`. Any of these may be removed
after it, so nothing that is kept here speaks of them any longer.
"""

from collections import deque
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, Self, final

from belated.serve.domain.entries import Entry, EntryKind

MOST_RECENT: Final = 50_000  # entries after the witness that are kept one by one
MOST_AT_APPEND: Final = 1_000  # entries that an append counts. More are counted now and then
LOW_BITS: Final = (1 << 24) - 1  # of a number, and of a time in microseconds, so that no sum overflows


class Place(NamedTuple):
    """What identifies an entry, also if its number is given out again after a loss."""

    seq: int = 0
    at: int = 0
    nonce: int = 0  # -1 if it has none


class Mark(NamedTuple):
    """What a store must hold if it has lost nothing of what was applied."""

    newest: Place = Place()
    witness: Place = Place()  # 0 if there is none
    since: int = 0  # everything up to this entry is there if the witness is
    n_after: int = 0  # entries after `since`, up to the newest
    seqs: int = 0  # the sum of the low bits of their numbers
    times: int = 0  # the sum of the low bits of their times
    also: tuple[Place, ...] = ()  # entries that were read but not applied yet, and that new entries build on
    base: int = 0  # the number of a base whose state must be saved, because a new entry puts it in force


@final
class Tail:
    """The end of the history that a state was folded from."""

    def __init__(self) -> None:
        self.newest, self.witness, self.since = Place(), Place(), 0
        self._recent: deque[tuple[int, int]] = deque()  # number and low bits of the time
        self._count = self._seqs = self._times = 0
        self._oldest = 0  # the witness must have seen at least this entry, because older ones are only in the sums

    @classmethod
    def after_base(cls, seq: int) -> Self:
        """Return the tail of a state that was saved as a base. It says nothing of the entries up to there."""
        tail = cls()
        tail.since = seq
        return tail

    def add(self, batch: Sequence[Entry]) -> None:
        """Add the entries that were applied last. Decisions among them have the same `seen`."""
        for entry in batch:
            low = entry.at & LOW_BITS
            self._recent.append((entry.seq, low))
            self._seqs += entry.seq & LOW_BITS
            self._times += low
        self._count += len(batch)
        first, last = batch[0], batch[-1]
        self.newest = place_of(last)
        seen = first.seen or 0
        if first.kind is EntryKind.DECIDED and max(self.since, self._oldest - 1) < seen < first.seq:
            self._begin_after(place_of(first), seen)
        elif first.kind is EntryKind.BASE and self.since <= seen:  # entries up to `seen` may be removed from now on
            self._begin_after(place_of(first), seen if seen >= self._oldest else first.seq)
        while len(self._recent) > MOST_RECENT:
            self._oldest = self._recent.popleft()[0]

    def _begin_after(self, witness: Place, seen: int) -> None:
        """Take a new witness. Only the entries after `seen` are summed from now on."""
        self.witness, self.since, recent = witness, seen, self._recent
        while recent and recent[0][0] <= seen:
            seq, low = recent.popleft()
            self._count -= 1
            self._seqs, self._times = self._seqs - (seq & LOW_BITS), self._times - low
        if self._oldest:  # entries that were only in the sums are all before `seen`
            self._count, self._oldest = len(recent), 0
            self._seqs, self._times = sum(seq & LOW_BITS for seq, _ in recent), sum(low for _, low in recent)

    def mark(self) -> Mark:
        """Return what the store must hold."""
        return Mark(self.newest, self.witness, self.since, self._count, self._seqs, self._times)

    def short_mark(self) -> Mark:
        """Return the same for a check that takes little time. It leaves the sums out if there are many entries."""
        if self._count <= MOST_AT_APPEND:
            return self.mark()
        return Mark(self.newest, self.witness, self.newest.seq)

    def state(self) -> dict[str, Any]:
        """Return all of it as plain data."""
        recent = [list(column) for column in zip(*self._recent, strict=True)]
        return {"mark": self.mark()[:6], "recent": recent, "oldest": self._oldest}

    @classmethod
    def restore(cls, state: dict[str, Any]) -> Self:
        """Restore what `state` has returned."""
        tail = cls()
        newest, witness, tail.since, tail._count, tail._seqs, tail._times = state["mark"]
        tail.newest, tail.witness, tail._oldest = Place(*newest), Place(*witness), state["oldest"]
        tail._recent = deque(zip(*state["recent"], strict=True))
        return tail


def place_of(entry: Entry) -> Place:
    """Return what identifies an entry."""
    return Place(entry.seq, entry.at, -1 if entry.nonce is None else entry.nonce)
