"""Exports and lists that go on where an earlier one has ended, and miss nothing."""

import asyncio
import csv
import io
from collections.abc import AsyncGenerator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from belated.serve.domain import timestamps
from belated.serve.domain.ids import decode
from belated.serve.domain.refusals import Refusal
from belated.serve.domain.timestamps import MICROSECONDS
from belated.serve.engine.engine import Engine
from belated.serve.http import app, parquet
from belated.serve.http.exports import CURSOR, csv_pages, parquet_parts
from belated.serve.service import lists
from belated.serve.service.lists import Wanted
from belated.serve.service.service import Service
from belated.serve.store.sqlite.journal import SQLiteJournal
from tests.support.engines import Driven
from tests.support.in_process import Caller, visit
from tests.support.removals import removed

LAYOUT = {"name": "layout", "arms": ["a", "b"], "outcome": {"lowest": 0, "highest": 100}}
PATH = "/v1/experiments/layout"


def opened(folder: Path) -> Service:
    return Service(Engine(SQLiteJournal(folder / "belated.db", synchronous="OFF")))


async def decide(caller: Caller, size: int) -> list[str]:
    made = await caller.post(f"{PATH}/decisions/batch", {"size": size})
    return [one["decision_id"] for one in made.json()["decisions"]]


async def tell(caller: Caller, values: dict[str, float], **more: Any) -> None:
    reports = [{"decision_id": id, "reward": value, **more} for id, value in values.items()]
    results = (await caller.post("/v1/feedback", {"reports": reports})).json()["results"] if reports else []
    for one in results:
        assert one["status"] in ("applied", "amended"), one


def rows_of(answer: httpx.Response) -> list[dict[str, str]]:
    assert answer.status_code == 200, answer.text
    return list(csv.DictReader(io.StringIO(answer.text)))


