"""What a database that is milliseconds away costs: single requests with keys, and single reports, on PostgreSQL.

A replica commits a group of requests with one round trip. So a look-up for each request would cost far more than the
commit does.
"""

import random
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.decision_service import CONNECTIONS, KEYED, Wire, decide, load
from benchmarks.judging import judge
from benchmarks.replicas import replicas, server
from tests.support.relay import relay_to
from tests.support.service import Served

ROUND_TRIP = 0.002  # seconds
REPEATS = 5
REPORTS, BATCH = 30_000, 10_000  # more decisions than one run can report
OLDER = 100_000  # open decisions that are newer than those reported
BAR = 0.7
UNKEYED = 'wrk.method = "POST"\n'
REPORTED = """
wrk.method, wrk.body = "POST", '{"reward": 1}'
wrk.headers["Content-Type"] = "application/json"
local ids, count = {}, 0
function init()
  for line in io.lines("IDS") do ids[#ids + 1] = "/v1/decisions/" .. line .. "/feedback" end
end
function request()
  count = count + 1
  return wrk.format(nil, ids[count])
end
"""


@contextmanager
def far_replica() -> Iterator[Served]:
    """A replica whose database is ROUND_TRIP away."""
    with (
        server() as cluster,
        relay_to(cluster.port, ROUND_TRIP / 2) as (_, port),
        cluster.database() as url,
        replicas(url.replace(f":{cluster.port}/", f":{port}/"), 1) as [served],
    ):
        yield served


def single() -> None:
    """Decisions without a key, decisions with one, and reports take turns.

    A server remembers open decisions, and recalls them after a start. So the age of a decision must not matter.
    """
    print(f"\nPostgreSQL {ROUND_TRIP * 1000:g} ms away: single requests, {CONNECTIONS} connections")
    with tempfile.TemporaryDirectory() as folder, far_replica() as served:
        path = "/v1/experiments/layout/decisions"
        contestants: dict[str, Callable[[], float]] = {
            "decisions without a key": lambda: run(Path(folder), UNKEYED, served.url + path),
            "decisions with a key": lambda: run(Path(folder), KEYED, served.url + path),
            "reports": lambda: report(Path(folder), served, 0),
            "reports of older decisions": lambda: report(Path(folder), served, OLDER),
            "reports after a restart": lambda: report(Path(folder), served, OLDER, is_restarted=True),
        }
        rates = [{name: contestant() for name, contestant in contestants.items()} for _ in range(REPEATS)]
    best = {name: max(one[name] for one in rates) for name in contestants}
    print("  " + ", ".join(f"{name} {rate:,.0f}/s" for name, rate in best.items()))
    plain, *others = best.items()
    for name, rate in others:
        judge(f"{name} / {plain[0]}", rate / plain[1], BAR, "", at_most=False)


def run(folder: Path, script: str, url: str) -> float:
    """Requests a second with this script of wrk."""
    path = folder / "script.lua"
    path.write_text(script)
    return load(url, path)[0]


def report(folder: Path, served: Served, later: int, *, is_restarted: bool = False) -> float:
    """Reports a second, each of a decision of its own, in any order, after so many later decisions."""
    wire = Wire(served)
    ids = [one for _ in range(REPORTS // BATCH) for one in decide(wire, BATCH)]
    for _ in range(later // BATCH):
        decide(wire, BATCH)
    if is_restarted:
        served.stop()
        served.start()
    random.shuffle(ids)
    (folder / "ids").write_text("\n".join(ids))
    return run(folder, REPORTED.replace("IDS", str(folder / "ids")), served.url)
