"""Copies a store into an empty one, of the same kind or another. Every entry keeps its number."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from belated.serve.domain.entries import Entry
from belated.serve.domain.fold import VERSION
from belated.serve.store.journal import Journal, entries


class Copied(NamedTuple):
    """How much was copied."""

    entries: int
    snapshots: int
    keys: int


def copy(source: Journal, destination: Journal, progress: Callable[[int], object] = lambda _: None) -> Copied:
    """Copy the present contents in one step. The source may be written meanwhile."""
    last, count = source.last(), 0
    snapshots = [one for one in source.snapshots() if one.seq <= last and one.version == VERSION]
    keys = source.keys()

    def stream() -> Iterator[Entry]:
        nonlocal count
        for count, entry in enumerate(entries(source, until=last), 1):
            yield entry
            if count % 100 == 0:
                progress(entry.seq)

    destination.fill(stream(), snapshots, keys)
    return Copied(count, len(snapshots), len(keys))
