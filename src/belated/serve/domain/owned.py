"""Open decisions by the access key that asked for them, if that key has a limit of its own.

A decision's entry names the key in `parts`. So every server counts the same, also after a restart.
"""

from collections import Counter
from typing import Any, Final, Self, final

from belated.serve.domain.entries import Entry, EntryKind

ENDS: Final = (EntryKind.REPORTED, EntryKind.EXPIRED, EntryKind.REMOVED)  # of an open decision
Rows = list[tuple[int, str, list[int]]]  # an experiment, a key, and its open decisions


def owner_of(decision: Entry) -> str | None:
    """Return the key that a decision counts for, or None if it counts for none."""
    return None if decision.parts is None else decision.parts.decode(errors="replace")


@final
class Owned:
    """The open decisions of keys that have a limit. It depends only on the journal."""

    def __init__(self) -> None:
        self.open = Counter[str]()  # how many, by key, in all experiments
        self._owners: dict[int, dict[int, str]] = {}  # by experiment and decision

    def note(self, entries: list[Entry]) -> None:
        """Count decisions, or outcomes, of one experiment."""
        if entries[0].kind is EntryKind.DECIDED:
            for entry in entries:
                if (owner := owner_of(entry)) is not None:
                    self._owners.setdefault(entry.experiment, {})[entry.seq] = owner
                    self.open[owner] += 1
        elif entries[0].kind in ENDS and (mine := self._owners.get(entries[0].experiment)):
            for entry in entries:
                self._end(mine.pop(entry.decision or 0, None))
            if not mine:
                del self._owners[entries[0].experiment]

    def drop(self, experiment: int) -> None:
        """Count nothing of an experiment any more, because it has failed. Its decisions can not be reported."""
        for owner in self._owners.pop(experiment, {}).values():
            self._end(owner)

    def _end(self, owner: str | None) -> None:
        if owner is not None:
            self.open[owner] -= 1
            if not self.open[owner]:
                del self.open[owner]

    def state(self) -> Rows:
        """Return the whole state as plain data, in an order that depends on nothing else."""
        rows: Rows = []
        for experiment, owners in sorted(self._owners.items()):
            by_owner: dict[str, list[int]] = {}
            for decision, owner in sorted(owners.items()):
                by_owner.setdefault(owner, []).append(decision)
            rows += [(experiment, owner, decisions) for owner, decisions in sorted(by_owner.items())]
        return rows

    @classmethod
    def restore(cls, rows: Any) -> Self:
        """Build it from a state."""
        owned = cls()
        for experiment, owner, decisions in rows:
            owned._owners.setdefault(experiment, {}).update(dict.fromkeys(decisions, owner))
            owned.open[owner] += len(decisions)
        return owned