@pytest.mark.parametrize("seed", range(3))
def test_exports_with_a_kept_cursor_give_the_whole_in_the_end(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oracle is a dictionary: what comes later replaces what came before. Pages are small, so there are many."""
    monkeypatch.setattr(lists, "EXPORT_PAGE", 3)

    async def work(caller: Caller) -> None:
        await caller.post("/v1/experiments", LAYOUT)
        generator, known, ids, cursor = np.random.default_rng(seed), dict[str, Any](), list[str](), ""
        told = dict[str, float]()
        for night in range(8):
            if night != 4:  # a night without news
                ids += await decide(caller, int(generator.integers(1, 9)))
                some = {id: float(generator.integers(0, 100)) for id in ids if generator.random() < 0.3}
                await tell(caller, {id: value for id, value in some.items() if id not in told})
                again = {id: told[id] + 0.5 for id in some if id in told}
                await tell(caller, again, amend=True, revision=0) if night == 1 else None
                told.update({id: value for id, value in some.items() if id not in told})
            answer = await caller.get(f"{PATH}/export.csv?cursor={cursor or 0}")
            fresh, cursor = rows_of(answer), answer.headers[CURSOR]
            assert bool(fresh) == (night != 4)
            known.update({row["decision_id"]: row for row in fresh})
            whole = {row["decision_id"]: row for row in rows_of(await caller.get(f"{PATH}/export.csv"))}
            assert known == whole
            assert len(whole) == len(ids)

    visit(opened(tmp_path), work)


def test_the_cursor_of_another_store_or_of_the_future_gives_nothing_and_stays(tmp_path: Path) -> None:
    async def work(caller: Caller) -> None:
        await caller.post("/v1/experiments", LAYOUT)
        await decide(caller, 3)
        answer = await caller.get(f"{PATH}/export.csv?cursor=1000")
        assert rows_of(answer) == []
        assert answer.headers[CURSOR] == "1000"

    visit(opened(tmp_path), work)


def test_lists_say_where_to_go_on_also_at_their_end(tmp_path: Path) -> None:
    async def work(caller: Caller) -> None:
        await caller.post("/v1/experiments", LAYOUT)
        for kind in ("decisions", "feedback", "events"):
            cursor, seen = "0", list[Any]()
            for night in range(3):
                first = len(await decide(caller, 5)) * night
                ids = [
                    one["decision_id"] for one in (await caller.get(f"{PATH}/decisions?limit=900")).json()["decisions"]
                ]
                await tell(caller, dict.fromkeys(ids[-2:], 1.0))
                await caller.post(f"{PATH}/arms", {"add": [f"{kind} {night}"]})
                while True:
                    page = (await caller.get(f"{PATH}/{kind}?limit=2&cursor={cursor}")).json()
                    seen += page["outcomes" if kind == "feedback" else kind]
                    cursor = page["resume"]
                    if page["next"] is None:
                        break
                    assert page["next"] == cursor
                assert first <= len(ids)
            whole = (await caller.get(f"{PATH}/{kind}?limit=1000")).json()
            assert seen == whole["outcomes" if kind == "feedback" else kind]

    visit(opened(tmp_path), work)


def test_a_range_of_time_is_exact(tmp_path: Path) -> None:
    async def work(caller: Caller) -> None:
        await caller.post("/v1/experiments", LAYOUT)
        for _ in range(6):
            await decide(caller, 2)
        whole = rows_of(await caller.get(f"{PATH}/export.csv"))
        times = sorted({row["time"] for row in whole})
        for first, end in ((0, 3), (2, 2), (1, 5), (3, 9)):
            begin, ends = times[first], times[end] if end < len(times) else "2999-01-01T00:00:00+01:00"
            query = httpx.QueryParams({"from": begin, "to": ends})
            got = rows_of(await caller.get(f"{PATH}/export.csv?{query}"))
            assert got == [row for row in whole if begin <= row["time"] < ends]
        limited = await caller.get(f"{PATH}/export.csv?{httpx.QueryParams({'from': times[2], 'limit': '3'})}")
        assert rows_of(limited) == [row for row in whole if row["time"] >= times[2]][:3]
        assert CURSOR not in limited.headers  # because there is more

    visit(opened(tmp_path), work)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("from=yesterday", "such as 2026-01-31T12:00:00Z"),
        ("from=2026-01-31T12:00:00", "with its zone"),
        ("to=2026-13-31T12:00:00Z", "to must be a time"),
        ("cursor=x", "cursor must be a whole number"),
        ("cursor=1&limit=5", "without after and limit"),
        ("cursor=1&after=00000000-0000-8a12-9f3b-0c5be2bdf86b", "without after and limit"),
    ],
)
def test_a_wrong_range_is_refused(tmp_path: Path, query: str, said: str) -> None:
    async def work(caller: Caller) -> None:
        await caller.post("/v1/experiments", LAYOUT)
        for ending in ("csv", "parquet"):
            answer = await caller.get(f"{PATH}/export.{ending}?{query}")
            assert answer.status_code == 422
            assert said in answer.json()["detail"]

    visit(opened(tmp_path), work)


def test_a_cursor_from_before_an_archive_says_so(tmp_path: Path) -> None:
    async def work(caller: Caller) -> None:
        await caller.post("/v1/experiments", LAYOUT)
        ids = await decide(caller, 5)
        await tell(caller, dict.fromkeys(ids, 1.0))
        cursor = (await caller.get(f"{PATH}/export.csv")).headers[CURSOR]
        await decide(caller, 5)
        with closing(SQLiteJournal(tmp_path / "belated.db")) as other:
            base = removed(other, timestamps.now(), decisions_until=3)
        paths = [f"export.csv?cursor={cursor}", f"feedback?cursor={cursor}", f"decisions?cursor={cursor}"]
        for path in paths:
            for _ in range(100):
                gone = await caller.get(f"{PATH}/{path}")
                if gone.status_code == 410:
                    break
                await asyncio.sleep(0.02)  # until the server has read of it
            assert gone.status_code == 410
            assert "may have been archived or erased" in gone.json()["detail"]
            assert "Read everything again without a cursor" in gone.json()["detail"]
        left = await caller.get(f"{PATH}/export.csv")
        assert len(rows_of(left)) == 8
        assert int(left.headers[CURSOR]) >= base.seq
        [new] = await decide(caller, 1)
        more = await caller.get(f"{PATH}/export.csv?cursor={left.headers[CURSOR]}")
        assert [row["decision_id"] for row in rows_of(more)] == [new]
        assert (await caller.get(f"{PATH}/events")).status_code == 200

    visit(opened(tmp_path), work)


def test_an_export_that_goes_on_says_so_if_decisions_have_left_the_store(tmp_path: Path) -> None:
    """It left them out, and looked complete."""

    async def work(caller: Caller) -> None:
        await caller.post("/v1/experiments", LAYOUT)
        ids = await decide(caller, 9)
        await tell(caller, dict.fromkeys(ids, 1.0))
        part = rows_of(await caller.get(f"{PATH}/export.csv?limit=3"))
        with closing(SQLiteJournal(tmp_path / "belated.db")) as other:
            number = decode(ids[5])
            assert number is not None
            removed(other, timestamps.now(), decisions_until=number.seq)
        for ending in ("csv", "parquet"):
            for _ in range(100):
                gone = await caller.get(f"{PATH}/export.{ending}?after={part[-1]['decision_id']}")
                if gone.status_code == 410:
                    break
                await asyncio.sleep(0.02)  # until the server has read of it
            assert gone.status_code == 410
            assert "Export everything again without after" in gone.json()["detail"]
        answer = await caller.get(f"{PATH}/export.csv?after={ids[6]}")
        assert [line.split(",")[0] for line in answer.text.splitlines()] == ids[7:], "nothing after it has left"
        assert (await caller.get(f"{PATH}/export.csv?after={ids[8]}")).text == ""

    visit(opened(tmp_path), work)


def test_an_export_that_decisions_leave_meanwhile_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lists, "EXPORT_PAGE", 2)
    driven = Driven(tmp_path)
    driven.create()
    driven.decide(size=8)
    numbers = [one.decision.seq for one in driven.decisions("layout")]
    service = Service(driven.engine)
    pages, _ = service.lists.export(driven["layout"], Wanted())
    assert len(next(pages)) == 2
    with closing(SQLiteJournal(driven.path)) as other:
        removed(other, 1, decisions_until=numbers[4])
    driven.engine.catch_up()
    with pytest.raises(Refusal, match="Export everything again"):
        list(pages)
    rest, _ = service.lists.export(driven["layout"], Wanted())
    assert [one.decision.seq for page in rest for one in page] == numbers[5:], "a new one has what is left"
    service.close()


def test_a_download_that_cannot_be_completed_does_not_look_complete(caplog: pytest.LogCaptureFixture) -> None:
    sent = list[bool]()

    async def chunks() -> AsyncGenerator[bytes]:
        yield b"a"
        raise Refusal("gone", "some is missing")

    async def receive() -> Any:
        await asyncio.Event().wait()

    async def send(message: Any) -> None:
        sent.append(message.get("more_body", False))

    asyncio.run(app.send_all(chunks(), receive, send))
    assert sent == [True], "the end was not sent, so the server closes the connection"
    assert "cut off" in caplog.text


def test_times_are_read_as_rfc_3339_writes_them() -> None:
    at = 1_769_860_800 * MICROSECONDS
    for text in (
        "2026-01-31T12:00:00Z",
        "2026-01-31T13:00:00+01:00",
        "2026-01-31T12:00:00.000000Z",
        timestamps.iso(at),
    ):
        assert timestamps.parsed(text) == at
    assert timestamps.parsed(timestamps.iso(at + 1)) == at + 1


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_an_export_in_which_nothing_is_wanted_begins_at_once_and_can_be_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    """A range of time may leave out millions of decisions, before the first one that is wanted or after the last."""
    monkeypatch.setattr(lists, "EXPORT_PAGE", 10)
    driven, reads = Driven(tmp_path), list[int]()
    driven.create()
    for _ in range(100):
        driven.decide()
    kept = SQLiteJournal.decisions

    def counted(self: SQLiteJournal, experiment: int, after: int, limit: int) -> Any:
        reads.append(after)
        return kept(self, experiment, after, limit)

    monkeypatch.setattr(SQLiteJournal, "decisions", counted)
    service = Service(driven.engine)
    for wanted in (Wanted(begin=2**61), Wanted(end=1), Wanted(cursor=1, end=1)):
        pages, _ = service.lists.export(driven["layout"], wanted)
        made = csv_pages if ending == "csv" else lambda one, found: parquet.joined(parquet_parts(one, found))
        content = made(driven["layout"], pages)
        next(content)
        assert len(reads) == 1
        content.close()  # its caller has left
        assert len(reads) == 1
        reads.clear()
    service.close()
