"""Loads the state from a store: the newest snapshot, then the rest of the journal."""

import logging

from belated.errors import SnapshotError
from belated.serve.domain.fold import Fold, restore
from belated.serve.store.journal import PAGE, Journal

log = logging.getLogger("belated.store")


def newest(journal: Journal) -> Fold:
    """Restore the newest readable snapshot, or an empty state. A snapshot only saves time."""
    last = journal.last()
    for snapshot in journal.snapshots():
        try:
            if snapshot.seq > last:
                raise SnapshotError(
                    f"it is of entry {snapshot.seq}, but the journal ends at {last}, so entries were lost"
                )
            return restore(snapshot)
        except SnapshotError as error:
            log.warning("a snapshot is not used", extra={"entry": snapshot.seq, "reason": str(error)})
    return Fold()


def load(journal: Journal) -> Fold:
    """Load the newest readable snapshot and apply the entries after it.

    Stops at the first page that is not full, because other servers may write all the time.
    """
    fold = newest(journal)
    while page := journal.read(fold.seq, PAGE):
        fold.apply(page)
        if len(page) < PAGE:
            break
    return fold
