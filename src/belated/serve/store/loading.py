"""Loading the state from a store: the newest snapshot, then the rest of the journal."""

import logging

from belated.errors import SnapshotError
from belated.serve.domain.fold import Fold, restore
from belated.serve.store.journal import PAGE, Journal

log = logging.getLogger("belated.store")


def newest(journal: Journal) -> Fold:
    """The newest snapshot that can be read; nothing if there is none: a snapshot is only a shortcut."""
    last = journal.last()
    for snapshot in journal.snapshots():
        try:
            if snapshot.seq > last:
                raise SnapshotError(f"it is of entry {snapshot.seq}, the journal ends at {last}: entries were lost")
            return restore(snapshot)
        except SnapshotError as error:
            log.warning("a snapshot is not used", extra={"entry": snapshot.seq, "reason": str(error)})
    return Fold()


def load(journal: Journal) -> Fold:
    """The newest snapshot that this release can read, and the rest of the journal folded.

    The first page that is not full is the last: others may write all the time.
    """
    fold = newest(journal)
    while page := journal.read(fold.seq, PAGE):
        fold.apply(page)
        if len(page) < PAGE:
            break
    return fold
