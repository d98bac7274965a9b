"""Evaluations over OFREP against the service's own route, in one run, for new subjects and for known ones."""

import tempfile
from pathlib import Path

from benchmarks.decision_service import CONNECTIONS, EXPERIMENT, MANY_OPEN, REPEATS, load
from benchmarks.judging import judge
from tests.support.service import Served

KNOWN = 1_000
SCRIPT = """
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
math.randomseed(os.time())
local run, count, known = string.format("%d-%d", os.time(), math.random(1000000000)), 0, {known}
function request()
  count = count + 1
  local subject = known > 0 and tostring(count % known) or run .. "-" .. count
  return wrk.format(nil, nil, nil, [[{before}]] .. subject .. [[{after}]])
end
"""
ROUTES = {
    "native": ("/v1/experiments/layout/decisions", '{"subject":"', '"}'),
    "ofrep": ("/ofrep/v1/evaluate/flags/layout", '{"context":{"targetingKey":"', '"}}'),
}


def evaluations() -> None:
    """One worker and 32 connections. Both routes take turns, and each request has a subject."""
    for known, what in ((0, "new subjects"), (KNOWN, f"{KNOWN:,} known subjects")):
        print(f"\nservice: evaluations over OFREP, {what}, {CONNECTIONS} connections")
        judge_evaluations(known, what)


def judge_evaluations(known: int, what: str) -> None:
    """The best of some turns of each route."""
    best = dict.fromkeys(ROUTES, 0.0)
    with tempfile.TemporaryDirectory() as folder, Served(Path(folder), *MANY_OPEN) as served:
        served.post("/v1/experiments", EXPERIMENT)
        served.post("/v1/experiments/layout/decisions")
        script = Path(folder, "post.lua")
        for _ in range(REPEATS):
            for route, (path, before, after) in ROUTES.items():
                named = SCRIPT.replace("{known}", str(known)).replace("{before}", before).replace("{after}", after)
                script.write_text(named)
                best[route] = max(best[route], load(f"{served.url}{path}", script)[0])
    print(f"  native {best['native']:,.0f}/s, OFREP {best['ofrep']:,.0f}/s")
    judge(f"OFREP / the native route, {what}", best["ofrep"] / best["native"], 0.8, "", at_most=False)
