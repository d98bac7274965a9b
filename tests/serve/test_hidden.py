"""Entries that an open transaction of somebody else hides. Only who needs them waits."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from belated.serve.domain.entries import Entry
from belated.serve.domain.messages import OutcomeReport, ReportStatus
from belated.serve.domain.refusals import Refusal
from belated.serve.domain.settings import ArmChange, Settings
from belated.serve.engine.engine import Engine
from belated.serve.engine.requests import Answers, Ask, ChangeArms, Close, Create, Hidden, Request, Tell
from belated.serve.service.service import Service
from belated.serve.store.verify import verify
from tests.support.engines import Driven
from tests.support.memory_journal import MemoryJournal, MemoryStore

WAIT = 0.4  # seconds that a caller waits in these tests


class Fog:
    """From which entry on an open transaction hides entries."""

    def __init__(self) -> None:
        self.after = 10**9
        self.looks = 0


class FoggedJournal(MemoryJournal):
    """A journal in which some entries are written, but cannot be read in order yet. Numbers have gaps, too."""

    def __init__(self, store: MemoryStore, fog: Fog) -> None:
        super().__init__(store)
        self._fog = fog

    def read(self, after: int, limit: int) -> list[Entry]:
        self._fog.looks += 1
        return [entry for entry in super().read(after, limit) if entry.seq <= self._fog.after]


class Pair:
    """Two servers on one store. The second one is in the fog."""

    def __init__(self, tmp_path: Path) -> None:
        store, self.fog = MemoryStore(), Fog()
        self.clear = Driven(tmp_path, opening=lambda: MemoryJournal(store))
        self.clear.create("known")
        self.fogged = Driven(tmp_path, clock=self.clear.clock, opening=lambda: FoggedJournal(store, self.fog))

    def hide(self) -> None:
        """Hide everything that is written from now on."""
        self.fog.after = self.clear.engine.journal.last()

    def lift(self) -> None:
        self.fog.after = 10**9


@pytest.fixture
def pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pair:
    monkeypatch.setattr("belated.serve.engine.writer.CATCH_UP_TIMEOUT", WAIT)
    return Pair(tmp_path)


def serve(engine: Engine, visit: Callable[[Service], Awaitable[None]]) -> None:
    """Run `visit` while a service with a writer's thread uses the engine."""

    async def run() -> None:
        service.start(asyncio.get_running_loop())
        await visit(service)

    service = Service(engine)
    try:
        asyncio.run(run())
    finally:
        service.stop()
    assert service.failure == ""


async def timed(work: Awaitable[Any]) -> tuple[float, Any]:
    """The seconds that it takes, and what comes of it."""
    began = time.monotonic()
    try:
        result = await work
    except Refusal as refusal:
        result = refusal
    return time.monotonic() - began, result


@pytest.mark.parametrize("what", ["ask", "tell", "change", "close", "create", "arms"])
def test_only_the_caller_who_needs_a_hidden_entry_waits(pair: Pair, what: str) -> None:
    if what == "arms":
        pair.clear.create("new", ("a", "b"))
        pair.fogged.engine.catch_up()
    pair.hide()
    if what == "arms":
        pair.clear.change("new", add=("c",), retire=("a", "b"))
    else:
        pair.clear.create("new")
    [decision] = pair.clear.decide("new", 1, "key")
    calls: dict[str, Callable[[Service], Awaitable[Any]]] = {
        "ask": lambda service: service.ask("new"),
        "arms": lambda service: service.ask("new", 1, "key"),
        "tell": lambda service: service.tell([OutcomeReport(decision.id, "reward", 1.0)]),
        "change": lambda service: service.change_arms("new", ArmChange(["d"])),
        "close": lambda service: service.close_experiment("new"),
        "create": lambda service: service.create(Settings("new", ["a", "b", "c"])),
    }

    async def visit(service: Service) -> None:
        waiting = asyncio.create_task(timed(calls[what](service)))
        others = 0
        while not waiting.done():
            await service.ask("known")
            others += 1
        waited, result = await waiting
        refused = result[0] if isinstance(result, list) else result
        assert isinstance(refused, Refusal)
        assert (refused.kind, refused.retry_after) == ("unavailable", 1)
        assert "this server is behind" in refused.detail
        assert waited >= WAIT
        assert others > 10, "nobody else waits"
        again = asyncio.create_task(timed(calls[what](service)))
        await asyncio.sleep(0.05)
        pair.lift()
        waited, result = await again
        assert not isinstance(result, Refusal)
        assert waited < WAIT

    serve(pair.fogged.engine, visit)
    assert verify(pair.clear.engine.journal).problems == []


