"""Verifies a store: rebuild the state from the journal and compare it with the snapshots, bit for bit."""

from array import array
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator
from typing import Final, NamedTuple, final

import msgspec

from belated.errors import BelatedError, SnapshotError, StoreError, StoreUnreachable
from belated.serve.domain.entries import Entry, EntryKind
from belated.serve.domain.failures import OtherRelease
from belated.serve.domain.fold import FailedApply, Fold, Snapshot, restore
from belated.serve.store.journal import Base, Journal, entries, left
from belated.serve.store.loading import MOST_STARTS, begin_at, load

# errors that only a damaged journal causes
SENSELESS: Final = (BelatedError, LookupError, TypeError, ValueError, msgspec.MsgspecError)
AHEAD: Final = 20_000  # entries by which a decision may be stale and still have its probability checked
PIECE: Final = 1_000


class VerifyResult(NamedTuple):
    """The findings. `problems` is empty if the store is sound."""

    entries: int
    decisions: int
    snapshots: int
    problems: list[str]
    unchecked: int = 0  # decisions drawn from a state that was too old to check their probabilities
    base: Base | None = None  # where the fold began, if the entries before it were archived or erased
    left: int = 0  # entries up to the base that are still there


@final
class Draws:
    """The distributions that decisions were drawn from, after the entries their servers had seen."""

    def __init__(self, fold: Fold) -> None:
        self._fold, self.unchecked, self._begin = fold, 0, fold.seq
        self._wanted: dict[int, dict[int, set[int]]] = {}  # by entry and experiment, the arms drawn from that state
        self._chances: dict[tuple[int, int], dict[int, float]] = {}
        self._applied = array("q")  # the numbers of all entries so far, in order

    def pieces(self, stream: Iterable[Entry], stops: Container[int]) -> Iterator[list[Entry]]:
        """Split entries into pieces that end where a state is needed. Apply each before you take the next."""
        piece: list[Entry] = []
        for entry in self._look_ahead(stream):
            if not self._applied:
                self._note(self._fold.seq)
            piece.append(entry)
            self._applied.append(entry.seq)
            if entry.seq in self._wanted or entry.seq in stops or len(piece) == PIECE:
                yield piece
                self._note(entry.seq)
                piece = []
        yield piece

    def _look_ahead(self, stream: Iterable[Entry]) -> Iterator[Entry]:
        waiting: deque[Entry] = deque()
        for entry in stream:
            if entry.kind is EntryKind.DECIDED and (entry.seen or 0) >= self._fold.seq:
                at = self._wanted.setdefault(entry.seen or 0, {})
                at.setdefault(entry.experiment, set()).add(entry.arm or 0)
            waiting.append(entry)
            if len(waiting) > AHEAD:
                yield waiting.popleft()
        yield from waiting

    def _note(self, seq: int) -> None:
        self._chances = {key: x for key, x in self._chances.items() if key[0] > seq - 2 * AHEAD}
        for number, arms in self._wanted.pop(seq, {}).items():
            one = self._fold.experiments.get(number)
            if one is not None and one.failure is None:
                self._chances[seq, number] = {arm: chance for arm, chance in one.chances().items() if arm in arms}

    def is_applied(self, seq: int) -> bool:
        """Whether there is an entry with this number among those so far, or there may have been one before the base."""
        if self.may_be_removed(seq):
            return True
        found = bisect_left(self._applied, seq)
        return found < len(self._applied) and self._applied[found] == seq

    def may_be_removed(self, seq: int) -> bool:
        """Whether an entry may be missing because the base stands for it."""
        return 0 < seq <= self._begin

    def contradicts(self, entry: Entry) -> bool:
        """Whether the entry has the wrong probability for its arm."""
        chances = self._chances.get((entry.seen or 0, entry.experiment))
        self.unchecked += chances is None
        return chances is not None and chances.get(entry.arm or 0) != entry.probability


def verify(journal: Journal, progress: Callable[[int], None] = lambda _: None) -> VerifyResult:
    """Check the store, rebuild the state, and compare it with every snapshot and with what a start would load.

    If entries were archived or erased, the state is rebuilt from the base on. Begins again if that happens meanwhile.
    """
    for _ in range(MOST_STARTS - 1):
        before = _base_of(journal)
        result = _verify(journal, progress)
        if not result.problems or _base_of(journal) == before:
            return result
    return _verify(journal, progress)


def _base_of(journal: Journal) -> Base | None:
    try:
        return journal.base()
    except StoreUnreachable:
        raise
    except StoreError:
        return None


