"""How much one and two replicas on PostgreSQL decide.

The load generator, the replicas and PostgreSQL share this machine. The cores that each of them used are printed beside
every figure. If they add up to nearly all cores, the machine was the limit.
"""

import os
import re
import resource
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from benchmarks import decision_service
from benchmarks.decision_service import EXPERIMENT, MANY_OPEN, load
from benchmarks.judging import judge
from tests.support.postgres import Cluster
from tests.support.service import Served

SHIPPED = Path(__file__).parent.parent / "deploy" / "postgresql.conf"
FEW = 4  # connections to each replica, so few that it waits for its commits and not for a processor
DELAY = 4000  # microseconds
SECONDS, REPEATS = 4, 3
SINGLE_ROW = """
INSERT INTO inserted (at, experiment, round, probability, nonce, seen, arm, position, kind, request)
VALUES (1700000000000000, 1, 1, 0.5, 1, 1, 1, 0, 2, gen_random_uuid()::text);
"""
INSERTED = """
CREATE TABLE inserted (
    seq bigserial PRIMARY KEY, at bigint, experiment bigint, round bigint, probability double precision, nonce bigint,
    seen bigint, arm integer, position integer, kind smallint, request text
)
"""


@contextmanager
def server() -> Iterator[Cluster]:
    """PostgreSQL with the settings that deploy/ has."""
    cluster = Cluster(dict(re.findall(r"^(\w+) = (\S+)$", SHIPPED.read_text(), re.MULTILINE)))
    try:
        yield cluster
    finally:
        cluster.remove()


@contextmanager
def replicas(url: str, number: int) -> Iterator[list[Served]]:
    """Start replicas that have the experiment."""
    with tempfile.TemporaryDirectory() as folder:
        served: list[Served] = []
        try:
            served += [Served(Path(folder), "--store", url, *MANY_OPEN) for _ in range(number)]
            for one in served:
                one.post("/v1/experiments", EXPERIMENT)
                one.post("/v1/experiments/layout/decisions")
            yield served
        finally:
            for one in served:
                one.stop()


# -- who worked how much ----------------------------------------------------------------------------------------------


