"""A start that takes long says so."""

import logging
from pathlib import Path

import pytest

from belated.serve.domain.settings import Settings
from belated.serve.engine.engine import Engine
from belated.serve.engine.requests import Create
from belated.serve.store import loading
from belated.serve.store.sqlite.journal import SQLiteJournal


def test_a_start_that_takes_long_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = SQLiteJournal(tmp_path / "belated.db")
    Engine(journal).process([Create(Settings(name, ["blue", "red"])) for name in ("page", "mail", "banner")])
    caplog.set_level(logging.INFO, "belated.store")
    monkeypatch.setattr(loading, "PAGE", 2)
    loading.load(journal)
    assert caplog.messages == []
    monkeypatch.setattr(loading, "TELL_AFTER", -1.0)
    monkeypatch.setattr(loading, "TELL_EVERY", -1.0)
    loading.load(journal)
    assert [(one.message, vars(one)["entry"]) for one in caplog.records] == [
        ("applying the journal", n) for n in (2, 3)
    ]
    journal.close()
