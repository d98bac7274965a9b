"""Durable decisions with a subject, against those with a key and without a subject."""

import tempfile
from pathlib import Path

from benchmarks.decision_service import CONNECTIONS, EXPERIMENT, KEYED, MANY_OPEN, load
from benchmarks.judging import judge
from tests.support.postgres import Cluster
from tests.support.service import Served

SECONDS, REPEATS = 3, 3
BAR = 0.8
KNOWN = 1_000  # subjects that ask again and again
SUBJECT = """
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
math.randomseed(os.time())
local run, count = string.format("%d-%d", os.time(), math.random(1000000000)), 0
function request()
  count = count + 1
  return wrk.format(nil, nil, nil, '{"subject": "' .. NAMED .. '"}')
end
"""
NEW = SUBJECT.replace("NAMED", 'run .. "-" .. count')
REPEATED = SUBJECT.replace("NAMED", f"(count % {KNOWN})")


def file() -> None:
    """On a file."""
    with tempfile.TemporaryDirectory() as folder, Served(Path(folder), *MANY_OPEN) as served:
        judge_subjects(served, "SQLite")


def database() -> None:
    """On PostgreSQL."""
    cluster = Cluster()
    try:
        with (
            cluster.database() as url,
            tempfile.TemporaryDirectory() as folder,
            Served(Path(folder), *MANY_OPEN, "--store", url) as served,
        ):
            judge_subjects(served, "PostgreSQL")
    finally:
        cluster.remove()


def judge_subjects(served: Served, store: str) -> None:
    """Requests with a key, of new subjects and of known ones take turns."""
    print(f"\nservice: decisions with a subject on {store}, {CONNECTIONS} connections")
    served.post("/v1/experiments", EXPERIMENT).raise_for_status()
    with tempfile.TemporaryDirectory() as folder:
        scripts = [Path(folder, f"{name}.lua") for name in ("keyed", "new", "repeated")]
        for path, script in zip(scripts, (KEYED, NEW, REPEATED), strict=True):
            path.write_text(script)
        url = f"{served.url}/v1/experiments/layout/decisions"
        rates = [[load(url, script, seconds=SECONDS)[0] for script in scripts] for _ in range(REPEATS)]
    keyed, new, repeated = (max(column) for column in zip(*rates, strict=True))
    print(f"  with a key {keyed:,.0f}/s, new subjects {new:,.0f}/s, known subjects {repeated:,.0f}/s")
    judge(f"new subjects / decisions without one, {store}", new / keyed, BAR, "", at_most=False)
    judge(f"known subjects / decisions without one, {store}", repeated / keyed, BAR, "", at_most=False)
