"""The newest open decisions, so that an early report needs no look-up in a store that may be far away."""

from collections.abc import Iterable
from typing import Final, final

from belated.serve.domain.entries import Entry, EntryKind

MOST: Final = 50_000  # some 15 MB


@final
class RecentDecisions:
    """Decisions that this server has applied, and whose outcome it has not.

    Another server may have written the outcome already. Then the store refuses a first one. So whoever relies on this
    must look into the store after a Conflict.
    """

    def __init__(self) -> None:
        self._newer: dict[int, Entry] = {}
        self._older: dict[int, Entry] = {}

    def take(self, entries: Iterable[Entry]) -> None:
        """Take note of entries that were applied."""
        for entry in entries:
            if entry.kind is EntryKind.DECIDED:
                self._newer[entry.seq] = entry
                if len(self._newer) == MOST // 2:
                    self._newer, self._older = {}, self._newer
            elif entry.decision is not None and self._newer.pop(entry.decision, None) is None:
                self._older.pop(entry.decision, None)

    def get(self, seq: int) -> Entry | None:
        """Return the decision with this number, if it is known."""
        return self._newer.get(seq) or self._older.get(seq)
