"""Quotas: how many decisions may be open, and how many decisions and reports may come in a second.

A caller that has gone mad is refused before it fills the memory and the disk.
"""

import math
from collections import Counter, deque
from collections.abc import Iterable
from typing import Final, NamedTuple, final

from belated.serve.domain.entries import Entry, EntryKind
from belated.serve.domain.refusals import Refusal

MAX_OPEN: Final = 1_000_000
MAX_TOTAL_ARMS: Final = 200_000
LEAST_WEIGHT: Final = 10  # an experiment takes as much memory as ten arms, even if it has fewer
KEY_LIFETIME: Final = 30 * 86_400  # seconds for which an Idempotency-Key gets the same decisions, at least
OPEN_RETRY: Final = 10  # seconds after which some outcomes may have come
ARMS_RETRY: Final = 3600  # seconds after which somebody may have raised the limit


class Quotas(NamedTuple):
    """The quotas of a server. None means no limit."""

    max_open: int = MAX_OPEN  # open decisions of an experiment
    key_rate: float | None = None  # decisions and reports a second, for each key
    experiment_rate: float | None = None  # decisions a second, for each experiment
    key_lifetime: int = KEY_LIFETIME
    max_total_arms: int = MAX_TOTAL_ARMS  # arms of all experiments that ever took part


def exhausted(quota: str, detail: str, retry_after: int) -> Refusal:
    """Refuse a request that would exceed a quota. `quota` is its name in the metrics."""
    refusal = Refusal("too_many", detail, retry_after)
    refusal.quota = quota
    return refusal


def weight_of(n_arms: int) -> int:
    """Return as how many arms an experiment counts."""
    return max(LEAST_WEIGHT, n_arms)


def too_many_arms(total: int, most: int) -> Refusal:
    """Refuse more arms."""
    detail = (
        f"all experiments together would have {total:,} arms, and may have {most:,}. Each counts as at least "
        f"{LEAST_WEIGHT}, and arms that were retired count too. Use fewer experiments, or raise --max-total-arms."
    )
    return exhausted("arms", detail, ARMS_RETRY)


@final
class Bucket:
    """Allows `rate` items a second on average. What was not used in the last second may come at once.

    A large request is admitted whole if the bucket is not empty. Those after it then wait longer.
    """

    __slots__ = ("_at", "_left")

    def __init__(self, now: float, rate: float) -> None:
        self._at, self._left = now, rate

    def take(self, amount: int, now: float, rate: float) -> float:
        """Take this many items and return 0, or take nothing and return the seconds until it is worth trying again."""
        self._left = min(rate, self._left + (now - self._at) * rate)
        self._at = now
        if self._left <= 0:
            return -self._left / rate or 1 / rate
        self._left -= amount
        return 0.0


@final
class Rates:
    """Buckets by name, such as the ids of keys. The caller must not let others choose names without end."""

    def __init__(self, quota: str, option: str) -> None:
        self._quota, self._option, self._buckets = quota, option, dict[str, Bucket]()

    def spend(self, name: str, amount: int, rate: float | None, now: float) -> None:
        """Count this many items, or raise a Refusal if there were too many lately."""
        if rate is None:
            return
        wait = self._buckets.setdefault(name, Bucket(now, rate)).take(amount, now, rate)
        if wait > 0:
            of = f" of {name!r}" if name else ""
            detail = f"the {self._quota}{of} is limited to {rate:g} a second. Ask less often, or raise {self._option}."
            raise exhausted(self._quota, detail, math.ceil(wait))


@final
class Ahead:
    """Decisions that this server has written and not applied yet. An open transaction elsewhere can hold them up."""

    def __init__(self) -> None:
        self._written: deque[tuple[int, int]] = deque()  # number and experiment, in the order of the journal

    def add(self, entries: Iterable[Entry]) -> None:
        """Remember what was written."""
        self._written.extend((one.seq, one.experiment) for one in entries if one.kind is EntryKind.DECIDED)

    def count(self, applied: int) -> Counter[int]:
        """Return how many decisions there are after the entry `applied`, by experiment."""
        while self._written and self._written[0][0] <= applied:
            self._written.popleft()
        return Counter(experiment for _, experiment in self._written)


@final
class Room:
    """How many decisions may still be opened by one group of requests."""

    def __init__(self, max_open: int) -> None:
        self._max_open, self._opened = max_open, dict[str, int]()

    def enter(self, name: str, open_now: int, size: int, own_limit: int | None) -> Refusal | None:
        """Count the decisions of a request, or refuse it. `own_limit` is that of its key, if it has one."""
        total = open_now + self._opened.get(name, 0) + size
        limit = self._max_open if own_limit is None else min(own_limit, self._max_open)
        if total <= limit:
            self._opened[name] = self._opened.get(name, 0) + size
            return None
        whose = "the key's own limit" if own_limit == limit else "--max-open"
        detail = (
            f"the experiment {name!r} would have {total:,} open decisions, and may have {limit:,}. "
            f"Report outcomes, give new experiments a reward_wait, or raise {whose}."
        )
        return exhausted("open decisions", detail, OPEN_RETRY)
