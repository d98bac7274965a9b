"""The range of a log's outcomes, and the outcomes as losses."""

from typing import Final

import numpy as np

from belated.arrays import Floats
from belated.errors import InvalidInput
from belated.learner.outcomes import OutcomeRange
from belated.replay.decision_log import Log
from belated.replay.declared_range import NAMES

LOSSES: Final = OutcomeRange(0, 1, better="lower")  # unless somebody says otherwise


def range_of(log: Log, given: OutcomeRange | None = None) -> OutcomeRange:
    """The range given, or the one that the log's file declares, or losses from 0 to 1. A contradiction is refused."""
    if given is not None and log.declared is not None and given != log.declared:
        raise InvalidInput(f"the file says: {meaning(log.declared)} So it cannot be read like this: {meaning(given)}")
    return given or log.declared or LOSSES


def chosen_range(log: Log, lowest: float | None, highest: float | None, *, is_reward: bool) -> OutcomeRange:
    """The range that options and the log's file give together. An option that contradicts the file is refused."""
    declared = log.declared
    if declared is None:
        ends = (LOSSES.lowest if lowest is None else lowest, LOSSES.highest if highest is None else highest)
        return OutcomeRange(*ends, better="higher" if is_reward else "lower")
    wrong = [f"--lowest {lowest:g}"] if lowest is not None and lowest != declared.lowest else []
    wrong += [f"--highest {highest:g}"] if highest is not None and highest != declared.highest else []
    wrong += ["--reward"] if is_reward and declared.better == "lower" else []
    if wrong:
        raise InvalidInput(
            f"{' and '.join(wrong)} contradicts the file. Its columns {', '.join(NAMES)} say: {meaning(declared)} "
            "Leave the option out, or correct the columns"
        )
    return declared


def meaning(outcomes: OutcomeRange) -> str:
    """How the outcomes are interpreted, in a sentence."""
    kind = "rewards" if outcomes.better == "higher" else "losses"
    return f"Outcomes are {kind} from {outcomes.lowest:g} to {outcomes.highest:g}, and {outcomes.better} is better."


def losses_of(log: Log, outcomes: OutcomeRange) -> Floats:
    """The outcomes as losses in [0, 1], NaN where none has come."""
    values = log.outcomes
    outside = (values < outcomes.lowest) | (values > outcomes.highest)
    if outside.any():
        first = int(outside.argmax())
        raise InvalidInput(
            f"{log.location(first)}: the outcome {values[first]:g} is outside the range from {outcomes.lowest:g} to "
            f"{outcomes.highest:g}. The outcomes of the log run from {np.nanmin(values):g} to {np.nanmax(values):g}. "
            f"{_fix(log)}"
        )
    scaled = np.clip((values - outcomes.lowest) / (outcomes.highest - outcomes.lowest), 0.0, 1.0)
    return np.asarray(1.0 - scaled if outcomes.better == "higher" else scaled)


def _fix(log: Log) -> str:
    if log.declared is not None:
        return f"Correct the columns {NAMES[0]} and {NAMES[1]}, which declare the range"
    return (
        "Set lowest and highest (--lowest, --highest) to the possible range, and say with --reward if larger outcomes "
        "are better"
    )