def family(pid: int) -> set[int]:
    """A process and its children."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return {pid, *map(int, children)}


def worked(pids: set[int]) -> float:
    """Processor seconds used by these processes."""
    ticks = (Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13] for pid in pids)
    return sum(map(int, chain.from_iterable(ticks))) / os.sysconf("SC_CLK_TCK")


def busy() -> float:
    """Processor seconds used by all processes, in user, nice, system and interrupts."""
    user, nice, system, _idle, _waiting, *interrupts = map(int, Path("/proc/stat").read_text().split()[1:8])
    return (user + nice + system + sum(interrupts)) / os.sysconf("SC_CLK_TCK")


class Work(NamedTuple):
    """Processor seconds."""

    replicas: float
    postgres: float
    load: float
    others: float

    @classmethod
    def so_far(cls, served: list[Served], cluster: Cluster) -> "Work":
        postmaster = int((cluster.folder / "data" / "postmaster.pid").read_text().split()[0])
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        known = worked({one.process.pid for one in served}), worked(family(postmaster))
        caller = children.ru_utime + children.ru_stime
        return cls(*known, caller, busy() - sum(known) - caller)

    def since(self, before: "Work", seconds: float) -> str:
        shares = [(now - then) / seconds for now, then in zip(self, before, strict=True)]
        names = ("replicas", "PostgreSQL", "load generator", "others")
        words = ", ".join(f"{name} {share:.2f}" for name, share in zip(names, shares, strict=True))
        return f"{words}; {sum(shares):.1f} of {os.cpu_count()} cores"


class Run(NamedTuple):
    """One measurement."""

    rate: float  # decisions a second
    tail: float  # 99% within so many milliseconds, the slowest replica
    commits: float  # a second
    latency: float  # of a commit, in milliseconds
    work: str


def commits_of(served: Served) -> tuple[int, float]:
    """How many, and the seconds they took."""
    said = served.get("/metrics").text
    count, total = (
        re.search(rf"^belated_commit_seconds_{what} (\S+)$", said, re.MULTILINE) for what in ("count", "sum")
    )
    return (int(float(count[1])), float(total[1])) if count and total else (0, 0.0)


def measure(served: list[Served], cluster: Cluster, connections: int) -> Run:
    """Single decisions of all replicas at the same time."""
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(len(served)) as pool:
        post = Path(folder, "post.lua")
        post.write_text('wrk.method = "POST"\n')
        before, commits, began = Work.so_far(served, cluster), [commits_of(one) for one in served], time.monotonic()
        urls = [f"{one.url}/v1/experiments/layout/decisions" for one in served]
        got = list(pool.map(lambda url: load(url, post, connections), urls))
        seconds = time.monotonic() - began
    after = [commits_of(one) for one in served]
    number = sum(now[0] - then[0] for now, then in zip(after, commits, strict=True))
    took = sum(now[1] - then[1] for now, then in zip(after, commits, strict=True))
    work = Work.so_far(served, cluster).since(before, seconds)
    return Run(sum(rate for rate, _ in got), max(tail for _, tail in got), number / seconds, took / number * 1e3, work)


def show(name: str, run: Run) -> None:
    """One line and a half."""
    print(f"  {name:32} {run.rate:7,.0f} decisions/s, 99% within {run.tail:5.1f} ms;", end=" ")
    print(f"{run.commits:6,.0f} commits/s of {run.latency:.2f} ms\n  {'':32} {run.work}")


# -- the bars ---------------------------------------------------------------------------------------------------------


def single() -> None:
    """Durable decisions and the no-op route, as for a file."""
    print("\nreplicas: single decisions on PostgreSQL, 32 connections")
    with server() as cluster, cluster.database() as url, replicas(url, 1) as [served]:
        decision_service.judge_single(served, 0.4)


def pgbench(cluster: Cluster, clients: int) -> float:
    """Rows a second, with one transaction for each."""
    script = cluster.folder / "insert.sql"
    script.write_text(SINGLE_ROW)
    script.chmod(0o644)
    where = "-h", str(cluster.folder), "-p", str(cluster.port), "-U", "postgres", "postgres"
    said = cluster.run(
        *("pgbench", "--no-vacuum", "--protocol", "prepared", "--client", str(clients), "--time", str(SECONDS)),
        *("--file", str(script), *where),
    )
    found = re.search(r"tps = ([\d.]+)", said)
    if found is None:
        raise RuntimeError(said)
    return float(found[1])


def slow_down(cluster: Cluster, microseconds: int) -> None:
    """Make every commit take longer, as a disk behind a network does."""
    with closing(cluster.admin()) as admin:
        for name, value in {"commit_delay": microseconds, "commit_siblings": 0}.items():
            admin.execute(f"ALTER SYSTEM SET {name} = {value}".encode())
        admin.execute("SELECT pg_reload_conf()")
    time.sleep(0.5)


def two() -> None:
    """Two replicas against one, each with the same few callers, and what PostgreSQL could do.

    The callers wait for their answers, so a replica decides as much as its commits allow. On few cores with a fast disk
    this would measure the cores. So the bar is for commits that are delayed as by a network, and the ratio without the
    delay is printed beside it. The delay also lets two commits share a flush, which they rarely do otherwise. So this
    case is easier than a slow disk.
    """
    with server() as cluster, cluster.database() as url, replicas(url, 2) as served:
        with closing(cluster.admin()) as admin:
            admin.execute(INSERTED)
        for delay in (0, DELAY):
            slow_down(cluster, delay)
            print(f"\nreplicas: two against one, {FEW} connections to each, commits {delay / 1000:g} ms longer")
            runs = [(measure(served[:1], cluster, FEW), measure(served, cluster, FEW)) for _ in range(REPEATS)]
            rows = {clients: pgbench(cluster, clients) for clients in (2, 16)}
            one, both = (max(column) for column in zip(*runs, strict=True))
            show("one replica", one)
            show("two replicas", both)
            print(f"  pgbench: {rows[2]:,.0f} single-row inserts/s with 2 clients, {rows[16]:,.0f} with 16")
            print(f"  decisions of two replicas / of one: {both.rate / one.rate:.2f}")
    judge("commits of two replicas / what PostgreSQL can", both.commits / rows[16], 0.8, "", at_most=True)
    judge("decisions of two replicas / of one", both.rate / one.rate, 1.6, "", at_most=False)


def most() -> None:
    """The most that one and two replicas decide. There is no bar, because it depends on the cores."""
    print("\nreplicas: the most on this machine, 32 connections to each")
    with server() as cluster, cluster.database() as url, replicas(url, 2) as served:
        for name, some in {"one replica": served[:1], "two replicas": served}.items():
            show(name, max(measure(some, cluster, 32) for _ in range(3)))
        with closing(cluster.admin()) as admin:
            sessions = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'belated'"
            [(connections,)] = admin.execute(sessions).fetchall()
    print(f"  connections of a replica to PostgreSQL: {connections / 2:g}")
