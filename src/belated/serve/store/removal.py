"""Removes entries from a store in use. The state stays the same to the last bit.

The whole state is saved in the store as a base first. From then on, a fold begins at the base, so the entries up to it
are only looked up. A crash between any two steps leaves a sound store, and the removal can be repeated.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from belated.errors import HistoryLost, StoreError
from belated.serve.domain.entries import Entry, EntryKind
from belated.serve.domain.fold import Fold
from belated.serve.domain.history import Mark
from belated.serve.store.journal import Base, Journal, Removal, entries
from belated.serve.store.loading import load

AT_ONCE: Final = "another command archives or erases at the same time. Run this one again when it has ended."
GRACE: Final = 5.0  # seconds for running servers to read of the base. Each reads the journal many times a second


def loaded(journal: Journal) -> Fold:
    """Load the state with all entries that are committed now. Waits for those that an open transaction hides."""
    last, fold = journal.last(), load(journal)
    fold.apply(entries(journal, fold.seq, last))
    if not journal.confirms(fold.tail.mark()):
        raise HistoryLost(f"the journal has lost entries up to {fold.seq}. Run `belated verify`.")
    return fold


def put_base(journal: Journal, fold: Fold, at: int) -> Base:
    """Save the state as a base, and put it in force. Raises StoreError if another command has just done so."""
    journal.prepare_base(fold.base())
    append(journal, [Entry(at, EntryKind.BASE, 0, seen=fold.seq)], fold.tail.short_mark()._replace(base=fold.seq))
    base = journal.base()
    if base is None or base.seq != fold.seq:
        raise StoreError(AT_ONCE)
    return base


def append(journal: Journal, written: Sequence[Entry], mark: Mark) -> None:
    """Append entries. Raises StoreError if another command removes entries that these build on."""
    with _alone(journal, mark.newest.seq):
        journal.append(written, mark)


@contextmanager
def _alone(journal: Journal, newest: int) -> Iterator[None]:
    """Say what is wrong if another command has put a base in force after the entry `newest`, and removes entries."""
    try:
        yield
    except HistoryLost as error:
        base = journal.base()
        if base is not None and base.is_removing and base.entry > newest:
            raise StoreError(AT_ONCE) from error
        raise


def begin(journal: Journal, base: Base, grace: float = GRACE) -> None:
    """Wait until running servers have read of the base, and allow removals."""
    with _alone(journal, base.entry):
        for _ in entries(journal, base.seq, base.entry):  # waits for an open transaction that hides it
            pass
    time.sleep(grace)
    journal.begin_removal(base)


def remove(journal: Journal, what: Removal, progress: Callable[[int], object] = lambda _: None) -> int:
    """Remove entries. Returns how many. `progress` gets how many were removed so far."""
    count = 0
    for more in journal.remove(what):
        count += more
        progress(count)
    return count
