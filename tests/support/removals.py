"""Removes entries as the commands do, without waiting for other servers."""

from belated.serve.domain.entries import Entry
from belated.serve.domain.fold import Fold
from belated.serve.store.journal import Base, Journal, Removal
from belated.serve.store.removal import begin, loaded, put_base, remove

LAST = 2**62


def based(journal: Journal, at: int = 1) -> Base:
    """Put a base in force, and allow removals."""
    base = put_base(journal, loaded(journal), at)
    begin(journal, base, grace=0.0)
    return base


def removed(journal: Journal, at: int = 1, **which: object) -> Base:
    """Remove some decisions."""
    base = based(journal, at)
    remove(journal, Removal(base.seq, **which))  # type: ignore[arg-type]
    return base


def rows(journal: Journal) -> list[Entry]:
    """Everything that is left in a journal."""
    return journal.left(0, LAST, LAST)


def state_of(fold: Fold) -> bytes:
    """The state without what it knows of its history, which is shorter after a base."""
    return fold.base().state


def folded(entries: list[Entry]) -> bytes:
    """The state that entries give from nothing."""
    fold = Fold()
    fold.apply(sorted(entries, key=lambda entry: entry.seq))
    return state_of(fold)
