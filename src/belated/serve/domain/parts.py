"""Outcomes that are made of parts, such as quality, cost and latency.

Each part has a range, a better end and a weight. The outcome of a decision is the score of its parts, from 0 to 1. A
decision stays open until all its parts have come, because what is not known must not count.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Final, Literal, NamedTuple

import msgspec
from msgspec import Meta

from belated.errors import InvalidInput, StoreError
from belated.learner.outcomes import OutcomeRange
from belated.serve.domain.entries import Entry, EntryKind, Found
from belated.serve.domain.outcome_ranges import how_to_declare
from belated.serve.domain.refusals import Refusal

MAX_PARTS: Final = 20
MAX_PART_NAME: Final = 100
NEVER: Final = -1
Values = list[float | None]  # of the parts as they are declared, None for one that has not come


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A part of an outcome: its range, which end is better, and how much it counts."""

    lowest: float = 0.0
    highest: float = 1.0
    better: Literal["higher", "lower"] = "higher"
    weight: Annotated[float, Meta(gt=0, le=1e6, description="How much it counts, against the other weights.")] = 1.0
    default: Annotated[float, Meta(description="What it counts as if it has not come when the wait ends.")] | None = (
        None
    )

    def build(self) -> OutcomeRange:
        """The range itself, or an InvalidInput."""
        return OutcomeRange(self.lowest, self.highest, self.better)


Parts = Annotated[
    dict[str, Part],
    Meta(
        min_length=1,
        max_length=MAX_PARTS,
        description="The parts of an outcome, by name. The outcome is their weighted mean, from 0 for the worst end of "
        "all parts to 1 for the best.",
    ),
]
PartValues = Annotated[
    dict[str, float],
    Meta(min_length=1, max_length=MAX_PARTS, description="Values of parts, in their own units. Some may come later."),
]


class Composed(NamedTuple):
    """What is known of the parts of a decision after an outcome, which keeps it in MessagePack."""

    values: Values
    before: Values  # what was known before this outcome
    is_over: bool  # whether the wait has ended
    amended: list[int]  # the revision of the last amendment of each part, or NEVER


_COMPOSED: Final = msgspec.msgpack.Decoder(Composed)


def composed_of(outcome: Entry | None, n_parts: int) -> Composed:
    """Return what is known of the parts of a decision. `outcome` is its newest one."""
    if outcome is None or outcome.parts is None:
        return Composed([None] * n_parts, [None] * n_parts, False, [NEVER] * n_parts)  # noqa: FBT003
    try:
        return _COMPOSED.decode(outcome.parts)
    except msgspec.DecodeError as error:
        message = f"entry {outcome.seq} was written by another release. Its field `parts` cannot be read"
        raise StoreError(f"{message} ({error}).") from error


def is_open(found: Found) -> bool:
    """Whether a decision waits for its outcome, or for parts of it."""
    outcome = found.outcome
    return outcome is None or (outcome.kind is EntryKind.PARTIAL and not composed_of(outcome, 0).is_over)


def encoded(composed: Composed) -> bytes:
    """Return what an outcome keeps."""
    return msgspec.msgpack.encode(composed)


def check_parts(parts: Mapping[str, Part], *, has_wait: bool) -> None:
    """Check what the types cannot. Raises InvalidInput."""
    for name, part in parts.items():
        if not 1 <= len(name) <= MAX_PART_NAME or not name.isprintable() or name != name.strip():
            rule = f"1 to {MAX_PART_NAME} printable characters, without spaces around them"
            raise InvalidInput(f"the name of a part must be {rule}, got {name!r:.120}")
        try:
            within = part.build()
            if part.default is not None:
                within.check("default", part.default)
        except InvalidInput as error:
            raise InvalidInput(f"parts.{name}: {error}") from None
    without = [name for name, part in parts.items() if part.default is None]
    if not without and not has_wait:
        raise InvalidInput("the default of a part is used when reward_wait ends. Give a reward_wait too.")
    if 0 < len(without) < len(parts):
        raise InvalidInput(
            f"the part {without[0]!r} has no default, and others have one. Give each part a default, or none of them. "
            "Otherwise a decision could end with half an outcome."
        )


