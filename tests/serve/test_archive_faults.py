"""An archive beside another command, or on a machine with a wrong clock."""

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from belated.errors import StoreError
from belated.serve.archive import archiving, erasing
from belated.serve.domain import timestamps
from belated.serve.domain.entries import EntryKind
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


@pytest.mark.parametrize("is_followed", [True, False])
def test_a_decision_that_is_dated_ahead_does_not_keep_old_ones_in_the_store(tmp_path: Path, is_followed: bool) -> None:
    """Otherwise nothing could be archived for as long as the clock was wrong by."""
    driven, day = Driven(tmp_path), 86_400
    driven.clock.now = now() - 100 * day * MICROSECONDS
    driven.create()
    driven.decide()
    right, driven.clock.now = driven.clock.now, now() + 365 * day * MICROSECONDS
    driven.decide()
    driven.clock.now = right
    if is_followed:
        driven.decide()
    driven.clock.now = now() - day * MICROSECONDS
    driven.decide()
    command = ("archive", "--store", str(driven.path), "--to", str(tmp_path / "archive"), "--grace", "0")
    expected = "archived 3 decisions" if is_followed else "archived 1 decision"
    assert expected in run(*command, "--older-than", "30d")


def test_commands_write_the_time_of_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine whose clock is a year ahead makes no key that lives a year longer, and no base of next year."""
    driven = Driven(tmp_path)
    driven.create()
    [first, _] = driven.decide(size=2)
    driven.close()
    at, year = driven.clock.now, 365 * 86_400 * MICROSECONDS
    monkeypatch.setattr(SQLiteJournal, "clock", lambda _: at)
    for module in (archiving, timestamps):
        monkeypatch.setattr(module, "now", lambda: at + year)
    store = ("--store", str(driven.path))
    run("keys", "create", "--scope", "read", "--expires-in", "1d", *store)
    [key] = driven.engine.journal.keys()
    assert (key.created_at, key.expires_at) == (at, at + 86_400 * MICROSECONDS)
    run("keys", "rotate", key.id, *store)
    run("keys", "revoke", key.id, *store)
    after = driven.engine.journal.keys()
    assert [(one.created_at, one.revoked_at) for one in after if one.id == key.id] == [(at, at)]
    assert [(one.created_at, one.revoked_at) for one in after if one.id != key.id] == [(at, None)]
    assert [one.first for one in driven.engine.journal.records(0, 10)] == [at] * 3
    assert "erased" in run("erase", first.id, "--grace", "0", *store)
    assert "archived 1 decision" in run("archive", "--to", str(tmp_path / "archive"), "--grace", "0", *store)
    written = driven.engine.journal.left(0, driven.engine.journal.last(), 100)
    assert {entry.kind for entry in written} >= {EntryKind.BASE, EntryKind.REMOVED}
    assert {entry.at for entry in written} == {at}
