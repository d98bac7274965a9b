"""What may become of outcomes that are made of parts, read off the journal without the code that it judges."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from belated.serve.domain.entries import Entry, EntryKind
from belated.serve.domain.messages import OutcomeReport

NAMES: Final = ("quality", "cost")
KINDS: Final = {
    "partial": {EntryKind.PARTIAL},
    "applied": {EntryKind.REPORTED},
    "late": {EntryKind.LATE},
    "added": {EntryKind.AMENDED},
    "amended": {EntryKind.AMENDED, EntryKind.PARTIAL, EntryKind.REPORTED, EntryKind.LATE},
}  # of the entries that a status may be about


def values_of(entry: Entry | None) -> dict[str, float]:
    """The parts that are known after an outcome. A decision has none, and names its key in `parts`."""
    if entry is None or entry.parts is None or entry.kind is EntryKind.DECIDED:
        return {}
    values: list[Any] = msgspec.msgpack.decode(entry.parts)[0]
    return {name: value for name, value in zip(NAMES, values, strict=True) if value is not None}


def contradicts(one: OutcomeReport, other: OutcomeReport) -> bool:
    """Whether two reports say different things about a decision."""
    if one.parts is None or other.parts is None:
        return one.value != other.value
    return any(one.parts.get(name, value) != value for name, value in other.parts.items())


def says(report: OutcomeReport, entry: Entry) -> bool:
    """Whether an outcome has what a report said."""
    if report.parts is None:
        return entry.value == report.value
    return report.parts.items() <= values_of(entry).items()


def score(values: dict[str, float]) -> float:
    """The outcome by definition: three quarters for the quality, and one for what was not spent."""
    return 0.75 * values["quality"] + 0.25 * (1 - values["cost"])


def fault_of(history: Sequence[Entry], sent: Sequence[OutcomeReport], defaults: dict[str, float]) -> str:
    """What is wrong with the outcomes of a decision, or nothing. `defaults` is empty if there are none."""
    known, is_over, is_whole = dict[str, float](), False, False
    for entry in history:
        now = values_of(entry) if entry.kind is not EntryKind.REMOVED else known
        changed = {name: value for name, value in now.items() if known.get(name) != value}
        if not known.keys() <= now.keys():
            return f"outcome {entry.seq} forgot a part"
        if entry.kind in (EntryKind.EXPIRED, EntryKind.REMOVED):
            if changed or is_over or is_whole:
                return f"outcome {entry.seq} ends a decision that was over, or changes it"
        elif not any(_brings(report, changed, known) for report in sent):
            return f"outcome {entry.seq} was never sent"
        is_over = is_over or entry.kind is EntryKind.EXPIRED
        whole = {**defaults, **now} if is_over else now
        expected = score(whole) if len(whole) == len(NAMES) and entry.kind is not EntryKind.REMOVED else None
        if entry.value != expected:
            return f"outcome {entry.seq} is {entry.value}, and its parts give {expected}"
        if entry.kind not in _kinds_after(expected, is_over=is_over, is_whole=is_whole):
            return f"outcome {entry.seq} is a {entry.kind.name}"
        is_whole, known = is_whole or (expected is not None and entry.kind is not EntryKind.EXPIRED), now
    return ""


def _brings(report: OutcomeReport, changed: dict[str, float], known: dict[str, float]) -> bool:
    """Whether a report may have made this change. What was known changes only by an amendment."""
    is_amended = any(name in known for name in changed)
    return bool(changed) and changed.items() <= (report.parts or {}).items() and (report.amend or not is_amended)


def _kinds_after(value: float | None, *, is_over: bool, is_whole: bool) -> set[EntryKind]:
    """The kinds that an outcome may have. `is_whole` says whether one was reported with all that counts before."""
    ends = {EntryKind.EXPIRED, EntryKind.REMOVED}
    if value is None:
        return {EntryKind.PARTIAL, *ends}
    if is_whole:
        return {EntryKind.AMENDED}
    return {EntryKind.LATE, EntryKind.EXPIRED} if is_over else {EntryKind.REPORTED}
