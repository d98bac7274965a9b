"""Who may do what while the access keys cannot be read from the store."""

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from belated.errors import StoreUnreachable
from belated.serve.domain.entries import Entry
from belated.serve.domain.history import Mark
from belated.serve.domain.refusals import Refusal
from belated.serve.engine.engine import Engine
from belated.serve.http import app
from belated.serve.service import keys
from belated.serve.service.keys import KEYS_TIMEOUT, READING_TIMEOUT, Gate
from belated.serve.service.service import Service
from belated.serve.store.journal import NO_MARK, Key
from tests.support.memory_journal import MemoryJournal, MemoryStore
from tests.support.waiting import until


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    time = [1000.0]
    monkeypatch.setattr("belated.serve.service.keys.time", SimpleNamespace(monotonic=lambda: time[0]))
    return time


def outcome(gate: Gate, text: str, *, is_reading: bool) -> str:
    try:
        return gate.admit(text, "admin", is_reading=is_reading).scope
    except Refusal as refusal:
        return refusal.kind


def test_known_keys_may_read_for_an_hour(now: list[float]) -> None:
    valid, text = keys.new("admin", None)
    revoked, old = keys.new("admin", None)
    gate = Gate([valid, revoked._replace(revoked_at=1)])
    _, unknown = keys.new("admin", None)
    guess = f"{text[:-4]}0000"
    expected = {
        0.0: ("admin", "admin", "unauthenticated"),
        KEYS_TIMEOUT: ("admin", "admin", "unauthenticated"),
        KEYS_TIMEOUT + 1: ("admin", "unavailable", "unavailable"),
        READING_TIMEOUT: ("admin", "unavailable", "unavailable"),
        READING_TIMEOUT + 1: ("unavailable", "unavailable", "unavailable"),
    }
    for age, (reading, writing, strange) in expected.items():
        now[0] = 1000.0 + age
        assert outcome(gate, text, is_reading=True) == reading
        assert outcome(gate, text, is_reading=False) == writing
        for wrong in (unknown, guess):
            assert {outcome(gate, wrong, is_reading=one) for one in (True, False)} == {strange}
        for wrong in (old, "", "nonsense"):
            assert {outcome(gate, wrong, is_reading=one) for one in (True, False)} == {"unauthenticated"}
    gate.learn([valid])
    assert outcome(gate, text, is_reading=False) == "admin"


class CutJournal(MemoryJournal):
    """A journal whose store can be cut off."""

    is_cut = False

    def _check(self) -> None:
        if self.is_cut:
            raise StoreUnreachable("cut")

    def append(self, entries: Sequence[Entry], mark: Mark = NO_MARK) -> list[int]:
        self._check()
        return super().append(entries, mark)

    def read(self, after: int, limit: int) -> list[Entry]:
        self._check()
        return super().read(after, limit)

    def keys(self) -> list[Key]:
        self._check()
        return super().keys()


def test_documents_and_metrics_can_be_read_during_an_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    journal = CutJournal(MemoryStore())
    admin = {"Authorization": f"Bearer {keys.create(journal, 'admin', None)}"}
    stranger = {"Authorization": f"Bearer {keys.new('admin', None)[1]}"}
    service = Service(Engine(journal))

    async def visit() -> None:
        service.start(asyncio.get_running_loop())
        transport = httpx.ASGITransport(app.build(service))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            made = await client.post("/v1/experiments", json={"name": "layout", "arms": ["a"]}, headers=admin)
            assert made.status_code == 201
            journal.is_cut = True
            await asyncio.to_thread(until, lambda: bool(service.failure))
            monkeypatch.setattr("belated.serve.service.keys.KEYS_TIMEOUT", 0.0)  # as if 15 seconds had passed
            for path in ("/metrics", "/v1/store", "/v1/experiments", "/v1/experiments/layout"):
                assert (await client.get(path, headers=admin)).status_code == 200, path
                assert (await client.get(path, headers=stranger)).status_code == 503, path
                assert (await client.get(path)).status_code == 401, path
            refused: Any = await client.post("/v1/experiments/layout/decisions", headers=admin)
            assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")
            assert "belated_store_writable 0.0" in (await client.get("/metrics", headers=admin)).text

    try:
        asyncio.run(visit())
    finally:
        journal.is_cut = False
        service.stop()
