"""What clients sent, and what was acknowledged."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, final

Document = dict[str, Any]
RequestKey = tuple[str, str]  # the experiment and the Idempotency-Key


@final
class Memory:
    """The requests of one client, and the answers that it got."""

    def __init__(self) -> None:
        self.asked: dict[RequestKey, int] = {}  # how many decisions
        self.got: dict[RequestKey, list[Document]] = {}  # the decisions that were acknowledged
        self.sent: dict[str, list[float]] = {}  # by decision: the outcomes, in the order they were sent
        self.told: dict[str, list[float]] = {}  # by decision: the outcomes that were acknowledged, in order
        self.first: Counter[str] = Counter()  # by decision: how often a report was said to be the first

    def keep_decisions(self, key: RequestKey, decisions: list[Document]) -> None:
        """The same request must get the same answer every time."""
        assert self.got.setdefault(key, decisions) == decisions

    def keep_sent(self, id: str, value: float) -> None:
        """An outcome goes out, perhaps once more."""
        if value not in self.sent.setdefault(id, []):
            self.sent[id].append(value)

    def keep_told(self, id: str, value: float, status: str = "") -> None:
        """An outcome was acknowledged, perhaps once more."""
        self.first[id] += status in ("applied", "late")
        if value not in self.told.setdefault(id, []):
            self.told[id].append(value)

    @property
    def decisions(self) -> list[Document]:
        """All that were acknowledged."""
        return [one for answer in self.got.values() for one in answer]


def together(memories: Iterable[Memory]) -> Memory:
    """The memories of several clients as one. Clients that used the same key must have got the same answer."""
    all_of = Memory()
    for one in memories:
        all_of.asked |= one.asked
        for key, decisions in one.got.items():
            all_of.keep_decisions(key, decisions)
        all_of.sent |= one.sent  # two clients report the same decision only with the same value
        all_of.told |= one.told
        all_of.first += one.first
    return all_of


def disagreement(kept: Sequence[float | None], sent: Sequence[float], told: Sequence[float]) -> str:
    """What is wrong with the outcomes that a store kept of a decision. Empty if nothing is."""
    if list(kept) != [value for value in sent if value in kept]:
        return "an outcome is there that was not sent, or twice, or in another order"
    return "" if set(told) <= set(kept) else "an acknowledged outcome is gone"
