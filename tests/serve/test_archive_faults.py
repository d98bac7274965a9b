"""An archive beside another command, or on a machine with a wrong clock."""

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from belated.errors import StoreError
from belated.serve.archive import archiving, erasing
from belated.serve.domain import timestamps
from belated.serve.domain.timestamps import MICROSECONDS, now
from belated.serve.store.removal import loaded
from belated.serve.store.sqlite.journal import SQLiteJournal
from belated.serve.store.verify import verify
from tests.serve.test_archive import CLOSED, archived, run
from tests.support.engines import Driven


@pytest.mark.parametrize("step", ["put_base", "settle", "begin"])
def test_of_two_commands_at_once_one_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    driven, work = Driven(tmp_path), getattr(archiving, step)
    driven.create()
    first, _ = driven.decide(size=2)
    driven.close()

    def erase_first(*arguments: Any) -> Any:
        wanted = erasing.decoded([first.id])
        with closing(SQLiteJournal(driven.path)) as other:
            erasing.erase(other, wanted, 0.0, pause=0.0)
        return work(*arguments)

    with closing(SQLiteJournal(driven.path)) as journal, monkeypatch.context() as patch:
        patch.setattr(archiving, step, erase_first)
        fold = loaded(journal)
        choice = archiving.choose(journal, fold, CLOSED)
        with pytest.raises(StoreError, match=r"Run (this one|the command) again"):
            archiving.archive(journal, fold, choice, tmp_path / "first", 0.0, lambda *_: None)
    driven.restart()
    assert verify(driven.engine.journal).problems == []
    assert driven["layout"].failure is None
    [one] = archived(driven, tmp_path / "archive")
    assert one.decisions == 1


def test_a_wrong_clock_does_not_make_decisions_look_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A database has a clock of its own."""
    driven = Driven(tmp_path)
    driven.clock.now = now()
    driven.create()
    driven.decide(size=3)
    driven.clock.advance(40 * 86_400)
    command = ("archive", "--store", str(driven.path), "--to", str(tmp_path / "archive"), "--grace", "0")
    monkeypatch.setattr(SQLiteJournal, "clock", lambda _: driven.clock.now)
    year = 365 * 86_400 * MICROSECONDS
    for module in (archiving, timestamps):
        monkeypatch.setattr(module, "now", lambda: driven.clock.now + year)
    assert "nothing to archive" in run(*command, "--older-than", "50d").lower()
    for module in (archiving, timestamps):
        monkeypatch.setattr(module, "now", lambda: driven.clock.now - year)
    assert "nothing to archive" in run(*command, "--older-than", "30d").lower(), "rather too few than too many"
    monkeypatch.undo()
    monkeypatch.setattr(timestamps, "now", lambda: driven.clock.now)
    assert "archived 3 decisions" in run(*command, "--older-than", "30d")
