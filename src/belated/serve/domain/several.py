"""Several outcomes of one decision, and how they add up to one."""

import math
from typing import Final, Literal, NamedTuple

import msgspec

from belated.errors import InvalidInput, StoreError
from belated.learner.outcomes import OutcomeRange
from belated.serve.domain.entries import Entry

Several = Literal["first", "last", "sum", "mean"]
ROUNDING: Final = 1e-12  # the relative error of a sum


class Parts(NamedTuple):
    """One report of a decision, and what all of its reports so far add up to. An outcome keeps it in MessagePack."""

    value: float  # of this report alone
    place: int  # of this report among those of its decision, from 1. An amendment keeps it
    reports: int  # of the decision so far
    total: float  # of the first or the last value, or the sum of all


_PARTS: Final = msgspec.msgpack.Decoder(Parts)


def parts_of(outcome: Entry | None) -> Parts | None:
    """Return the parts of an outcome, or None if nobody has reported it."""
    if outcome is None or outcome.parts is None:
        return None
    try:
        return _PARTS.decode(outcome.parts)
    except msgspec.DecodeError as error:
        message = f"entry {outcome.seq} was written by another release. Its field `parts` cannot be read"
        raise StoreError(f"{message} ({error}).") from error


def added(rule: Several, before: Parts | None, value: float) -> Parts:
    """Return the parts after one more report. `before` is None for the first one."""
    if before is None:
        return Parts(value, 1, 1, value)
    place = before.reports + 1
    total = {"first": before.total, "last": value}.get(rule, before.total + value)
    return Parts(value, place, place, total)


def replaced(rule: Several, before: Parts, own: Parts, value: float) -> Parts:
    """Return the parts after an amendment of the report `own`. `before` are those of the newest outcome."""
    is_it = {"first": own.place == 1, "last": own.place == before.reports}.get(rule)
    total = before.total - own.value + value if is_it is None else value if is_it else before.total
    return Parts(value, own.place, before.reports, total)


def outcome_of(rule: Several, parts: Parts, declared: OutcomeRange) -> float:
    """Return the outcome that reports add up to, or raise InvalidInput. A rounding error never leaves the range."""
    if rule != "sum":
        declared.check(declared.word, parts.value)
        value = parts.total / parts.reports if rule == "mean" else parts.total
        return min(max(value, declared.lowest), declared.highest)
    scale = max(abs(declared.lowest), abs(declared.highest))
    for bound in (declared.lowest, declared.highest):  # a bound may be 0, near which no relative error is small
        if math.isclose(parts.total, bound, rel_tol=0, abs_tol=ROUNDING * scale):
            return bound
    if parts.reports == 1:
        declared.check(declared.word, parts.total)
    elif not declared.lowest <= parts.total <= declared.highest:
        where = f"beyond the declared range from {declared.lowest!r} to {declared.highest!r}"
        raise InvalidInput(
            f"with {parts.value!r} the outcomes of this decision add up to {parts.total!r}, {where}. It was not "
            "counted. Declare a range for the sum of all outcomes of a decision when you create an experiment"
        )
    return parts.total
