"""The last snapshot of a server that stops. At most one is saved at a time."""

import asyncio
from pathlib import Path

import pytest

from belated.serve.domain.fold import Snapshot
from belated.serve.domain.settings import Settings
from belated.serve.engine import writer
from belated.serve.engine.engine import Engine
from belated.serve.process.snapshots import SnapshotProcess
from belated.serve.service.service import Service
from belated.serve.store.sqlite.journal import SQLiteJournal


async def serve(service: Service) -> None:
    service.start(asyncio.get_running_loop())
    await service.create(Settings("layout", ["a", "b"]))


def test_the_process_that_saves_snapshots_ends_before_the_last_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps, save = list[str](), SQLiteJournal.save

    def note(journal: SQLiteJournal, snapshot: Snapshot) -> None:
        steps.append("saved")
        save(journal, snapshot)

    monkeypatch.setattr(SQLiteJournal, "save", note)
    engine = Engine(SQLiteJournal(tmp_path / "belated.db"))
    service = Service(engine, make_snapshot=lambda: None, end_snapshots=lambda: steps.append("ended"))
    asyncio.run(serve(service))
    service.stop()
    assert steps == ["ended", "saved"]


@pytest.mark.parametrize("releases", [True, False])
def test_it_waits_a_moment_for_whoever_saves_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, releases: bool
) -> None:
    monkeypatch.setattr(writer, "CLAIM_TIMEOUT", 0.2)
    store = tmp_path / "belated.db"
    other = SQLiteJournal(store)
    assert other.claim_snapshots()
    service = Service(Engine(SQLiteJournal(store)), end_snapshots=other.close if releases else lambda: None)
    asyncio.run(serve(service))
    service.stop()
    reader = SQLiteJournal(store, readonly=True)
    assert reader.snapshot_seq() == (1 if releases else 0)
    reader.close()
    if not releases:
        other.close()


def test_a_process_that_was_stopped_is_not_started_again(tmp_path: Path) -> None:
    """The writer may still find a snapshot due while the server stops."""
    process = SnapshotProcess(tmp_path / "belated.db")
    process.stop()
    process.start()
    assert process._process is None
