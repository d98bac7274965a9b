"""What happened, as the journal keeps it: every entry is a fact, written once and never changed."""

from enum import IntEnum
from typing import Final, NamedTuple

import msgspec

from belated.errors import StoreError
from belated.replicated.lag import Drawn


class EntryKind(IntEnum):
    """What an entry says."""

    CREATED = 1  # an experiment began; body: its settings
    DECIDED = 2  # an arm was drawn
    REPORTED = 3  # the outcome came in time
    EXPIRED = 4  # the wait ended: value is the default outcome, or nothing
    LATE = 5  # the outcome came after the wait had ended
    AMENDED = 6  # the outcome was corrected
    ARMS = 7  # arms were added or retired; body: which
    CLOSED = 8  # no more decisions


class Entry(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One line of the journal. An outcome repeats what it needs of its decision, so that a fold needs no look-up."""

    at: int  # microseconds since 1970, UTC
    kind: EntryKind
    experiment: int  # the seq of its CREATED entry, which is handed in with 0
    seq: int = 0  # the place in the journal, from 1; 0: not written yet
    round: int | None = None  # of the decision, from 1
    arm: int | None = None  # of the decision: its place among all arms the experiment ever had
    probability: float | None = None  # what the arm was drawn with
    nonce: int | None = None  # of the decision: makes its id hard to guess
    seen: int | None = None  # the last entry the decision's server had folded; equal ones share a distribution
    request: str | None = None  # of a decision: the Idempotency-Key it was asked with
    position: int | None = None  # and its place in that request
    decision: int | None = None  # of an outcome: the seq of its decision
    decided_at: int | None = None
    revision: int | None = None  # of an outcome and of an event: 0 for the first, then 1, 2, ...; old events have none
    value: float | None = None  # of an outcome, in the experiment's own units
    old: float | None = None  # the value it replaces
    body: bytes | None = None  # of CREATED, ARMS and CLOSED: JSON
    drawn: bytes | None = None  # of a decision: what it rests on, should others have written meanwhile


class Found(NamedTuple):
    """A decision and its newest outcome."""

    decision: Entry
    outcome: Entry | None


class Rest(NamedTuple):
    """What a decision rests on: as MessagePack in its entry."""

    drawn: Drawn  # what its server had counted
    bold_advantage: float  # of its arm (docs/theory/shadow.md)


_REST: Final = msgspec.msgpack.Decoder(Rest)
COLUMNS: Final = Entry.__struct_fields__


def rest_of(entry: Entry) -> Rest:
    """What the decision of this entry rests on."""
    try:
        return _REST.decode(entry.drawn or b"")
    except msgspec.DecodeError as error:
        message = f"entry {entry.seq}: what its decision rests on cannot be read, another release has written it"
        raise StoreError(f"{message} ({error})") from error


def with_seq(entry: Entry, seq: int) -> Entry:
    """The entry as it stands in the journal."""
    return msgspec.structs.replace(entry, seq=seq, experiment=entry.experiment or seq)
