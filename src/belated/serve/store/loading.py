"""Loads the state from a store: the newest snapshot or the base, then the rest of the journal."""

import hashlib
import logging
import time
from collections.abc import Callable
from typing import Final

from belated.errors import HistoryLost, SnapshotError, StoreError, StoreUnreachable
from belated.serve.domain.fold import Fold, Snapshot, restore
from belated.serve.domain.history import Place
from belated.serve.store.journal import PAGE, Base, Journal

TELL_AFTER: Final = 2.0  # seconds of loading before the log tells how far it is
TELL_EVERY: Final = 10.0
MOST_STARTS: Final = 3  # times that a removal may begin while the state is loaded
log = logging.getLogger("belated.store")


def newest(journal: Journal, drop: Callable[[int], None] = lambda _: None) -> Fold:
    """Restore the newest snapshot that is readable and of this journal's history. Without one, begin at the base.

    A snapshot from before the base's entry is never used, because entries after it may be missing. `drop` is called
    with the entry of each snapshot that is of another history.
    """
    base = journal.base()
    for snapshot in _saved(journal):
        if base is not None and snapshot.seq < base.entry:
            continue
        try:
            fold = restore(snapshot)
            if not journal.confirms(fold.tail.mark()):
                drop(snapshot.seq)
                raise SnapshotError("the journal has lost entries that it was made from")
        except SnapshotError as error:
            log.warning("a snapshot is not used", extra={"entry": snapshot.seq, "reason": str(error)})
        else:
            return fold
    return Fold() if base is None else begin_at(base, journal)


def begin_at(base: Base, journal: Journal) -> Fold:
    """Restore the state of a base. Raises StoreError if it is damaged, because nothing can be used in its place."""
    state = journal.base_state(base.seq)
    if hashlib.sha256(state).digest() != base.digest and journal.base() != base:  # its parts are being dropped
        raise HistoryLost(f"the state after entry {base.seq} was replaced by a later one. Restart.")
    check(base, state)
    try:
        fold = restore(Snapshot(base.seq, base.version, state), is_base=True)
        fold.tail.witness = Place(base.entry, base.at, -1)  # as long as it is there, nothing up to the base is lost
        return fold
    except SnapshotError as error:
        raise StoreError(
            f"the state after entry {base.seq} cannot be read: {error}. It was written by Belated {base.release}. "
            "Use that release, or one that can read it."
        ) from error


def check(base: Base, state: bytes) -> None:
    """Raise StoreError if the state of a base is damaged."""
    if hashlib.sha256(state).digest() != base.digest:
        raise StoreError(
            f"the state after entry {base.seq} is damaged, and the entries before it are not all in the store. "
            "Restore a backup, as docs/deployment.md says."
        )


def _saved(journal: Journal) -> list[Snapshot]:
    """Return the snapshots. They only save time, so if they cannot be read there are none."""
    try:
        return journal.snapshots()
    except StoreUnreachable:
        raise
    except StoreError as error:
        log.warning("the snapshots cannot be read", extra={"reason": str(error)})
        return []


def log_failures(fold: Fold) -> None:
    """Log the experiments that have just failed."""
    for experiment, error in fold.take_failures():
        details = {"experiment": experiment.name, "reason": str(experiment.failure)}
        log.critical("an experiment has failed, and the others go on", exc_info=error, extra=details)


def load_to_serve(journal: Journal) -> Fold:
    """Load the state as `load` does. Drops snapshots of another history.

    They may have high numbers, and would then hide the newer ones that this server saves.
    """

    def drop(seq: int) -> None:
        try:
            journal.drop_snapshot(seq)
        except StoreUnreachable:
            raise
        except StoreError as error:
            log.warning("a snapshot cannot be dropped", extra={"entry": seq, "reason": str(error)})

    return load(journal, drop)


def load(journal: Journal, drop: Callable[[int], None] = lambda _: None) -> Fold:
    """Load the newest readable snapshot or the base, and apply the entries after it. `drop` is as for `newest`.

    Stops at the first page that is not full, because other servers may write all the time. If entries that it needs
    are removed meanwhile, it begins again at the base that allows it.
    """
    for _ in range(MOST_STARTS - 1):
        try:
            return _load(journal, drop)
        except HistoryLost as error:
            log.warning("the state is loaded again", extra={"reason": str(error)})
    return _load(journal, drop)


def _load(journal: Journal, drop: Callable[[int], None]) -> Fold:
    fold, due = newest(journal, drop), time.monotonic() + TELL_AFTER
    while page := journal.read(fold.seq, PAGE):
        fold.apply(page)
        log_failures(fold)
        if time.monotonic() > due:  # a journal without a snapshot of this release may be long
            log.info("applying the journal", extra={"entry": fold.seq})
            due = time.monotonic() + TELL_EVERY
        if len(page) < PAGE:
            break
    return fold
