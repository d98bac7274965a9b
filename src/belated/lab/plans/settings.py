"""The experiment that is planned."""

import math
from dataclasses import dataclass
from typing import Any, Final, final

from belated.errors import InvalidInput
from belated.scalars import as_float
from belated.suggestions import unknown_name
from belated.tunings import AdaptiveExp3, Advanced, Means, Shadow, Simple, Tsallis, Tuning
from belated.validation import positive_number, whole_number

DAY: Final = 86_400.0  # seconds
UNIFORM: Final = "uniform"
TUNINGS: Final[dict[str, Tuning | None]] = {
    "means": Means(),
    "shadow": Shadow(),
    "zs20-simple": Simple(),
    "zs20-advanced": Advanced(),
    "tsallis-inf": Tsallis(),
    "exp3-adaptive": AdaptiveExp3(),
    UNIFORM: None,  # every option alike, as in an ordinary A/B test
}


@final
@dataclass(frozen=True)
class PlanSettings:
    """One option succeeds with base_rate + difference, and the others with base_rate.

    A success is known `delay` seconds after its decision. A failure is known then too, or after `wait` seconds if a
    wait is given. Times are in seconds.

    >>> PlanSettings(3, base_rate=0.1, difference=0.02, per_day=5000, delay=2 * DAY).delay_decisions
    10000
    """

    options: int
    base_rate: float
    difference: float
    per_day: float  # decisions
    delay: float = 0.0
    wait: float | None = None
    confidence: float = 0.95
    most: int = 200_000  # decisions of a game
    games: int = 50
    seed: int = 0
    tuning: str = "means"

    def __post_init__(self) -> None:
        whole_number("options", self.options, 2)
        _check_rates(self.base_rate, self.difference)
        positive_number("per_day", self.per_day)
        _check_times(self.delay, self.wait)
        if not 0.5 <= as_float(self.confidence) < 1:
            raise InvalidInput(f"confidence must be from 0.5 to below 1, such as 0.95, got {self.confidence!r}")
        whole_number("most", self.most, 1)
        whole_number("games", self.games, 1)
        whole_number("seed", self.seed, 0)
        if self.tuning not in TUNINGS:
            raise unknown_name("tuning", str(self.tuning), TUNINGS)
        if self.wait_decisions >= self.most:
            raise InvalidInput(
                f"most = {self.most:,} decisions end before the first failure is known, "
                f"which takes {self.wait_decisions:,} more decisions. Raise most, or shorten the delay or the wait"
            )

    @property
    def delay_decisions(self) -> int:
        """Decisions made between a decision and its success."""
        return round(self.delay / DAY * self.per_day)

    @property
    def wait_decisions(self) -> int:
        """Decisions made between a decision and its failure."""
        return round((self.delay if self.wait is None else self.wait) / DAY * self.per_day)

    @property
    def players(self) -> tuple[str, ...]:
        """The names of the tunings that play."""
        return tuple(dict.fromkeys((self.tuning, UNIFORM)))

    def days(self, decisions: float) -> float:
        """How long so many decisions take."""
        return decisions / self.per_day


def _check_rates(base_rate: Any, difference: Any) -> None:
    if not 0 <= as_float(base_rate) < 1:
        raise InvalidInput(f"base_rate must be from 0 to below 1, such as 0.1 for 10%, got {base_rate!r}")
    if not as_float(difference) > 0:
        raise InvalidInput(
            f"difference must be above 0, such as 0.02 for 2 percentage points, got {difference!r}. "
            "Give the smallest difference that is worth finding"
        )
    if not base_rate + difference <= 1:
        raise InvalidInput(
            f"base_rate + difference must be at most 1, got {base_rate!r} + {difference!r}. "
            "Both are shares, so write 0.1 for 10%"
        )


def _check_times(delay: Any, wait: Any) -> None:
    for name, value in (("delay", delay), ("wait", wait)):
        if value is not None and not 0 <= as_float(value) < math.inf:
            raise InvalidInput(f"{name} must be 0 seconds or more, got {value!r}")
    if wait is not None and wait < delay:
        raise InvalidInput(
            f"wait must be at least the delay, got a wait of {wait:g} s and a delay of {delay:g} s. "
            "A success that comes after the wait counts as a failure, so leave it out of the base rate"
        )