@pytest.mark.parametrize("what", ["create", "change", "close"])
def test_a_change_that_is_written_but_hidden_is_answered_when_it_is_visible(pair: Pair, what: str) -> None:
    pair.clear.decide("known")  # so that the other server does not apply its own entries at once
    pair.hide()
    pair.clear.decide("known")
    requests: dict[str, Request] = {
        "create": Create(Settings("own", ["a", "b"])),
        "change": ChangeArms("known", ArmChange(["new"])),
        "close": Close("known"),
    }
    engine, request = pair.fogged.engine, requests[what]
    engine.catch_up()
    [hidden] = engine.process([request])
    assert isinstance(hidden, Hidden)
    written = engine.journal.last()
    assert (hidden.seq, hidden.changed) == (written, "own" if what == "create" else "known")
    pair.lift()
    engine.catch_up()
    [(experiment, is_new)] = engine.resume([(request, hidden)], may_wait=True)  # type: ignore[misc]
    assert (experiment.name, is_new) == (hidden.changed, True)
    assert engine.journal.last() == written, "it was written once"


def test_a_group_that_creates_a_hidden_experiment_knows_of_it(pair: Pair) -> None:
    pair.hide()
    pair.clear.decide("known")
    results = pair.fogged.engine.process([Create(Settings("own", ["a", "b"])), Ask("own"), Ask("unheard of")])
    assert isinstance(results[0], Hidden)
    assert isinstance(results[1], Hidden)
    assert isinstance(results[2], Refusal)


def test_reports_in_one_request_are_judged_once(pair: Pair) -> None:
    [first] = pair.clear.decide("known")
    pair.fogged.engine.catch_up()
    pair.hide()
    pair.clear.create("new")
    [second] = pair.clear.decide("new")
    engine, reports = pair.fogged.engine, [OutcomeReport(one.id, "reward", 1.0) for one in (first, second)]
    results = engine.process([Tell(reports), Ask("known")])
    assert isinstance(results[0], Hidden)
    assert isinstance(results[1], Answers)
    pair.lift()
    engine.catch_up()
    assert engine.resume([(Tell(reports), results[0])], may_wait=True) == [[ReportStatus("applied", 0)] * 2]


def test_who_may_not_wait_any_more_gets_what_can_be_had(pair: Pair) -> None:
    [first] = pair.clear.decide("known")
    pair.fogged.engine.catch_up()
    pair.hide()
    pair.clear.create("new")
    [second] = pair.clear.decide("new")
    reports = [OutcomeReport(one.id, "reward", 1.0) for one in (first, second)]
    [[applied, refused]] = pair.fogged.engine.process([Tell(reports)], may_wait=False)  # type: ignore[misc]
    assert (applied.status, refused.kind) == ("applied", "unavailable")


def test_a_crowd_that_asks_for_a_hidden_experiment_costs_one_look(pair: Pair) -> None:
    pair.hide()
    pair.clear.create("new")
    engine, before = pair.fogged.engine, pair.fog.looks
    results = engine.process([Ask("new", 1, f"key {number}") for number in range(50)])
    assert all(isinstance(one, Hidden) for one in results)
    assert pair.fog.looks == before + 1


def test_all_who_wait_are_answered_when_the_service_stops(pair: Pair) -> None:
    pair.hide()
    pair.clear.create("new")

    async def visit(service: Service) -> None:
        waiting = asyncio.create_task(timed(service.ask("new")))
        await asyncio.sleep(0.05)
        await asyncio.to_thread(service._writer.stop)
        _, result = await asyncio.wait_for(waiting, 5)
        assert isinstance(result, Refusal)

    serve(pair.fogged.engine, visit)


def test_a_wait_is_not_over_because_of_a_report_that_may_still_be_lost(tmp_path: Path) -> None:
    """A failover may lose a report that was found, but not applied yet. Then the wait has to end after all."""
    store, fog = MemoryStore(), Fog()
    clear = Driven(tmp_path, opening=lambda: MemoryJournal(store))
    clear.create("strict", reward_wait=10.0)
    [first, _second] = clear.decide("strict", 2)
    fogged = Driven(tmp_path, clock=clear.clock, opening=lambda: FoggedJournal(store, fog))
    fog.after = clear.engine.journal.last()
    assert clear.tell(first, 1.0) == "applied"
    clear.clock.advance(11)
    fogged.engine.expire()
    store.entries.pop()  # the report is lost
    fog.after = 10**9
    fogged.engine.expire()
    assert fogged["strict"].counts.expired == 2
