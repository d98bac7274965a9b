"""Quotas: how many decisions may be open, and how many decisions and reports may come in a second.

A runaway caller is refused before it fills the memory and the disk.
"""

import math
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, final

from belated.serve.domain.entries import Entry, EntryKind
from belated.serve.domain.experiment import Experiment
from belated.serve.domain.operating import Policy
from belated.serve.domain.owned import owner_of
from belated.serve.domain.refusals import Refusal

MAX_OPEN: Final = 1_000_000
MAX_TOTAL_ARMS: Final = 200_000
LEAST_WEIGHT: Final = 10  # an experiment takes as much memory as ten arms, even if it has fewer
CHANGES: Final = 25  # changes of arms, which take as much memory as the arms. All arms begin new sums after each
KEY_LIFETIME: Final = 30 * 86_400  # seconds for which an Idempotency-Key gets the same decisions, at least
OPEN_RETRY: Final = 10  # seconds after which some outcomes may have come
ARMS_RETRY: Final = 3600  # seconds after which somebody may have raised the limit


class OpenLimit(NamedTuple):
    """How many decisions that an access key has asked for may be open, in all experiments together."""

    key: str  # its id, or that of the first of the keys that have replaced each other
    most: int


class Quotas(NamedTuple):
    """The quotas of a server. None means no limit."""

    max_open: int = MAX_OPEN  # open decisions of an experiment
    key_rate: float | None = None  # decisions and reports a second, for each key
    experiment_rate: float | None = None  # decisions a second, for each experiment
    key_lifetime: int = KEY_LIFETIME
    max_total_arms: int = MAX_TOTAL_ARMS  # arms of all experiments that ever took part, and what their changes take


def exhausted(quota: str, detail: str, retry_after: int) -> Refusal:
    """Refuse a request that would exceed a quota. `quota` is its name in the metrics."""
    refusal = Refusal("too_many", detail, retry_after)
    refusal.quota = quota
    return refusal


def weight_of(n_arms: int, n_changes: int = 0) -> float:
    """Return as how many arms an experiment counts, after so many changes of its arms."""
    return max(LEAST_WEIGHT, n_arms) * max(1.0, n_changes / CHANGES)


def too_many_arms(total: float, most: int) -> Refusal:
    """Refuse more arms."""
    detail = (
        f"all experiments together would have {math.ceil(total):,} arms, and may have {most:,}. Each counts as at "
        f"least {LEAST_WEIGHT}, arms that were retired count too, and all of them again after each {CHANGES} changes. "
        "Use fewer experiments, change arms less often, or raise --max-total-arms."
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
        # number, experiment and key, in the order of the journal
        self._written: deque[tuple[int, int, str | None]] = deque()

    def add(self, entries: Iterable[Entry]) -> None:
        """Remember what was written."""
        made = (one for one in entries if one.kind is EntryKind.DECIDED and not Policy.is_aside(one))
        self._written.extend((one.seq, one.experiment, owner_of(one)) for one in made)

    def count(self, applied: int) -> tuple[Counter[int], Counter[str]]:
        """Return how many decisions there are after the entry `applied`, by experiment and by key."""
        while self._written and self._written[0][0] <= applied:
            self._written.popleft()
        owners = (owner for _, _, owner in self._written if owner is not None)
        return Counter(experiment for _, experiment, _ in self._written), Counter(owners)


@final
class Room:
    """How many decisions may still be opened by one group of requests. `opened` are those not applied yet."""

    def __init__(self, max_open: int, owned: Mapping[str, int], opened: tuple[Counter[int], Counter[str]]) -> None:
        self._max_open, self._owned = max_open, owned
        self._opened, self._opened_by = opened

    def enter(self, experiment: Experiment, size: int, limit: OpenLimit | None) -> Refusal | None:
        """Count the decisions of a request, or refuse it. `limit` is that of its key, if it has one.

        Where one arm is shown to all, there is no limit. The winner of an experiment is shown for ever, and nobody has
        to report its outcomes.
        """
        if experiment.operations.arm is not None:  # shown to all, which takes no memory
            return None
        number = experiment.seq
        total = experiment.shared.n_waiting + self._opened[number] + size
        if total > self._max_open:
            return _too_many(f"the experiment {experiment.name!r}", total, self._max_open, "--max-open")
        if limit is not None:
            own = self._owned.get(limit.key, 0) + self._opened_by[limit.key] + size
            if own > limit.most:
                return _too_many("this access key", own, limit.most, "the key's own limit")
            self._opened_by[limit.key] += size
        self._opened[number] += size
        return None


def _too_many(whose: str, total: int, most: int, limit: str) -> Refusal:
    advice = f"Report outcomes, give new experiments a reward_wait, or raise {limit}."
    return exhausted(
        "open decisions", f"{whose} would have {total:,} open decisions, and may have {most:,}. {advice}", OPEN_RETRY
    )
