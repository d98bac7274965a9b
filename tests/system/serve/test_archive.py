"""Decisions leave a store that several servers use, under load and with kill -9. Nothing acknowledged is lost."""

import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any, Final

import httpx
import polars as pl
import pytest

from tests.support.service import Served

KILLS: Final = 3  # of the command, at random moments
OLD: Final = 400  # decisions of the experiment that is archived


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "belated", *arguments]


def run(*arguments: str) -> str:
    done = subprocess.run(command(*arguments), capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "belated.db") if request.param == "sqlite" else request.getfixturevalue("database")


class Caller:
    """Decides and reports, and keeps what was acknowledged."""

    def __init__(self, served: Served) -> None:
        self.served, self.decided, self.reported = served, list[str](), list[str]()

    def work(self, over: Event) -> None:
        with self.served.client() as http:
            number = 0
            while not over.is_set():
                number += 1
                key = {"Idempotency-Key": f"{id(self)} {number}"}
                answer = sent(lambda key=key: http.post("/v1/experiments/live/decisions", headers=key))  # type: ignore[misc]
                assert answer.status_code == 201, answer.text
                self.decided.append(answer.json()["decision_id"])
                if number % 2:
                    report = f"/v1/decisions/{self.decided[-1]}/feedback"
                    answer = sent(lambda report=report: http.post(report, json={"reward": 0.5}))  # type: ignore[misc]
                    assert answer.status_code == 200, answer.text
                    self.reported.append(self.decided[-1])


def sent(request: Callable[[], httpx.Response]) -> httpx.Response:
    """Send a request again while the answer says so, as the client does. A SQLite file that is written anew is busy."""
    while (answer := request()).status_code == 503 and "Retry-After" in answer.headers:
        time.sleep(0.2)
    return answer


@contextmanager
def busy(callers: list[Caller]) -> Iterator[None]:
    over = Event()
    with ThreadPoolExecutor(len(callers)) as pool:
        working = [pool.submit(caller.work, over) for caller in callers]
        try:
            yield
        finally:
            over.set()
            for one in working:
                one.result()


def experiment(served: Served, name: str) -> dict[str, Any]:
    found: dict[str, Any] = served.get(f"/v1/experiments/{name}").json()
    return found


def test_nothing_is_lost_while_decisions_leave_the_store(tmp_path: Path, store: str) -> None:
    draw = random.Random(1)  # noqa: S311
    folder = tmp_path / "archive"
    (tmp_path / "other").mkdir()
    with Served(tmp_path, "--store", store) as one, Served(tmp_path / "other", "--store", store) as other:
        for name in ("old", "live"):
            assert one.post("/v1/experiments", {"name": name, "arms": ["a", "b"]}).status_code == 201
        made = one.post("/v1/experiments/old/decisions/batch", {"size": OLD}).json()["decisions"]
        reports = [{"decision_id": decision["decision_id"], "reward": 1} for decision in made[: OLD // 2]]
        assert one.post("/v1/feedback", {"reports": reports}).status_code == 200
        assert one.post("/v1/experiments/old/close").status_code == 200
        before = experiment(one, "old")
        callers = [Caller(one), Caller(other)]
        with busy(callers):
            archive = command("archive", "--store", store, "--to", str(folder), "--grace", "0.5")
            for _ in range(KILLS):
                with subprocess.Popen(archive, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as killed:  # noqa: S603
                    time.sleep(draw.uniform(0.8, 3.0))
                    killed.kill()
            done = subprocess.run(archive, capture_output=True, text=True, check=False)  # noqa: S603
            is_done = "nothing to archive" in done.stdout and len(list(folder.glob("old-*.parquet"))) > 1
            assert done.returncode == 0 or is_done, done.stderr
            erased = [caller.decided[index] for caller in callers for index in (0, 1, 2)]
            assert "erased 6 decisions" in run("erase", "--store", store, "--grace", "0.5", *erased)
            time.sleep(0.5)
        servers = (one, other)
        assert [served.process.poll() for served in servers] == [None, None], one.log()[-2000:]
        for served in servers:
            shown = experiment(served, "old")
            assert {key: shown[key] for key in ("counts", "arms", "closed_at") if key in shown} == {
                key: before[key] for key in ("counts", "arms", "closed_at") if key in before
            }
            gone = served.get(f"/v1/decisions/{made[-1]['decision_id']}")
            assert gone.status_code == 404
            assert "may have been archived or erased" in gone.json()["detail"]
            assert {served.get(f"/v1/decisions/{id}").status_code for id in erased} == {404}
            sample = [id for caller in callers for id in draw.sample(caller.decided[3:], 20)]
            assert {served.get(f"/v1/decisions/{id}").status_code for id in sample} == {200}
        exported = one.get("/v1/experiments/live/export.csv").text.splitlines()[1:]
        acknowledged = {id for caller in callers for id in caller.decided} - set(erased)
        assert {row.split(",")[0] for row in exported} == acknowledged
        assert one.get("/v1/experiments/old/export.csv").text.count("\n") == 1
        assert [served.stop() for served in servers] == [0, 0]
    said = run("verify", "--store", store)
    assert "the same, bit for bit" in said or "no damage found" in said
    logs = [file for file in folder.glob("old-*.parquet") if ".journal" not in file.name and file.stat().st_size]
    archived = pl.concat(map(pl.read_parquet, logs)).unique("decision_id")
    assert set(archived["decision_id"]) == {decision["decision_id"] for decision in made}
    assert archived.filter(pl.col("status") == "open").height == OLD // 2
    with Served(tmp_path, "--store", store) as again:
        n_reported = sum(len(caller.reported) for caller in callers)
        n_decided = sum(len(caller.decided) for caller in callers)
        counts = experiment(again, "live")
        assert (counts["decisions"], counts["reported"]) == (n_decided, n_reported), counts.keys()