def _verify(journal: Journal, progress: Callable[[int], None]) -> VerifyResult:
    problems = journal.check()
    try:
        base = journal.base()
        fold = Fold() if base is None else begin_at(base, journal)
    except StoreUnreachable:
        raise
    except StoreError as error:
        return VerifyResult(0, 0, 0, [*problems, str(error)])
    begin, least = fold.seq, 0 if base is None else base.entry
    saved = {one.seq: one for one in journal.snapshots() if one.seq >= least and is_comparable(one)}
    count, n_left, snapshots = 0, 0, saved.copy()
    draws = Draws(fold)
    try:
        for n_left, entry in enumerate(left(journal, begin), 1):  # noqa: B007
            problems += odd(entry, fold)
        for piece in draws.pieces(counted(entries(journal, begin, journal.last()), progress), saved):
            fold.apply(piece, lambda batch: problems.extend(contradictions(batch, draws, journal)))
            problems.extend(map(said, fold.take_failures()))
            count += len(piece)
            snapshot = saved.pop(fold.seq, None)
            if snapshot is not None and fold.snapshot().state != snapshot.state:
                problems.append(f"the snapshot after entry {fold.seq} differs from the journal")
        problems += [f"there is a snapshot after entry {seq}, but no such entry" for seq in saved]
    except SENSELESS as error:
        problems.append(f"the entries after {fold.seq} cannot be applied: {type(error).__name__}: {error}")
    if not problems and (again := load(journal)).seq == fold.seq and again.snapshot() != fold.snapshot():
        problems.append("a start from the newest snapshot gives another state than the whole journal")
    decisions = sum(one.counts.decisions for one in fold.experiments.values())
    return VerifyResult(count, decisions, len(snapshots), problems, draws.unchecked, base, n_left)


def odd(entry: Entry, fold: Fold) -> Iterator[str]:
    """Yield what is wrong with an entry that the base stands for."""
    experiment = fold.experiments.get(entry.experiment)
    if entry.kind is EntryKind.BASE:
        return
    if experiment is None:
        yield f"entry {entry.seq}: its experiment was never created"
    elif entry.arm is not None and not 0 <= entry.arm < len(experiment.arms):
        yield f"entry {entry.seq}: the experiment {experiment.name!r} has no arm {entry.arm}"
    elif entry.kind is EntryKind.DECIDED and (entry.seen or 0) >= entry.seq:
        yield f"entry {entry.seq}: the decision was drawn on lost history"
    elif entry.decision is not None and entry.decision >= entry.seq:
        yield f"entry {entry.seq}: it is not the outcome of decision {entry.decision}"


def is_comparable(snapshot: Snapshot) -> bool:
    """Whether a snapshot is of this release, so that it must be the fold of the journal. A damaged one is."""
    try:
        restore(snapshot)
    except OtherRelease:
        return False
    except SnapshotError:
        return True
    return True


def said(failed: FailedApply) -> str:
    """Say why an experiment has failed."""
    experiment, error = failed
    return f"the experiment {experiment.name!r} has failed: {experiment.failure}: {type(error).__name__}: {error}"


def contradictions(batch: list[Entry], draws: Draws, journal: Journal) -> Iterator[str]:
    """Yield what is wrong with entries: decisions that no learner made, and outcomes that do not fit their decision."""
    if batch[0].kind is EntryKind.DECIDED:
        for entry in batch:
            seen = entry.seen or 0
            if seen >= entry.seq or (seen and not draws.is_applied(seen)):
                yield (
                    f"entry {entry.seq}: the decision was drawn on lost history. "
                    f"Its server had applied entry {seen}, which is not in the journal before it"
                )
            elif draws.contradicts(entry):
                yield f"entry {entry.seq}: its arm was not drawn with the probability {entry.probability!r}"
    elif batch[0].decision is not None:
        found = journal.find([entry.decision or 0 for entry in batch])
        for entry in batch:
            one = found.get(entry.decision or 0)
            if one is None and draws.may_be_removed(entry.decision or 0):
                continue
            if one is None or repeated(entry) != (one.decision.at, *repeated(one.decision)[1:]):
                yield f"entry {entry.seq}: it is not the outcome of decision {entry.decision}"
            elif not follows(entry, journal):
                yield f"entry {entry.seq}: it does not follow the outcome before it"


def repeated(entry: Entry) -> tuple[object, ...]:
    """Return what an outcome repeats of its decision."""
    drawn = entry.round, entry.arm, entry.probability, entry.policy, entry.nonce
    return entry.decided_at, entry.experiment, *drawn


def follows(entry: Entry, journal: Journal) -> bool:
    """Whether it is the first outcome of its decision, or replaces the one before."""
    if not entry.revision:
        return entry.old is None
    before = journal.history(entry.decision or 0, entry.revision - 1, 1)
    return [(one.revision, one.value, one.seq < entry.seq) for one in before] == [(entry.revision - 1, entry.old, True)]


def counted(stream: Iterable[Entry], progress: Callable[[int], None]) -> Iterator[Entry]:
    """Pass entries through, and report the progress every thousand entries."""
    for number, entry in enumerate(stream, 1):
        yield entry
        if number % 1000 == 0:
            progress(entry.seq)
