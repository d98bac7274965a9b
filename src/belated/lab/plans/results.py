"""What the games of a plan say, as rows, sentences and plain data."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, final

import numpy as np

from belated.lab.plans.games import Ending
from belated.lab.plans.settings import UNIFORM, PlanSettings

QUANTILES: Final = {"25%": 0.25, "50%": 0.5, "90%": 0.9}
STOPPED, RUNNING = "stop and wait", "decisions go on"  # the two ways to use the evidence


@final
@dataclass(frozen=True, eq=False)
class PlanRow:
    """All games of a player, looked at in one of two ways."""

    settings: PlanSettings
    player: str
    way: str  # STOPPED or RUNNING
    endings: Sequence[Ending]

    @property
    def right(self) -> float:
        """The share of games decided for the best option."""
        return sum(one.is_right is True for one in self.endings) / len(self.endings)

    @property
    def wrong(self) -> float:
        """The share of games decided for another one."""
        return sum(one.is_right is False for one in self.endings) / len(self.endings)

    @property
    def undecided(self) -> float:
        """The share of games that were not decided."""
        return sum(one.is_right is None for one in self.endings) / len(self.endings)

    @property
    def lost(self) -> float:
        """The mean of the successes lost against the best option alone, until the verdict or the end."""
        return math.fsum(one.lost for one in self.endings) / len(self.endings)

    def decisions(self, share: float) -> float:
        """The least number of decisions after which this share of the games is decided. Infinite if it never is."""
        found = [math.inf if one.is_right is None else one.decisions for one in self.endings]
        return float(np.quantile(found, share, method="inverted_cdf"))

    def days(self, decisions: float) -> float:
        """How long it takes to know the verdict after so many decisions."""
        extra = self.settings.wait_decisions if self.way == STOPPED else 0
        return self.settings.days(decisions + extra)


@final
@dataclass(frozen=True, eq=False)
class PlanResults:
    """What `lab.plan` returns. The rows of the planned tuning come first."""

    settings: PlanSettings
    rows: tuple[PlanRow, ...]

    def sentences(self) -> list[str]:
        """The answer in words, then what would help if there is none."""
        first = self.rows[0]
        spoken = [_sentence(first)]
        running = next((row for row in self.rows if (row.player, row.way) == (first.player, RUNNING)), first)
        if first.undecided <= 0.5 < running.undecided:
            spoken.append(_sentence(running) + _WORST)
        if first.undecided > 0.5:
            others = [row for row in self.rows if row.player != first.player]
            spoken += [_sentence(row) + _UNIFORM for row in others[:1] if row.undecided < first.undecided]
            spoken.append(_HELP)
        return spoken

    def as_data(self) -> dict[str, Any]:
        """Everything as plain data for JSON. A number that was not reached is None."""
        return {
            "settings": asdict(self.settings),
            "summary": self.sentences(),
            "rows": [_data(one) for one in self.rows],
        }


_HELP = (
    "To decide more of them, look for a larger difference, compare fewer options, or allow more decisions with --most. "
    "More traffic brings these in fewer days."
)
_WORST = " An open decision counts at its worst. So stop, and wait for the last outcomes."
_UNIFORM = " Equal shares show the weaker options more often. So they decide sooner, and lose more on the way."
_WAYS = {STOPPED: ", if you then stop and wait for the last outcomes", RUNNING: ", while decisions go on"}


def _sentence(row: PlanRow) -> str:
    """When half and nine of ten games are decided."""
    who = "equal shares, as in an A/B test" if row.player == UNIFORM else f"the learner ({row.player})"
    way = "" if row.settings.wait_decisions == 0 else _WAYS[row.way]
    half, most = row.decisions(0.5), row.decisions(0.9)
    limit = f"{row.settings.most:,}"
    if half == math.inf:
        share = "none" if row.undecided == 1 else f"only {1 - row.undecided:.0%}"
        taken = days_in_words(row.days(row.settings.most))
        return f"With {who}, {share} of the experiments are decided within {limit} decisions ({taken}){way}."
    reached = f"{rounded(half)} decisions ({days_in_words(row.days(half))})"
    if most == math.inf:
        rest = f"{1 - row.undecided:.0%} within {limit}"
    else:
        rest = f"nine of ten after {rounded(most)} ({days_in_words(row.days(most))})"
    return f"With {who}, half of the experiments are decided after {reached} and {rest}{way}."


def rounded(number: float) -> str:
    """A number with two or three digits, as in 41,200."""
    digits = max(0, math.floor(math.log10(max(1.0, number))) - 2)
    return f"{round(number / 10**digits) * 10**digits:,}"


def days_in_words(days: float) -> str:
    """Such as 8.2 days."""
    number = f"{days:,.0f}" if days >= 10 else f"{days:.2g}"
    return f"{number} day" if number == "1" else f"{number} days"


def _data(row: PlanRow) -> dict[str, Any]:
    reached = {name: row.decisions(share) for name, share in QUANTILES.items()}
    return {
        "player": row.player,
        "way": row.way,
        "decisions": {name: None if value == math.inf else int(value) for name, value in reached.items()},
        "days": {name: None if value == math.inf else row.days(value) for name, value in reached.items()},
        "right": row.right,
        "wrong": row.wrong,
        "undecided": row.undecided,
        "lost": row.lost,
    }
