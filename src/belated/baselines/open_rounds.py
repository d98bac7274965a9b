"""The bookkeeping of all baselines. It knows the open rounds and checks reports."""

from typing import Any, Generic, NamedTuple, TypeVar, final

from belated.errors import DuplicateReport, UnknownRound
from belated.learner.decisions import Decision, as_round
from belated.validation import as_loss

Note = TypeVar("Note")


class OpenRound(NamedTuple, Generic[Note]):
    """What a baseline keeps of a decision until its feedback comes."""

    arm: int
    probability: float
    note: Note


@final
class OpenRounds(Generic[Note]):
    """Decisions whose feedback has not come. Refuses the same reports as FTRL, with the same messages."""

    def __init__(self) -> None:
        self._round = 0
        self._entries: dict[int, OpenRound[Note]] = {}

    @property
    def round(self) -> int:
        """t, the number of decisions made so far."""
        return self._round

    def __len__(self) -> int:
        return len(self._entries)

    def open(self, arm: int, probability: float, note: Note) -> Decision:
        """Number the next decision and keep it."""
        self._round += 1
        self._entries[self._round] = OpenRound(arm, probability, note)
        return Decision(self._round, arm, probability)

    def close(self, round: Any, loss: Any) -> tuple[float, OpenRound[Note]]:
        """Close a round with its loss in [0, 1]. Returns the loss as a float and the open round."""
        value = as_loss(loss)
        return value, self.take(round)

    def take(self, round: Any) -> OpenRound[Note]:
        """Close a round whose feedback is already checked. Returns the open round."""
        number = as_round(round)
        if not 1 <= number <= self._round:
            raise UnknownRound(number, self._round)
        if number not in self._entries:
            raise DuplicateReport(number)
        return self._entries.pop(number)
