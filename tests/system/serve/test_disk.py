"""The disk gets full or fails. Acknowledged writes stay, later ones are refused, and the service says so."""

import json
import resource
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import apsw
import httpx
import pytest

from belated.errors import StoreError
from belated.serve.domain.messages import OutcomeReport
from belated.serve.domain.settings import Settings
from belated.serve.engine.requests import Ask, Create, Request, Tell
from belated.serve.process.run import LAST_WORDS, STORE_FAILED
from belated.serve.store.sqlite.journal import SQLiteJournal
from belated.serve.store.verify import verify
from tests.support.clients.engine_work import Fact, Work, lost
from tests.support.power import Disk, Operation, mounted, seeded
from tests.support.service import Served

STORE = "store.db"
STEPS = 20
ROOM = 2**20  # bytes that a file may have on the full disk. The WAL reaches this limit first.
FULL = apsw.FullError("database or disk is full")
BROKEN = apsw.IOError("disk I/O error")


class Fault:
    """Fails the n-th operation of its kind, or of any kind, and all later ones of that kind if it lasts."""

    def __init__(self, kind: Operation | None, number: int, error: apsw.Error, *, lasts: bool) -> None:
        self._kind, self._number, self._error, self._lasts = kind, number, error, lasts
        self._count = 0
        self.files: set[str] = set()  # those with a failed operation

    def __call__(self, operation: Operation, name: str) -> None:
        is_of_kind = self._kind in (None, operation)
        self._count += is_of_kind
        is_due = self._count == self._number or (self._lasts and self._count > self._number)
        if is_of_kind and is_due:
            self.files.add(name)
            raise self._error


def refusal(work: Work, journal: SQLiteJournal, steps: int) -> StoreError | None:
    """Work until a decision or report is refused, if any is. A failed snapshot or key does not count."""
    for step in range(steps):
        name = work.choose()
        try:
            work.do()
        except StoreError as error:
            if name in ("decide", "report", "expire"):
                return error
        if step % 3 == 2:
            with suppress(apsw.Error):  # a failed checkpoint is harmless, because commits are in the WAL
                journal._db.wal_checkpoint()
    return None


def assert_stays_refused(work: Work, cause: str) -> None:
    """Check that writes stay refused even if the disk has recovered, and that reads still work."""
    known = [fact.id for fact in work.facts if hasattr(fact, "arm")]
    asked: list[Request] = [Create(Settings("another", ["a"]))]
    asked += [Ask(name) for name in work.engine.fold.by_name]
    asked += [Tell([OutcomeReport(id, "reward", 0.123, amend=True)]) for id in known[:1]]
    before = work.engine.journal.last()
    for request in asked:
        with pytest.raises(StoreError, match=f"{cause}.*Nothing more is written until a restart"):
            work.engine.process([request])
    assert work.engine.journal.last() == work.engine.fold.seq == before
    assert lost(work.engine, work.facts) == []


@pytest.mark.parametrize(
    ("kind", "error", "lasts", "least"),
    [
        ("write", FULL, True, 120),
        ("write", BROKEN, False, 120),
        ("sync", BROKEN, False, 20),
        ("sync", BROKEN, True, 20),
        ("truncate", BROKEN, False, 2),
    ],
    ids=["full", "write", "sync", "sync-for-good", "truncate"],
)
def test_a_fault_at_any_operation(kind: Operation, error: apsw.Error, lasts: bool, least: int) -> None:
    number, refusals = 0, 0
    while True:
        number += 1
        fault = Fault(kind, number, error, lasts=lasts)
        is_over, is_refused = meet(fault, type(error).__name__, number)
        refusals += is_refused
        if is_over:
            break
    assert number > least
    assert refusals > (number / 3 if kind != "truncate" else -1), "most of them hit a commit"


def meet(fault: Fault, cause: str, seed: int, steps: int = STEPS) -> tuple[bool, bool]:
    """Run with a fault, cut the power, and restart. Returns whether no fault occurred, and whether work was refused."""
    disk, facts, is_refused = Disk(), list[Fact](), False
    disk.listen = fault
    with mounted(disk) as folder:
        journal = open_store(folder, cause)
        if journal is not None:
            is_refused = work_until_refused(journal, facts, cause, steps)
        image = disk.cut(seeded(seed))
        if journal is not None:
            with suppress(StoreError):
                journal.close()
    with mounted(Disk(image)) as folder, closing(SQLiteJournal(STORE, vfs=folder)) as journal:
        assert verify(journal).problems == []
        work = Work(journal, seeded(1000 + seed), facts)
        assert lost(work.engine, facts) == []
        work.create()
        work.decide()
    return not fault.files, is_refused


