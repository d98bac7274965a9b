"""Converts the outcomes of a log to losses."""

from typing import Final

import numpy as np

from belated.arrays import Floats
from belated.errors import InvalidInput
from belated.learner.outcomes import OutcomeRange
from belated.replay.decision_log import Log

LOSSES: Final = OutcomeRange(0, 1, better="lower")  # unless somebody says otherwise


def losses_of(log: Log, outcomes: OutcomeRange) -> Floats:
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
    return np.asarray(1.0 - scaled if outcomes.better == "higher" else scaled)
