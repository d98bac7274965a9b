"""Copies a store into an empty one, of the same kind or another. Every entry keeps its number."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from belated.errors import StoreError
from belated.serve.domain.entries import Entry
from belated.serve.domain.fold import VERSION
from belated.serve.store.journal import PAGE, Base, Journal, Record, entries, left
from belated.serve.store.loading import check


class Copied(NamedTuple):
    """How much was copied."""

    entries: int
    snapshots: int
    keys: int


def everything(source: Journal, base: Base | None, last: int) -> Iterator[Entry]:
    """Yield the entries that are left before the base, and all after it."""
    begin, count = 0 if base is None else base.seq, 0
    for count, entry in enumerate(left(source, begin), 1):  # noqa: B007
        yield entry
    if sum(1 for _ in left(source, begin)) != count:  # perhaps a decision was read, and its outcome was not
        raise StoreError("entries were archived or erased meanwhile. Copy again when that has ended.")
    yield from entries(source, begin, last)


def all_records(journal: Journal) -> Iterator[Record]:
    """Yield the whole audit trail, oldest first."""
    after = 0
    while page := journal.records(after, PAGE):
        yield from page
        after = page[-1].number


def copy(source: Journal, destination: Journal, progress: Callable[[int], object] = lambda _: None) -> Copied:
    """Copy the present contents in one step. The source may be written meanwhile."""
    base, count = source.base(), 0
    last = source.last()  # after the base, so that the entry that puts it in force is copied too
    least = 0 if base is None else base.entry
    snapshots = [one for one in source.snapshots() if least <= one.seq <= last and one.version == VERSION]
    keys, records = source.keys(), list(all_records(source))

    def stream() -> Iterator[Entry]:
        nonlocal count
        for count, entry in enumerate(everything(source, base, last), 1):
            yield entry
            if count % 100 == 0:
                progress(entry.seq)

    if base is None:
        destination.fill(stream(), snapshots, keys, None, records)
    else:
        state = source.base_state(base.seq)
        check(base, state)
        destination.fill(stream(), snapshots, keys, (base, state), records)
    return Copied(count, len(snapshots), len(keys))
