"""What a decision takes on disk, in the memory of a replica, and at its start."""

import tempfile
import time
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import uuid4

from belated.serve.domain.messages import OutcomeReport
from belated.serve.domain.settings import Settings
from belated.serve.engine.engine import Engine
from belated.serve.engine.requests import Ask, Create, Tell
from belated.serve.store.opening import open_journal
from benchmarks.decision_service import BATCH, Wire, decide
from benchmarks.judging import memory_of
from benchmarks.replicas import replicas, server
from tests.support.postgres import Cluster

DECISIONS = 100_000  # whose bytes are counted
OPEN = 1_000_000


def filled(engine: Engine, number: int, size: int = 1) -> list[str]:
    """Make decisions with keys, as the client does. Returns the ids."""
    ids: list[str] = []
    while len(ids) < number:
        got: list[Any] = engine.process([Ask("layout", size, str(uuid4())) for _ in range(1000 // size)])
        ids += [one.id for answers in got for one in answers.decisions]
    return ids


def written_ahead(cluster: Cluster) -> int:
    """Bytes of WAL so far."""
    with closing(cluster.admin()) as admin:
        [(bytes,)] = admin.execute("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn").fetchall()
    return int(bytes)


def disk() -> None:
    """Bytes of a decision and of an outcome, in either kind of store."""
    print(f"\ncapacity: bytes on disk, {DECISIONS:,} single decisions with keys, and their outcomes")
    with tempfile.TemporaryDirectory() as folder, server() as cluster, cluster.database() as url:
        before = written_ahead(cluster)
        sizes_of(url)
        wal = (written_ahead(cluster) - before) / DECISIONS
        print(f"  {'':12} {wal:4.0f} bytes of WAL for both")
        sizes_of(str(Path(folder, "belated.db")))


def sizes_of(store: str) -> None:
    """Print them for one store."""
    engine = Engine(open_journal(store))
    with closing(engine.journal) as journal:
        engine.process([Create(Settings("layout", ["blue", "green", "red"]))])
        sizes = [journal.size()]
        ids = filled(engine, DECISIONS)
        sizes.append(journal.size())
        for first in range(0, DECISIONS, 1000):
            engine.process([Tell([OutcomeReport(one, "reward", 1.0) for one in ids[first : first + 1000]])])
        sizes.append(journal.size())
        decision, outcome = ((late - early) / DECISIONS for early, late in pairwise(sizes))
        print(f"  {journal.kind:12} {decision:4.0f} bytes a decision, {outcome:4.0f} an outcome")


def start() -> None:
    """The time until ready, with a snapshot and without."""
    number = 3 * DECISIONS
    print(f"\ncapacity: start with {number:,} decisions and as many outcomes in PostgreSQL")
    with server() as cluster, cluster.database() as url:
        engine = Engine(open_journal(url))
        with closing(engine.journal):
            engine.process([Create(Settings("layout", ["blue", "green", "red"]))])
            for _ in range(number // 1000):
                engine.process([Tell([OutcomeReport(one, "reward", 1.0) for one in filled(engine, 1000, 100)])])
            engine.snapshot()
        times = []
        for _ in range(2):
            with replicas(url, 1) as [served]:
                times.append(served.ready_after)
            with closing(cluster.admin(url.rpartition("/")[2])) as admin:
                admin.execute("DELETE FROM belated.saved_snapshots")
    print(f"  ready after {times[0]:.1f} s from a snapshot, {times[1]:.1f} s from nothing:", end=" ")
    print(f"{2 * number / (times[1] - times[0]):,.0f} entries folded a second")


def memory() -> None:
    """What an open decision takes in a replica."""
    print(f"\ncapacity: memory with {OPEN:,} open decisions")
    with server() as cluster, cluster.database() as url, replicas(url, 2) as served:
        before, wire = [memory_of(one.process.pid) for one in served], Wire(served[0])
        for _ in range(OPEN // BATCH):
            decide(wire, BATCH)
        time.sleep(2)  # the other follows
        after = [memory_of(one.process.pid) for one in served]
    for name, small, large in zip(("which decided", "which followed"), before, after, strict=True):
        print(f"  the replica {name:14} {small / 2**20:.0f} MB, then {large / 2**20:.0f} MB:", end=" ")
        print(f"{(large - small) / OPEN:.0f} bytes for each")
