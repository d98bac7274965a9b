"""The file of snapshots beside a SQLite store."""

import shutil
from contextlib import closing
from pathlib import Path

import apsw

from belated.serve.domain.fold import Snapshot
from belated.serve.store.sqlite.snapshot_file import SUFFIX, SnapshotFile
from tests.support.engines import Driven


def test_a_file_whose_writer_was_killed_can_be_read_again(tmp_path: Path) -> None:
    """It has a hot journal, which only a connection that may write can roll back."""
    whole, killed = SnapshotFile(tmp_path / "whole"), SnapshotFile(tmp_path / "killed")
    whole.save(Snapshot(5, 1, b"state"))
    with closing(apsw.Connection(str(whole.path))) as database:
        database.execute("PRAGMA cache_size = 1").fetchall()
        database.execute("BEGIN IMMEDIATE; DELETE FROM saved_snapshots").fetchall()
        for number in range(200):  # so much that it is written before the commit
            database.execute("INSERT INTO snapshot_parts VALUES (9, ?, zeroblob(5000))", (number,)).fetchall()
        shutil.copy(whole.path, killed.path)
        shutil.copy(f"{whole.path}-journal", f"{killed.path}-journal")
    assert killed.seq() == 5
    assert killed.load() == [Snapshot(5, 1, b"state")]


def test_a_snapshot_with_a_flipped_bit_is_not_used(driven: Driven) -> None:
    """Most flipped bits give another state, not an error."""
    driven.create()
    for decision in driven.decide(size=20)[::2]:
        driven.tell(decision, 0.5)
    driven.engine.snapshot()
    expected = driven.engine.fold.snapshot()
    for position in range(0, len(expected.state), len(expected.state) // 40):
        flipped = bytearray(expected.state)
        flipped[position] ^= 1
        with closing(apsw.Connection(f"{driven.path}{SUFFIX}")) as database:
            database.execute("UPDATE snapshot_parts SET state = ? WHERE number = 0", (bytes(flipped),)).fetchall()
        driven.restart()
        assert driven.engine.fold.restored == 0
        assert driven.engine.fold.snapshot() == expected


def test_a_snapshot_of_an_older_release_has_no_digest(driven: Driven) -> None:
    driven.create()
    driven.decide(size=20)
    driven.engine.snapshot()
    with closing(apsw.Connection(f"{driven.path}{SUFFIX}")) as database:
        database.execute("DELETE FROM snapshot_parts WHERE number = 1").fetchall()
        assert database.total_changes() == 1
    driven.restart()
    assert driven.engine.fold.restored == 21


def test_a_damaged_file_is_said_to_have_what_it_had(tmp_path: Path) -> None:
    file = SnapshotFile(tmp_path / "store")
    assert file.seq() == 0
    file.save(Snapshot(7, 1, b"state"))
    assert file.seq() == 7
    Path(f"{tmp_path / 'store'}{SUFFIX}").write_bytes(b"nonsense" * 1000)
    assert file.seq() == 7
