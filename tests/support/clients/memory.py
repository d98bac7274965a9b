"""What clients sent, and what was acknowledged."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, final

Document = dict[str, Any]
RequestKey = tuple[str, str]  # the experiment and the Idempotency-Key


@final
class Memory:
    """The requests of one client and their answers."""

    def __init__(self) -> None:
        self.asked: dict[RequestKey, int] = {}  # the number of decisions
        self.got: dict[RequestKey, list[Document]] = {}  # the decisions that were acknowledged
        self.sent: dict[str, list[float]] = {}  # the outcomes sent for each decision, in order
        self.told: dict[str, list[float]] = {}  # the outcomes acknowledged for each decision, in order
        self.first: Counter[str] = Counter()  # how many reports of each decision were called the first

    def keep_decisions(self, key: RequestKey, decisions: list[Document]) -> None:
        """Record an answer. A repeated request must get the same one."""
        assert self.got.setdefault(key, decisions) == decisions

    def keep_sent(self, id: str, value: float) -> None:
        """Record an outcome that is sent, possibly again."""
        if value not in self.sent.setdefault(id, []):
            self.sent[id].append(value)

    def keep_told(self, id: str, value: float, status: str = "") -> None:
        """Record an outcome that was acknowledged, possibly again."""
        self.first[id] += status in ("applied", "late")
        if value not in self.told.setdefault(id, []):
            self.told[id].append(value)

    @property
    def decisions(self) -> list[Document]:
        """All acknowledged decisions."""
        return [one for answer in self.got.values() for one in answer]


def together(memories: Iterable[Memory]) -> Memory:
    """Merge the memories of several clients. Clients that used the same key must have got the same answer."""
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
    """Describe what is wrong with the stored outcomes of a decision. Empty if nothing is."""
    if list(kept) != [value for value in sent if value in kept]:
        return "an outcome is there that was not sent, or twice, or in another order"
    return "" if set(told) <= set(kept) else "an acknowledged outcome is gone"
