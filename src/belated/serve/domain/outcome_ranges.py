"""Checks outcomes that callers report, and says how a range is declared."""

import json
import math

from belated.errors import InvalidInput
from belated.learner.outcomes import OutcomeRange
from belated.serve.domain.refusals import Refusal


def check_outcome(declared: OutcomeRange, value: float) -> None:
    """Raise a Refusal if an outcome is out of the range of its experiment."""
    try:
        declared.check(declared.word, value)
    except InvalidInput as error:
        raise Refusal("invalid", f"{error}. {how_to_declare(declared, value)}") from None


def check_default(declared: OutcomeRange, default: float) -> None:
    """Raise an InvalidInput if an experiment cannot have this default outcome."""
    try:
        declared.check("default_outcome", default)
    except InvalidInput as error:
        raise InvalidInput(f"{error}. {how_to_declare(declared, default)}") from None


def how_to_declare(declared: OutcomeRange, value: float, part: str | None = None) -> str:
    """Say how an experiment is created that takes this outcome, or this value of a part."""
    if not math.isfinite(value):
        return "Send a finite number."
    ends = min(declared.lowest, value), max(declared.highest, value)
    lowest, highest = (int(end) if end.is_integer() else end for end in ends)
    range = {"lowest": lowest, "highest": highest, "better": declared.better}
    wider = f'"outcome": {json.dumps(range)}' if part is None else f'"parts": {json.dumps({part: range})[:-1]}, ...}}'
    return f"The range is declared when an experiment is created, and stays. Create another with {wider}."
