"""Snapshots are saved by a process of their own, one for a store, which ends with its server."""

import os
from contextlib import closing
from pathlib import Path

import pytest

from belated.serve.engine.engine import SNAPSHOT_EVERY
from belated.serve.process import snapshots
from belated.serve.store.opening import open_journal
from belated.serve.store.sqlite.journal import SQLiteJournal
from belated.serve.store.verify import verify
from tests.support.clients.crowd import started
from tests.support.service import Served
from tests.support.waiting import until

BATCH = 10_000
PATIENCE = 60.0  # seconds until a snapshot must be there


def fill(served: Served, batches: int) -> None:
    for _ in range(batches):
        assert served.post("/v1/experiments/layout/decisions/batch", {"size": BATCH}).status_code == 201


def children(pid: int) -> set[int]:
    """The snapshot processes of a server."""
    found = set()
    for one in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((one / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == pid and snapshots.__name__ in (one / "cmdline").read_text():
                found.add(int(one.name))
        except OSError:
            continue  # it has just ended
    return found


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return "Z" in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (ProcessLookupError, FileNotFoundError):
        return True


def test_a_process_saves_snapshots_while_the_server_answers(tmp_path: Path) -> None:
    with Served(tmp_path) as served:
        served.post("/v1/experiments", {"name": "layout", "arms": ["a", "b", "c"]})
        fill(served, SNAPSHOT_EVERY // BATCH + 1)
        with closing(SQLiteJournal(tmp_path / "belated.db", readonly=True)) as journal:
            until(lambda: journal.snapshot_seq() >= SNAPSHOT_EVERY, PATIENCE)
            assert served.post("/v1/experiments/layout/decisions").status_code == 201
            [child] = children(served.process.pid)
            served.kill()
            until(lambda: is_gone(child), PATIENCE)  # it notices that its server has ended
            assert verify(journal).problems == []
    with Served(tmp_path) as served:
        assert served.get("/v1/store").json()["unsnapshotted"] < 2 * BATCH


def test_the_process_ends_with_its_server(tmp_path: Path) -> None:
    with Served(tmp_path) as served:
        served.post("/v1/experiments", {"name": "layout", "arms": ["a", "b", "c"]})
        fill(served, SNAPSHOT_EVERY // BATCH + 1)
        until(lambda: bool(children(served.process.pid)), PATIENCE)
        [child] = children(served.process.pid)
        assert served.stop() == 0
        assert is_gone(child)


def test_one_of_several_servers_saves_the_snapshots(database: str, tmp_path: Path) -> None:
    with started(database, tmp_path, 2) as servers, closing(open_journal(database)) as journal:
        servers[0].post("/v1/experiments", {"name": "layout", "arms": ["a", "b", "c"]})
        for served in servers:
            fill(served, SNAPSHOT_EVERY // BATCH // 2 + 1)
        until(lambda: journal.snapshot_seq() >= SNAPSHOT_EVERY, PATIENCE)
        until(lambda: sum(len(children(served.process.pid)) for served in servers) == 1, PATIENCE)
        assert not journal.claim_snapshots()


def test_a_process_that_fails_is_started_again_after_a_pause(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "RESTART_PAUSE", 0.5)
    process = snapshots.SnapshotProcess(tmp_path / "no folder" / "belated.db")

    def pid() -> int:
        process.start()
        assert process._process is not None
        return process._process.pid

    first = pid()
    assert pid() == first
    assert process._process is not None
    assert process._process.wait(PATIENCE) == 1
    until(lambda: pid() != first, PATIENCE)
    process.stop()
