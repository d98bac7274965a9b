"""The bookkeeping every baseline shares: which rounds are open, and what makes a report acceptable."""

import math
from typing import Any, Generic, NamedTuple, TypeVar, final

from belated.errors import DuplicateReport, InvalidInput, UnknownRound
from belated.learners import Decision
from belated.validation import as_float, whole_number

Note = TypeVar("Note")


class Entry(NamedTuple, Generic[Note]):
    """What is kept of a decision until its feedback comes."""

    arm: int
    probability: float
    note: Note


@final
class OpenRounds(Generic[Note]):
    """Decisions whose feedback has not come; it refuses the same reports, with the same words, as FTRL."""

    def __init__(self) -> None:
        self._round = 0
        self._entries: dict[int, Entry[Note]] = {}

    @property
    def round(self) -> int:
        """t: decisions made so far."""
        return self._round

    def __len__(self) -> int:
        return len(self._entries)

    def open(self, arm: int, probability: float, note: Note) -> Decision:
        """Number the next decision and keep it."""
        self._round += 1
        self._entries[self._round] = Entry(arm, probability, note)
        return Decision(self._round, arm, probability)

    def close(self, round: Any, loss: Any) -> tuple[float, Entry[Note]]:
        """Close a round with its loss in [0, 1]: the loss as a float, and what was kept."""
        value = as_loss(loss)
        return value, self.take(round)

    def take(self, round: Any) -> Entry[Note]:
        """Close a round whose feedback has been checked: what was kept."""
        if type(round) is not int:
            round = whole_number("round (a decision's .round)", round, 1, math.inf)
        asked = self._round
        if not 1 <= round <= asked:
            raise UnknownRound(f"round {round} was never asked; rounds so far: {f'1 to {asked}' if asked else 'none'}")
        if round not in self._entries:
            raise DuplicateReport(f"round {round} has been reported already; a round takes one report")
        return self._entries.pop(round)


def as_loss(loss: Any) -> float:
    """A loss from 0 to 1."""
    value = as_float(loss)
    if not 0.0 <= value <= 1.0:
        hint = "" if math.isnan(value) else "; rescale it, or use 1 - reward"
        raise InvalidInput(f"loss must be a number from 0 to 1, got {loss!r}{hint}")
    return value
