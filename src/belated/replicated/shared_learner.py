"""A learner whose decisions are drawn in many places, each from a copy that has folded the events up to some place.

All copies fold the same numbered events in the same order, and so agree to the last bit. What a copy had not folded
when it drew was outstanding for its decision: lag is delay (docs/theory/certificate.md, "Replicas").
"""

from array import array
from bisect import bisect_left
from collections.abc import Sequence
from typing import Any, Self, final

import numpy as np

from belated.errors import InvalidInput
from belated.learner.ftrl import FTRL, Decision
from belated.replicated.lag import Drawn, Lag
from belated.tunings import Tuning


@final
class Places:
    """The rounds that wait, by the places of their decisions; 16 bytes each."""

    def __init__(self, seqs: bytes = b"", rounds: bytes = b"") -> None:
        self._seqs, self._rounds, self._gone = _array(seqs), _array(rounds), 0

    def __len__(self) -> int:
        return len(self._seqs) - self._gone

    def add(self, seqs: Sequence[int], first: int) -> None:
        """Decisions at these places have the rounds from `first` on."""
        self._seqs.extend(seqs)
        self._rounds.extend(range(first, first + len(seqs)))

    def take(self, seq: int) -> int:
        """The round of the decision at this place, which waits no longer; 0 if it did not."""
        found = bisect_left(self._seqs, seq)
        if found == len(self._seqs) or self._seqs[found] != seq:
            return 0
        round, self._rounds[found] = self._rounds[found], 0
        if round:
            self._gone += 1
            if self._gone > 64 and 2 * self._gone > len(self._seqs):
                self._seqs, self._rounds = map(_array, self.state())
                self._gone = 0
        return round

    def state(self) -> tuple[bytes, bytes]:
        """Those that wait."""
        seqs, rounds = np.array(self._seqs, np.int64), np.array(self._rounds, np.int64)
        return seqs[rounds > 0].tobytes(), rounds[rounds > 0].tobytes()


def _array(numbers: bytes) -> "array[int]":
    return array("q", numbers)


@final
class SharedLearner:
    """FTRL over numbered events; `seen` of a decision is the last event that its copy had folded when it drew."""

    def __init__(self, learner: FTRL, last: int) -> None:
        if learner.refresh != 1:
            raise InvalidInput(f"a shared learner solves for every draw: refresh must be 1, got {learner.refresh}")
        self.learner, self.last = learner, last  # the place of the newest event
        self._solved, self._moved = last, 0  # the events that the distribution in force knows; the first after them
        self._seen = -1  # of the decisions entered last, while nothing else has happened
        self._lag: Lag | None = None  # and their lag, if they had one
        self._places = Places()

    def enter(
        self,
        seqs: Sequence[int],
        seen: int,
        arms: Sequence[int],
        probabilities: Sequence[float],
        drawn: Drawn | None,
        bold_advantages: Sequence[float] = (),
    ) -> None:
        """Decisions drawn together, with the bold_advantages of their copy's outlook if its tuning has a shadow.

        Half of them and then the other half makes no difference.
        """
        first = self.learner.round + 1
        if self.is_more(seen):
            self.learner.record_batch(arms, probabilities, lag=self._lag, bold_advantages=bold_advantages, is_more=True)
        elif seen >= self.last:  # nothing has happened since: as if it had been drawn here and now
            self._begin(seqs[0], seen, None)
            if len(seqs) == 1:
                self.learner.record(arms[0], probabilities[0])  # the same, at a third of the cost
            else:
                self.learner.record_batch(arms, probabilities)
        elif self.is_overtaken(seen):
            if drawn is None:
                raise InvalidInput(f"the decision at place {seqs[0]} was drawn at place {seen}, from what is not known")
            self._begin(seqs[0], seen, self.learner.overtake(drawn))
            self.learner.record_batch(arms, probabilities, lag=self._lag, bold_advantages=bold_advantages)
        else:  # drawn from the distribution in force
            self._seen, self._lag = seen, None
            self.learner.record_batch(arms, probabilities, is_more=True)
        self._places.add(seqs, first)
        self.last = seqs[-1]

    def is_overtaken(self, seen: int) -> bool:
        """Whether decisions that have seen no more were drawn from an older state: then it must be known."""
        if self.is_more(seen):
            return self._lag is not None
        return seen < self.last and not self._solved <= seen < self._moved

    def is_more(self, seen: int | None) -> bool:
        """Whether decisions that have seen so much were drawn together with the last ones."""
        return seen == self._seen

    def _begin(self, seq: int, seen: int, lag: Lag | None) -> None:
        self._solved, self._moved, self._seen, self._lag = self.last, seq, seen, lag

    def _happened(self, seq: int) -> None:
        self.last, self._seen, self._lag = seq, -1, None

    def _take(self, seq: int, decision: int) -> int:
        round = self._places.take(decision)
        if not round:
            raise InvalidInput(f"the decision at place {decision} does not wait for feedback")
        self._happened(seq)
        return round

    def tell(self, seq: int, decision: int, loss: float) -> None:
        """The loss of the decision at this place has come."""
        self.learner.tell(self._take(seq, decision), loss)

    def give_up(self, seq: int, decision: int) -> None:
        """It will not come."""
        self.learner.give_up(self._take(seq, decision))

    def amend(self, seq: int, arm: int, probability: float, old: float | None, new: float) -> None:
        """The loss of a decision that does not wait any more has been another; None: it had been closed."""
        self._happened(seq)
        self.learner.amend(Decision(1, arm, probability), old, new, is_checked=False)

    def state(self) -> dict[str, Any]:
        """All of it, as plain data."""
        return {
            "learner": self.learner.snapshot(),
            "places": self._places.state(),
            "at": (self.last, self._solved, self._moved, self._seen),
            "lag": self._lag,
        }

    @classmethod
    def restore(cls, state: dict[str, Any], tuning: Tuning | None = None) -> Self:
        """The same, to the last bit; `tuning` as for a learner."""
        shared = cls(FTRL.restore(state["learner"], tuning), 0)
        shared._places = Places(*state["places"])
        shared.last, shared._solved, shared._moved, shared._seen = state["at"]
        shared._lag = None if state["lag"] is None else Lag(*state["lag"])
        return shared
