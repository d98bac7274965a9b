"""The page knows what of an experiment has left the store."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from belated.errors import StoreUnreachable
from belated.serve.domain.timestamps import iso
from belated.serve.engine.recent import Removed
from belated.serve.service import archived
from belated.serve.service.archived import Archived, looks
from belated.serve.service.descriptions import ArchiveView
from belated.serve.store.journal import Journal
from tests.support.engines import Driven
from tests.support.removals import removed


class Asked:
    """A reader that counts the questions, and may be cut off."""

    def __init__(self, journal: Journal) -> None:
        self.journal, self.questions, self.is_cut = journal, 0, False

    def ask(self, question: Callable[[Journal], Any]) -> Any:
        self.questions += 1
        if self.is_cut:
            raise StoreUnreachable("gone")
        return question(self.journal)


def test_what_is_missing_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    driven = Driven(tmp_path)
    driven.create()
    engine = driven.engine
    first = driven.decide(size=3)
    driven.clock.advance(60)
    driven.decide(size=2)
    reader = Asked(engine.journal)
    told = Archived(reader)  # type: ignore[arg-type]  # it asks as a reader does
    assert told.view(driven["layout"], engine.removed) is None
    assert reader.questions == 0
    monkeypatch.setattr(archived, "LOOK_EVERY", -1.0)
    at = driven.clock.now
    removed(engine.journal, at, decisions=(3,))
    engine.catch_up()
    assert told.view(driven["layout"], engine.removed) == ArchiveView(iso(at), 0, iso(first[0].at)), "one in the middle"
    removed(engine.journal, at, decisions_until=4)
    engine.catch_up()
    assert told.view(driven["layout"], engine.removed) == ArchiveView(iso(at), 3, iso(at))
    monkeypatch.undo()
    removed(engine.journal, at + 1, experiments=(1,))
    engine.catch_up()
    gone = ArchiveView(iso(at + 1), 5, None)
    questions = reader.questions
    for _ in range(3):
        assert told.view(driven["layout"], engine.removed) == gone
    assert reader.questions == questions + 1, "it looks only now and then"
    monkeypatch.setattr(time, "monotonic", lambda: 1e12)
    reader.is_cut = True
    questions = reader.questions
    for _ in range(3):
        assert told.view(driven["layout"], engine.removed) == gone, "the page can still be read"
    assert Archived(reader).view(driven["layout"], engine.removed) is None  # type: ignore[arg-type]
    assert reader.questions == questions + 2, "and does not wait each time"
    assert [looks(engine.removed, at + 1 + seconds * 10**6) for seconds in (0, 3, 4, 10**6)] == [0, 1, 2, 1800]
    assert looks(Removed(), at) == 0
    driven.create("young")
    driven.decide("young")
    assert told.view(driven["young"], engine.removed) is None, "it began later"
