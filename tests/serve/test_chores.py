"""What the writer's thread does besides decisions may fail. No decision needs it, so decisions go on."""

import asyncio
from typing import Any

import pytest

from belated.errors import StoreError
from belated.serve.service import service as serving
from belated.serve.service.service import Service
from belated.serve.store.journal import Busy, Rejected
from tests.support.engines import Driven
from tests.support.in_process import Caller, visit
from tests.support.waiting import until

ERRORS = [StoreError("no"), Busy("no"), Rejected("no"), UnicodeEncodeError("utf-8", "\ud800", 0, 1, "no")]


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("chore", ["note_uses", "note", "forget_requests"])
def test_a_chore_that_fails_stops_no_decision(
    driven: Driven, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, chore: str, error: Exception
) -> None:
    """Such as a table that a newer release, or somebody else, has changed."""
    monkeypatch.setattr(serving, "NOTE_EVERY", 0.0)
    driven.create()
    service, failed = Service(driven.engine), list[str]()

    def fail(*_: Any) -> Any:
        failed.append(chore)
        raise error

    async def work(caller: Caller) -> None:
        admin = caller.having((await caller.post("/v1/keys", {"scopes": ["admin"]})).json()["key"])
        monkeypatch.setattr(driven.engine.journal, chore, fail)
        driven.engine._forgetting._not_before = 0.0
        assert (await caller.get("/v1/keys")).status_code == 401  # which is noted soon
        assert (await admin.get("/v1/keys")).status_code == 200
        await asyncio.to_thread(until, lambda: bool(failed))
        assert (await admin.post("/v1/experiments/layout/decisions")).status_code == 201
        assert service.failure == ""

    visit(service, work)
    assert [one for one in caplog.records if one.levelname == "CRITICAL"] == []


@pytest.mark.parametrize("error", [StoreError("no"), Rejected("no")])
def test_a_change_that_cannot_be_noted_is_not_acknowledged(
    driven: Driven, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    service = Service(driven.engine)

    def fail(*_: Any) -> Any:
        raise error

    async def work(caller: Caller) -> None:
        admin = caller.having((await caller.post("/v1/keys", {"scopes": ["admin"]})).json()["key"])
        monkeypatch.setattr(driven.engine.journal, "note", fail)
        made = await admin.post("/v1/experiments", {"name": "layout", "arms": ["a", "b"]})
        assert (made.status_code, "audit trail" in made.json()["detail"]) == (503, True)

    visit(service, work)
