"""Other users of the machine cannot read a store."""

import os
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from belated.serve.store.copy import copy
from belated.serve.store.opening import migrate, open_journal
from tests.support.engines import Driven


@pytest.fixture(autouse=True)
def careless() -> Iterator[None]:
    """New files would be for everybody."""
    before = os.umask(0)
    yield
    os.umask(before)


def modes(folder: Path) -> dict[str, int]:
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}


def test_the_files_of_a_store_belong_to_its_owner(tmp_path: Path) -> None:
    driven = Driven(tmp_path)
    driven.create()
    driven.decide(size=10)
    driven.engine.snapshot()
    with closing(open_journal(driven.path)):
        assert modes(tmp_path) == dict.fromkeys(
            ("belated.db", "belated.db-wal", "belated.db-shm", "belated.db-snapshots"), 0o600
        )
    (tmp_path / "copies").mkdir()
    with closing(open_journal(tmp_path / "copies" / "copy.db")) as target:
        copy(driven.engine.journal, target)
        assert set(modes(tmp_path / "copies").values()) == {0o600}
    driven.engine.journal.close()


def test_a_migrated_file_is_private_too(tmp_path: Path) -> None:
    list(migrate(tmp_path / "new.db"))
    assert modes(tmp_path) == {"new.db": 0o600}


def test_a_store_of_an_older_release_is_taken_from_others(tmp_path: Path) -> None:
    """It was readable for everybody. Its group keeps what it has."""
    driven = Driven(tmp_path)
    driven.create()
    for path in tmp_path.iterdir():
        path.chmod(0o664)
    with closing(open_journal(driven.path)):
        assert set(modes(tmp_path).values()) == {0o660}
    driven.engine.journal.close()
