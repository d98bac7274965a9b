"""What it takes to remove old decisions from PostgreSQL, and how long writers wait meanwhile."""

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from threading import Event, Thread

from belated.serve.domain.entries import Entry, EntryKind
from belated.serve.domain.fold import VERSION, Snapshot
from belated.serve.store.journal import Removal
from belated.serve.store.postgres.journal import PostgresJournal
from belated.serve.store.postgres.partitions import SIZE
from belated.testing.entries import created, decided
from benchmarks.judging import judge
from benchmarks.replicas import server
from tests.support.postgres import Cluster, connect

PIECE = 100_000
REPEATS = 3
BAR = 50  # milliseconds
SLOWER = 5  # times that rows take longer than their partition
# decisions have even numbers, and each is followed by its outcome. Their Idempotency-Keys were forgotten before
FILL = """
INSERT INTO journal (at, experiment, seq, round, probability, nonce, seen, arm, kind, decision, revision, value)
SELECT 1, 1, n, n / 2, 0.5, n, CASE WHEN n % 2 = 0 THEN n - 1 END, 0, CASE WHEN n % 2 = 0 THEN 2 ELSE 3 END,
    CASE WHEN n % 2 = 1 THEN n - 1 END, CASE WHEN n % 2 = 1 THEN 0 END, CASE WHEN n % 2 = 1 THEN 1.0 END
FROM generate_series({}, {}) AS n
"""


@contextmanager
def full(cluster: Cluster) -> Iterator[PostgresJournal]:
    """A store whose first partition is full."""
    with cluster.database() as url, closing(PostgresJournal(url)) as journal:
        journal.append([created("layout")])
        with closing(connect(url)) as connection:
            for first in range(2, SIZE, PIECE):
                connection.execute(FILL.format(first, min(first + PIECE, SIZE) - 1).encode())
            connection.execute(f"SELECT setval('places', {SIZE})".encode())
            connection.execute("VACUUM ANALYZE")
        yield journal


@contextmanager
def writing(journal: PostgresJournal) -> Iterator[list[float]]:
    """The milliseconds of each append of a writer that never stops."""
    waits, is_done = list[float](), Event()

    def write() -> None:
        with closing(PostgresJournal(journal._link.url)) as writer:
            while not is_done.is_set():
                began = time.perf_counter()
                writer.append([decided(1, 1)])
                waits.append((time.perf_counter() - began) * 1000)

    thread = Thread(target=write)
    thread.start()
    time.sleep(2)
    yield waits
    is_done.set()
    thread.join()


def remove(cluster: Cluster, decisions_until: int) -> tuple[float, float, float]:
    """Seconds of a removal, and the longest waits of a writer before it and during it."""
    with full(cluster) as journal, writing(journal) as waits:
        alone = max(waits[len(waits) // 2 :])
        journal.prepare_base(Snapshot(SIZE, VERSION, b""))  # nobody folds this store, so the state may be empty
        journal.append([Entry(1, EntryKind.BASE, 0, seen=SIZE)])
        base = journal.base()
        assert base is not None  # noqa: S101
        journal.begin_removal(base)
        begin, began = len(waits), time.perf_counter()
        for _ in journal.remove(Removal(SIZE, decisions_until=decisions_until)):
            pass
        seconds = time.perf_counter() - began
        time.sleep(0.2)
        return seconds, alone, max(waits[begin:])


def partition() -> None:
    """One partition is dropped. The same rows but the last are deleted from another store."""
    print(f"\nremoving {SIZE:,} entries from PostgreSQL while a server writes")
    with server() as cluster:
        drops = [remove(cluster, SIZE - 1) for _ in range(REPEATS)]
        deleted, _, wait_deleting = remove(cluster, SIZE - 4)
    dropped, alone, wait = map(min, zip(*drops, strict=True))
    print(f"  dropped in {dropped:.1f} s, deleted in {deleted:.1f} s")
    print(f"  longest wait of a writer: {alone:.0f} ms before, {wait:.0f} ms dropping, {wait_deleting:.0f} ms deleting")
    judge("deleting rows / dropping their partition, time", deleted / dropped, SLOWER, "x", at_most=False)
    judge("longest wait of a writer while a partition is dropped", wait, BAR, "ms", at_most=True)
