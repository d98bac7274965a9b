"""Open decisions, in little memory, so that their reports need no look-up in a store that may be far away."""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from threading import Lock
from typing import Final, NamedTuple, final

import numpy as np

from belated.serve.domain.entries import Drawings, Entry, EntryKind

MOST: Final = 1_000_000  # decisions, of 72 bytes each
PART: Final = 10_000  # decisions in one block
WIDTH: Final = 7  # whole numbers of a decision beside its own


@final
class Block:
    """Decisions one after the other. Rows of decisions that have ended are dropped when they are the larger part."""

    def __init__(self, decisions: Drawings) -> None:
        numbers = np.stack((decisions.experiments, *decisions[2:-1]), axis=1)
        self.seqs, self._numbers = array("q", decisions.seqs.tobytes()), array("q", numbers.tobytes())
        self._probabilities, self._n_ended = array("d", decisions.probabilities.tobytes()), 0

    def __len__(self) -> int:
        return len(self.seqs)

    def _row(self, seq: int) -> int | None:
        row = bisect_left(self.seqs, seq)
        is_there = row < len(self.seqs) and self.seqs[row] == seq and self._numbers[WIDTH * row] > 0
        return row if is_there else None

    def get(self, seq: int) -> Entry | None:
        """Return the decision with this number, without its request."""
        row = self._row(seq)
        if row is None:
            return None
        experiment, at, round, arm, nonce, seen, policy = self._numbers[WIDTH * row : WIDTH * row + WIDTH]
        chance = self._probabilities[row]
        drawn = round, arm, chance, nonce, seen
        return Entry(at, EntryKind.DECIDED, experiment, seq, *drawn, policy=policy or None)

    def end(self, seq: int) -> None:
        """Forget a decision."""
        row = self._row(seq)
        if row is None:
            return
        self._numbers[WIDTH * row] = 0
        self._n_ended += 1
        if 2 * self._n_ended > len(self.seqs):
            self._drop_ended()

    def _drop_ended(self) -> None:
        numbers = np.frombuffer(self._numbers, np.int64).reshape(-1, WIDTH)
        is_open = numbers[:, 0] > 0
        self.seqs = array("q", np.frombuffer(self.seqs, np.int64)[is_open].tobytes())
        self._probabilities = array("d", np.frombuffer(self._probabilities)[is_open].tobytes())
        self._numbers, self._n_ended = array("q", numbers[is_open].tobytes()), 0


class Removed(NamedTuple):
    """Up to which entry decisions may be gone, and a time before which all of these were made."""

    until: int = 0
    at: int = 0  # microseconds since 1970


@final
class RecentDecisions:
    """The newest decisions whose outcome this server has not applied. Any thread may use it.

    Another server may have written the outcome already. Then the store refuses a first one. So whoever relies on this
    must look into the store after a Conflict. If the store is not far away, only the newest ten or twenty thousand are
    kept, because a look-up takes less time than packing a decision.
    """

    def __init__(self, removed: Removed = Removed(), *, is_far: bool = True) -> None:  # noqa: B008  # a constant
        self.removed, self._is_far = removed, is_far
        self._new: dict[int, Entry] = {}  # not in a block yet
        self._before: dict[int, Entry] = {}  # new ones before these, if the store is not far away
        self._blocks: list[Block] = []  # in the order of their decisions
        self._firsts: list[int] = []  # of each block, the first decision it ever had
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._new) + len(self._before) + sum(map(len, self._blocks))

    def take(self, entries: Iterable[Entry]) -> None:
        """Take note of entries that were applied."""
        with self._lock:
            for entry in entries:
                if entry.kind is EntryKind.DECIDED:
                    self._new[entry.seq] = entry
                    if len(self._new) >= PART:
                        self._pack()
                elif entry.kind is EntryKind.BASE:
                    self.removed = max(self.removed, Removed(entry.seen or 0, entry.at))  # the largest is in force
                    self._forget(entry.seen or 0)
                elif entry.decision is not None and self._new.pop(entry.decision, None) is None:
                    self._end(entry.decision)

    def add_older(self, decisions: Drawings) -> bool:
        """Add decisions that are older than all others, and open. Returns False if there is no more room.

        Those that may be removed from the store are left out.
        """
        with self._lock:
            block = Block(decisions.only(decisions.seqs > self.removed.until))
            if len(self) + len(block) > MOST:
                return False
            if block:
                self._blocks.insert(0, block)
                self._firsts.insert(0, block.seqs[0])
            return True

    def _forget(self, until: int) -> None:
        """Forget decisions up to this number, because they may be removed from the store."""
        self._new, self._before = (
            {seq: entry for seq, entry in some.items() if seq > until} for some in (self._new, self._before)
        )
        while self._blocks and self._blocks[0].seqs[-1] <= until:
            self._drop(0)
        if self._blocks:
            first = self._blocks[0]
            for seq in [seq for seq in first.seqs if seq <= until]:
                first.end(seq)
            if not first:
                self._drop(0)

    def _pack(self) -> None:
        """Pack the new decisions into a block. Drops the oldest ones if there are too many."""
        packed, self._new = self._new, {}
        if not self._is_far:
            self._before = packed
            return
        self._blocks.append(Block(Drawings.of(packed.values())))
        self._firsts.append(next(iter(packed)))
        while len(self) > MOST - PART:
            self._drop(0)

    def _end(self, seq: int) -> None:
        """Forget a decision that is not among the new ones."""
        if self._before.pop(seq, None) is None and (index := self._index(seq)) >= 0:
            self._blocks[index].end(seq)
            if not self._blocks[index]:
                self._drop(index)

    def _drop(self, index: int) -> None:
        del self._blocks[index], self._firsts[index]

    def _index(self, seq: int) -> int:
        """Return which block may hold this decision, or -1 if none does."""
        return bisect_right(self._firsts, seq) - 1

    def get(self, seq: int) -> Entry | None:
        """Return the decision with this number, if it is known."""
        with self._lock:
            if (found := self._new.get(seq) or self._before.get(seq)) is not None:
                return found
            index = self._index(seq)
            return self._blocks[index].get(seq) if index >= 0 else None
