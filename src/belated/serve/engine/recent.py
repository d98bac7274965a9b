"""Open decisions, in little memory, so that their reports need no look-up in a store that may be far away."""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from operator import attrgetter
from threading import Lock
from typing import Final, NamedTuple, final

from belated.serve.domain.entries import Entry, EntryKind

MOST: Final = 1_000_000  # decisions, of 64 bytes each
PART: Final = 10_000  # decisions in one block
WIDTH: Final = 6  # whole numbers of a decision beside its own


@final
class Block:
    """Decisions one after the other. Rows of decisions that have ended are dropped when they are the larger part."""

    def __init__(self, decisions: Iterable[Entry] = ()) -> None:
        self.seqs, self._probabilities = array("q"), array("d")
        self._numbers, self._n_ended = array("q"), 0
        for decision in decisions:
            self.add(decision)

    def __len__(self) -> int:
        return len(self.seqs)

    def add(self, entry: Entry) -> None:
        """Add a decision that is newer than all others."""
        self.seqs.append(entry.seq)
        self._probabilities.append(entry.probability or 0.0)
        self._numbers.extend(
            (entry.experiment, entry.at, entry.round or 0, entry.arm or 0, entry.nonce or 0, entry.seen or 0)
        )

    def _row(self, seq: int) -> int | None:
        row = bisect_left(self.seqs, seq)
        is_there = row < len(self.seqs) and self.seqs[row] == seq and self._numbers[WIDTH * row] > 0
        return row if is_there else None

    def get(self, seq: int) -> Entry | None:
        """Return the decision with this number, without its request."""
        row = self._row(seq)
        if row is None:
            return None
        experiment, at, round, arm, nonce, seen = self._numbers[WIDTH * row : WIDTH * row + WIDTH]
        chance = self._probabilities[row]
        return Entry(at, EntryKind.DECIDED, experiment, seq, round, arm, chance, nonce, seen)

    def end(self, seq: int) -> None:
        """Forget a decision."""
        row = self._row(seq)
        if row is None:
            return
        self._numbers[WIDTH * row] = 0
        self._n_ended += 1
        if 2 * self._n_ended > len(self.seqs):
            kept = Block(one for one in map(self.get, self.seqs) if one is not None)
            self.seqs, self._probabilities = kept.seqs, kept._probabilities
            self._numbers, self._n_ended = kept._numbers, 0


class Removed(NamedTuple):
    """Up to which entry decisions may be gone, and a time before which all of these were made."""

    until: int = 0
    at: int = 0  # microseconds since 1970


@final
class RecentDecisions:
    """The newest decisions whose outcome this server has not applied. Any thread may use it.

    Another server may have written the outcome already. Then the store refuses a first one. So whoever relies on this
    must look into the store after a Conflict.
    """

    def __init__(self, removed: Removed = Removed()) -> None:  # noqa: B008  # a constant
        self.removed = removed
        self._blocks: list[Block] = []  # in the order of their decisions
        self._lock = Lock()

    def __len__(self) -> int:
        return sum(map(len, self._blocks))

    def take(self, entries: Iterable[Entry]) -> None:
        """Take note of entries that were applied."""
        with self._lock:
            for entry in entries:
                if entry.kind is EntryKind.DECIDED:
                    self._newest().add(entry)
                elif entry.kind is EntryKind.BASE:
                    self.removed = Removed(entry.seen or 0, entry.at)
                    self._forget(entry.seen or 0)
                elif entry.decision is not None and (block := self._of(entry.decision)) is not None:
                    block.end(entry.decision)
                    if not block:
                        self._blocks.remove(block)

    def add_older(self, decisions: Iterable[Entry]) -> bool:
        """Add decisions that are older than all others, and open. Returns False if there is no more room.

        Those that may be removed from the store are left out.
        """
        with self._lock:
            block = Block(sorted((one for one in decisions if one.seq > self.removed.until), key=attrgetter("seq")))
            if len(self) + len(block) > MOST:
                return False
            if block:
                self._blocks.insert(0, block)
            return True

    def _forget(self, until: int) -> None:
        """Forget decisions up to this number, because they may be removed from the store."""
        kept = [block for block in self._blocks if block.seqs[-1] > until]
        if kept and kept[0].seqs[0] <= until:
            kept[0] = Block(one for seq in kept[0].seqs if seq > until and (one := kept[0].get(seq)) is not None)
        self._blocks = [block for block in kept if block]

    def _newest(self) -> Block:
        """Return the block for new decisions. Drops the oldest ones if there are too many."""
        if not self._blocks or len(self._blocks[-1]) >= PART:
            self._blocks.append(Block())
            while len(self) > MOST - PART:
                del self._blocks[0]
        return self._blocks[-1]

    def _of(self, seq: int) -> Block | None:
        """Return the block that holds this decision, if one does."""
        index = bisect_right(self._blocks, seq, key=lambda block: block.seqs[0]) - 1
        return self._blocks[index] if index >= 0 else None

    def get(self, seq: int) -> Entry | None:
        """Return the decision with this number, if it is known."""
        with self._lock:
            block = self._of(seq)
            return None if block is None else block.get(seq)
