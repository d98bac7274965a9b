"""The range of the outcomes of a log, and their conversion to losses."""

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from belated.arrays import Floats
from belated.errors import InvalidInput
from belated.replay.decision_log import Log
from belated.scalars import as_float
from belated.validation import truth


@final
@dataclass(frozen=True)
class Outcomes:
    """The range of the outcomes in their own units. They are rewards if `is_reward`, otherwise losses."""

    lowest: float = 0.0
    highest: float = 1.0
    is_reward: bool = False

    def __post_init__(self) -> None:
        for name in ("lowest", "highest"):
            value = as_float(getattr(self, name))
            if not math.isfinite(value):
                raise InvalidInput(f"{name} must be a finite number, got {getattr(self, name)!r}")
            object.__setattr__(self, name, value)
        if not 0 < self.highest - self.lowest < math.inf:
            raise InvalidInput(f"highest must exceed lowest, got lowest={self.lowest!r}, highest={self.highest!r}")
        truth("is_reward", self.is_reward)


def losses_of(log: Log, outcomes: Outcomes) -> Floats:
    """The outcomes as losses in [0, 1], NaN where none has come."""
    values = log.outcomes
    outside = (values < outcomes.lowest) | (values > outcomes.highest)
    if outside.any():
        first = int(outside.argmax())
        raise InvalidInput(
            f"{log.location(first)}: the outcome {values[first]:g} is outside the range from {outcomes.lowest:g} to "
            f"{outcomes.highest:g}. The outcomes of the log run from {np.nanmin(values):g} to {np.nanmax(values):g}. "
            "Set lowest and highest (--lowest, --highest) to the possible range"
        )
    scaled = np.clip((values - outcomes.lowest) / (outcomes.highest - outcomes.lowest), 0.0, 1.0)
    return np.asarray(1.0 - scaled if outcomes.is_reward else scaled)
