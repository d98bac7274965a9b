"""Loads the state from a store: the newest snapshot, then the rest of the journal."""

import logging
from collections.abc import Callable

from belated.errors import SnapshotError, StoreError, StoreUnreachable
from belated.serve.domain.fold import Fold, Snapshot, restore
from belated.serve.store.journal import PAGE, Journal

log = logging.getLogger("belated.store")


def newest(journal: Journal, drop: Callable[[int], None] = lambda _: None) -> Fold:
    """Restore the newest snapshot that is readable and of this journal's history, or return an empty state.

    `drop` is called with the entry of each snapshot that is of another history.
    """
    for snapshot in _saved(journal):
        try:
            fold = restore(snapshot)
            if not journal.confirms(fold.tail.mark()):
                drop(snapshot.seq)
                raise SnapshotError("the journal has lost entries that it was made from")
        except SnapshotError as error:
            log.warning("a snapshot is not used", extra={"entry": snapshot.seq, "reason": str(error)})
        else:
            return fold
    return Fold()


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
    """Load the newest readable snapshot and apply the entries after it. `drop` is as for `newest`.

    Stops at the first page that is not full, because other servers may write all the time.
    """
    fold = newest(journal, drop)
    while page := journal.read(fold.seq, PAGE):
        fold.apply(page)
        log_failures(fold)
        if len(page) < PAGE:
            break
    return fold
