"""Numbers that several workers of one server share, in memory that they inherit from their supervisor.

Each worker has a place of its own, so nobody waits for a lock. What a worker has written survives its end, and its
replacement counts on from there. So a sum over all workers never falls.
"""

import mmap
from typing import Final, NamedTuple, final

HALF: Final = 2**19  # bytes for the numbers of a worker. Twice, so that a reader finds one half whole
_LENGTH: Final = 4  # bytes


@final
class Boards:
    """The places of all workers. Make them before the workers are forked."""

    def __init__(self, count: int) -> None:
        self.count, self._memory = count, mmap.mmap(-1, count * (1 + 2 * HALF))

    def _begin(self, worker: int) -> int:
        return worker * (1 + 2 * HALF)

    def read(self, worker: int) -> bytes:
        """Return what a worker wrote last, or nothing."""
        begin = self._begin(worker)
        start = begin + 1 + HALF * self._memory[begin]
        length = int.from_bytes(self._memory[start : start + _LENGTH], "little")
        return self._memory[start + _LENGTH : start + _LENGTH + length]

    def write(self, worker: int, content: bytes) -> None:
        """Replace what a worker has written. If it is killed meanwhile, the old content stays."""
        if len(content) > HALF - _LENGTH:
            raise ValueError(
                f"a worker's numbers take {len(content):,} bytes, more than the {HALF - _LENGTH:,} there are"
            )
        begin = self._begin(worker)
        other = 1 - self._memory[begin]
        start = begin + 1 + HALF * other
        self._memory[start : start + _LENGTH + len(content)] = len(content).to_bytes(_LENGTH, "little") + content
        self._memory[begin] = other


class Board(NamedTuple):
    """The place of one worker."""

    boards: Boards
    worker: int

    def read_own(self) -> bytes:
        """Return what this worker, or the one before it in its place, wrote last."""
        return self.boards.read(self.worker)

    def read_others(self) -> list[bytes]:
        """Return what the other workers wrote last."""
        return [self.boards.read(one) for one in range(self.boards.count) if one != self.worker]

    def write(self, content: bytes) -> None:
        """Replace what this worker has written."""
        self.boards.write(self.worker, content)
