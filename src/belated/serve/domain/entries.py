"""Journal entries. Each is a fact that is written once and never changed."""

from collections.abc import Iterable
from enum import IntEnum
from operator import attrgetter
from typing import Final, NamedTuple, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from belated.arrays import Floats, Integers
from belated.errors import StoreError
from belated.replicated.lag import Drawn


class EntryKind(IntEnum):
    """What an entry records."""

    CREATED = 1  # an experiment began, its settings are in the body
    DECIDED = 2  # an arm was drawn
    REPORTED = 3  # the outcome came in time
    EXPIRED = 4  # the wait ended, and the default outcome, if any, is in the value
    LATE = 5  # the outcome came after the wait had ended
    AMENDED = 6  # the outcome was corrected
    ARMS = 7  # arms were added or retired, as the body says
    CLOSED = 8  # no more decisions
    BASE = 9  # the state after the entry `seen` is in the store, so entries up to it may be removed
    REMOVED = 10  # the decision leaves the store before it has an outcome, so none will ever come
    OPERATED = 11  # paused, resumed, frozen, unfrozen, ended or edited, as the body says


class Entry(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One line of the journal. An outcome repeats parts of its decision, so that it needs no look-up."""

    at: int  # microseconds since 1970, UTC
    kind: EntryKind
    experiment: int  # the seq of its CREATED entry, which itself has 0 until it is written
    seq: int = 0  # the number in the journal, from 1, or 0 if it is not written yet
    round: int | None = None  # of the decision, from 1
    arm: int | None = None  # of the decision, as an index into all arms the experiment ever had
    probability: float | None = None  # of drawing this arm
    nonce: int | None = None  # of the decision, so that its id is hard to guess
    seen: int | None = None  # the last entry that the decision's server had applied
    request: str | None = None  # of a decision, the Idempotency-Key it was asked with
    position: int | None = None  # and its index in that request
    decision: int | None = None  # of an outcome, the seq of its decision
    decided_at: int | None = None
    revision: int | None = None  # of an outcome or event, 0 for the first, then 1, 2, ... (old events have none)
    value: float | None = None  # of an outcome, in the experiment's own units
    old: float | None = None  # the value it replaces
    body: bytes | None = None  # JSON, of CREATED, ARMS, CLOSED and OPERATED
    # of a decision, its encoded Rest, needed if other servers wrote meanwhile. Of an event, the key behind it
    drawn: bytes | None = None
    alias: bytes | None = (
        None  # what callers call it, as a digest. The subject of a decision, the report_id of an outcome
    )
    # of an outcome that several reports add up to, its encoded Parts. Of a decision, the key whose limit it counts for
    parts: bytes | None = None
    policy: int | None = None  # of a decision and its outcomes, who chose its probabilities. None means the learner


class Found(NamedTuple):
    """A decision and its newest outcome."""

    decision: Entry
    outcome: Entry | None


class Drawings(NamedTuple):
    """What reports need of many decisions, in the order of their numbers, as a column for each field of an entry."""

    seqs: Integers
    experiments: Integers
    at: Integers
    rounds: Integers
    arms: Integers
    nonces: Integers
    seen: Integers  # 0 for none
    policies: Integers  # 0 for none
    probabilities: Floats

    @classmethod
    def of(cls, decisions: Iterable[Entry]) -> Self:
        """Return the columns of decisions."""
        ones = sorted(decisions, key=attrgetter("seq"))
        numbers = [
            (
                one.seq,
                one.experiment,
                one.at,
                one.round or 0,
                one.arm or 0,
                one.nonce or 0,
                one.seen or 0,
                one.policy or 0,
            )
            for one in ones
        ]
        seqs, experiments, at, rounds, arms, nonces, seen, policies = np.array(numbers, np.int64).reshape(-1, 8).T
        chances = np.array([one.probability or 0.0 for one in ones])
        return cls(seqs, experiments, at, rounds, arms, nonces, seen, policies, chances)

    def only(self, which: NDArray[np.bool_]) -> Self:
        """Return some of them."""
        return self._replace(**{name: column[which] for name, column in self._asdict().items()})


class Rest(NamedTuple):
    """The state that a decision was drawn from, as its entry keeps it in MessagePack."""

    drawn: Drawn  # the counts of its server
    bold_advantage: float  # of its arm (docs/theory/shadow.md)


_REST: Final = msgspec.msgpack.Decoder(Rest)
COLUMNS: Final = Entry.__struct_fields__


def rest_of(entry: Entry) -> Rest:
    """Return the state that the decision of this entry was drawn from."""
    try:
        return _REST.decode(entry.drawn or b"")
    except msgspec.DecodeError as error:
        message = f"entry {entry.seq} was written by another release. Its field `drawn` cannot be read"
        raise StoreError(f"{message} ({error}).") from error


def with_seq(entry: Entry, seq: int) -> Entry:
    """Return the entry with its number in the journal."""
    return msgspec.structs.replace(entry, seq=seq, experiment=entry.experiment or seq)