def open_store(folder: str, cause: str) -> SQLiteJournal | None:
    """Open the store. Returns None if the disk fails before there is one, with an error that names the cause."""
    try:
        return SQLiteJournal(STORE, vfs=folder)
    except StoreError as error:
        if cause not in str(error):
            raise
        return None


def work_until_refused(journal: SQLiteJournal, facts: list[Fact], cause: str, steps: int) -> bool:
    """Return whether a request was refused. If so, check that all later ones are refused too."""
    journal._db.execute("PRAGMA wal_autocheckpoint = 0").fetchall()
    work = Work(journal, seeded(7), facts)
    try:
        work.create()
        refused = refusal(work, journal, steps)
    except StoreError as error:
        refused = error
    if refused is not None:
        assert cause in str(refused)
        assert_stays_refused(work, cause)
    return refused is not None


@contextmanager
def little_room() -> Iterator[None]:
    """Limit the files of processes started here to ROOM bytes, which simulates a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def decide_until_refused(url: str) -> tuple[list[dict[str, Any]], httpx.Response]:
    """Return the acknowledged decisions, and the first response that is a refusal."""
    acknowledged = []
    with httpx.Client(base_url=url) as http:
        while (response := http.post("/v1/experiments/layout/decisions")).status_code == 201:
            acknowledged.append(response.json())
    return acknowledged, response


def test_a_service_whose_disk_gets_full_says_so_and_keeps_what_it_acknowledged(tmp_path: Path) -> None:
    with Served(tmp_path) as served:  # without the limit, because compiled kernels are cached in files too
        assert served.post("/v1/experiments", {"name": "layout", "arms": ["blue", "green"]}).status_code == 201
        first = served.post("/v1/experiments/layout/decisions").json()
        assert served.post(f"/v1/decisions/{first['decision_id']}/feedback", {"reward": 0.25}).status_code == 200
        assert served.stop() == 0
        with little_room():
            served.start()
        acknowledged, refusal = decide_until_refused(served.url)
        assert 10 < len(acknowledged) < 1000
        for response in (
            refusal,
            served.post("/v1/experiments/layout/decisions"),
            served.post("/v1/experiments/layout/decisions/batch", {"size": 3}),
            served.post(f"/v1/decisions/{first['decision_id']}/feedback", {"reward": 0.5, "amend": True}),
            served.post("/v1/experiments", {"name": "another", "arms": ["a"]}),
            served.get("/readyz"),
        ):
            assert response.status_code == 503
            assert response.headers["Content-Type"] == "application/problem+json"
            assert "cannot be written" in response.json()["detail"]
            assert "belated.db" not in response.text  # only the log says where the store is
        assert served.get("/healthz").status_code == 503
        assert served.get("/v1/store").json()["writable"] is False
        assert_all_there(served, first, acknowledged)
        assert served.ended(within=LAST_WORDS + 20) == STORE_FAILED, "so that a supervisor acts"
        lines = [json.loads(line) for line in (tmp_path / "service.log").read_text().splitlines()]
        critical = [line for line in lines if line["level"] == "critical"]
        assert len(critical) == 1
        assert "cannot be written" in critical[0]["error"]
        served.start()
        assert_all_there(served, first, acknowledged)
        assert served.post("/v1/experiments/layout/decisions").json()["round"] == len(acknowledged) + 2
        assert served.stop() == 0
    with closing(SQLiteJournal(tmp_path / "belated.db")) as journal:
        assert verify(journal).problems == []


def assert_all_there(served: Served, first: dict[str, Any], acknowledged: list[dict[str, Any]]) -> None:
    """Check that the service still shows what it acknowledged."""
    told = served.get(f"/v1/decisions/{first['decision_id']}").json()
    assert [one["value"] for one in told["outcomes"]] == [0.25]
    listed = served.get("/v1/experiments/layout/decisions?limit=1000").json()["decisions"]
    assert [{name: one[name] for name in first} for one in listed] == [first, *acknowledged]
    assert [one["outcome"] is None for one in listed] == [False] + [True] * len(acknowledged)