def score(parts: Mapping[str, Part], values: Sequence[float]) -> float:
    """Return the outcome that all parts add up to, from 0 to 1."""
    gains = ((1.0 - part.build().loss(value), part.weight) for part, value in zip(parts.values(), values, strict=True))
    return min(1.0, sum(gain * weight for gain, weight in gains) / sum(part.weight for part in parts.values()))


def with_defaults(parts: Mapping[str, Part], values: Values) -> Values:
    """Return the values with the defaults in place of those that have not come."""
    return [part.default if value is None else value for part, value in zip(parts.values(), values, strict=True)]


def score_of(parts: Mapping[str, Part], composed: Composed) -> float | None:
    """Return the outcome of a decision, or None while parts of it are missing. After the wait, defaults count."""
    values = with_defaults(parts, composed.values) if composed.is_over else composed.values
    known = [value for value in values if value is not None]
    return score(parts, known) if len(known) == len(values) else None


def assumed(parts: Mapping[str, Part]) -> float | None:
    """Return the outcome of a decision of which nothing is reported until its wait ends, or None without defaults."""
    return score_of(parts, composed_of(None, len(parts))._replace(is_over=True))


def ended(parts: Mapping[str, Part], outcome: Entry | None) -> tuple[float | None, bytes]:
    """Return the outcome of a decision whose wait ends, and what it keeps. `outcome` is the newest so far."""
    known = composed_of(outcome, len(parts))
    over = known._replace(before=known.values, is_over=True)
    return score_of(parts, over), encoded(over)


def checked(name: str, parts: Mapping[str, Part], told: Mapping[str, float]) -> None:
    """Check the parts of a report. Raises a Refusal."""
    for part, value in told.items():
        if part not in parts:
            raise Refusal("invalid", f"{name!r} has no part {part!r:.120}. Its parts are {', '.join(parts)}.")
        within = parts[part].build()
        try:
            within.check(part, value)
        except InvalidInput as error:
            raise Refusal("invalid", f"{error}. {how_to_declare(within, value, part)}") from None


def joined(parts: Mapping[str, Part], known: Composed, told: Mapping[str, float], revision: int) -> Composed:
    """Return what is known after a report, which makes this revision of the outcome."""
    values = [told.get(name, value) for name, value in zip(parts, known.values, strict=True)]
    amended = [
        last if old is None or value == old else revision
        for last, old, value in zip(known.amended, known.values, values, strict=True)
    ]
    return Composed([None if one is None else one + 0.0 for one in values], known.values, known.is_over, amended)


def by_name(parts: Mapping[str, Part], values: Values) -> dict[str, float]:
    """Return the parts that have come, by name."""
    return {name: value for name, value in zip(parts, values, strict=True) if value is not None}


class PartSums(msgspec.Struct):
    """How often each part was reported, and the sum, by arm. Defaults and decisions that teach nothing are left out."""

    counts: list[list[int]]
    totals: list[list[float]]

    @classmethod
    def new(cls, n_arms: int, n_parts: int) -> "PartSums":
        """Return sums of nothing."""
        return cls([[0] * n_parts for _ in range(n_arms)], [[0.0] * n_parts for _ in range(n_arms)])

    def copy(self) -> "PartSums":
        """Return a copy."""
        return PartSums(list(map(list, self.counts)), list(map(list, self.totals)))

    def add_arm(self) -> None:
        """Add an arm."""
        n_parts = len(self.counts[0])
        self.counts.append([0] * n_parts)
        self.totals.append([0.0] * n_parts)

    def report(self, outcome: Entry) -> None:
        """Add the parts that an outcome has brought or replaced."""
        arm = outcome.arm or 0
        known = composed_of(outcome, len(self.counts[arm]))
        for index, (value, old) in enumerate(zip(known.values, known.before, strict=True)):
            if value is not None and value != old:
                self.counts[arm][index] += old is None
                self.totals[arm][index] += value - (old or 0.0)
