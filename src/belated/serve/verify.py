"""Verifying a store: fold the journal from nothing and compare with what was saved, bit for bit."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

import msgspec

from belated.errors import BelatedError
from belated.serve.entries import Entry, Kind
from belated.serve.fold import VERSION, Fold, load
from belated.serve.journal import Journal, entries

SENSELESS: Final = (
    BelatedError,
    LookupError,
    TypeError,
    ValueError,
    msgspec.MsgspecError,
)  # what no engine would write


class Verdict(NamedTuple):
    """What was found: `problems` is empty if all is well."""

    entries: int
    decisions: int
    snapshots: int
    problems: list[str]


def verify(journal: Journal, progress: Callable[[int], None] = lambda _: None) -> Verdict:
    """Check the store itself, refold, and compare with every snapshot and with what a start would load."""
    problems = journal.check()
    last = journal.last()
    snapshots = {one.seq: one for one in journal.snapshots() if one.version == VERSION}
    fold = Fold()
    try:
        for until in sorted({*snapshots, last}):
            stream = counted(entries(journal, fold.seq, until), progress)
            fold.apply(stream, lambda batch: problems.extend(contradictions(batch, fold, journal)))
            if until in snapshots and fold.snapshot().state != snapshots[until].state:
                problems.append(f"the snapshot after entry {until} is not what the journal folds to")
    except SENSELESS as error:
        problems.append(f"what follows entry {fold.seq} cannot be folded: {type(error).__name__}: {error}")
    if not problems and load(journal).snapshot() != fold.snapshot() and journal.last() == last:
        problems.append("a start from the newest snapshot ends in another state than a fold from nothing")
    decisions = sum(one.counts.decisions for one in fold.experiments.values())
    return Verdict(last, decisions, len(snapshots), problems)


def contradictions(batch: list[Entry], fold: Fold, journal: Journal) -> Iterator[str]:
    """What entries say that nothing before them allows: each is true to its decision, each decision to its learner."""
    if batch[0].kind is Kind.DECIDED and batch[0].experiment in fold.experiments:
        experiment = fold.experiments[batch[0].experiment]
        chances = dict(zip(experiment.era.arms, experiment.distribution().tolist(), strict=True))
        for entry in batch:
            if chances.get(entry.arm or 0) != entry.probability:
                yield f"entry {entry.seq}: its arm was not drawn with the probability {entry.probability!r}"
    elif batch[0].decision is not None:
        found = journal.find([entry.decision or 0 for entry in batch])
        for entry in batch:
            one = found.get(entry.decision or 0)
            if one is None or repeated(entry) != (one.decision.at, *repeated(one.decision)[1:]):
                yield f"entry {entry.seq}: it is not the outcome of decision {entry.decision}"
            elif not follows(entry, journal):
                yield f"entry {entry.seq}: the outcome before it is another"


def repeated(entry: Entry) -> tuple[object, ...]:
    """What an outcome repeats of its decision."""
    return entry.decided_at, entry.experiment, entry.round, entry.arm, entry.probability, entry.nonce


def follows(entry: Entry, journal: Journal) -> bool:
    """Whether it is the first outcome of its decision, or replaces the one before."""
    if not entry.revision:
        return entry.old is None
    before = [one for one in journal.history(entry.decision or 0) if one.seq < entry.seq]
    return len(before) == entry.revision and before[-1].value == entry.old


def counted(stream: Iterable[Entry], progress: Callable[[int], None]) -> Iterator[Entry]:
    """The same entries; every thousandth is told."""
    for number, entry in enumerate(stream, 1):
        yield entry
        if number % 1000 == 0:
            progress(entry.seq)
