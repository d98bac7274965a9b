"""Outcomes made of parts over HTTP: reports, what is said of them, and exports."""

import asyncio
import io
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from belated.replay import decision_log
from belated.serve.engine.engine import Engine
from belated.serve.service.service import Service
from belated.serve.store.sqlite.journal import SQLiteJournal
from tests.support.in_process import Caller, visit

PARTS = {"quality": {"weight": 3}, "cost": {"highest": 0.1, "better": "lower", "weight": 1}}
MODELS = {"name": "models", "arms": ["small", "large"], "parts": PARTS, "reward_wait": 3600}
PATH = "/v1/experiments/models"


def with_models(folder: Path, work: Callable[[Caller, list[str]], Awaitable[None]]) -> None:
    """Create the experiment and four decisions, and let a visitor work with them."""

    async def begin(caller: Caller) -> None:
        assert (await caller.post("/v1/experiments", MODELS)).status_code == 201
        made = (await caller.post(f"{PATH}/decisions/batch", {"subjects": ["ann", "bob", "cid", "dan"]})).json()
        await work(caller, [one["decision_id"] for one in made["decisions"]])

    visit(Service(Engine(SQLiteJournal(folder / "belated.db", synchronous="OFF"))), begin)


async def tell(caller: Caller, id: str, **body: Any) -> Any:
    return (await caller.post(f"/v1/decisions/{id}/feedback", body)).json()


def test_parts_are_reported_as_they_come(tmp_path: Path) -> None:
    async def work(caller: Caller, ids: list[str]) -> None:
        said = await tell(caller, ids[0], parts={"cost": 0.05})
        assert said == {"decision_id": ids[0], "status": "partial", "revision": 0}
        read = (await caller.get(f"/v1/decisions/{ids[0]}")).json()
        assert (read["outcome"]["status"], read["outcome"]["value"]) == ("partial", None)
        assert read["outcome"]["parts"] == {"cost": 0.05}
        said = (await caller.post(f"{PATH}/feedback", {"subject": "ann", "parts": {"quality": 1}})).json()
        assert said == {"decision_id": ids[0], "status": "applied", "revision": 1}
        read = (await caller.get(f"/v1/decisions/{ids[0]}")).json()
        assert read["outcome"]["value"] == pytest.approx((3 * 1 + 0.5) / 4, abs=1e-12)
        assert [one["parts"] for one in read["outcomes"]] == [{"cost": 0.05}, {"quality": 1.0, "cost": 0.05}]
        listed = (await caller.get(f"{PATH}/feedback")).json()["outcomes"]
        assert [(one["status"], one["decision_id"]) for one in listed] == [("partial", ids[0]), ("reported", ids[0])]

    with_models(tmp_path, work)


def test_a_batch_has_parts_too(tmp_path: Path) -> None:
    async def work(caller: Caller, ids: list[str]) -> None:
        reports = [
            {"decision_id": ids[0], "parts": {"quality": 1, "cost": 0}},
            {"decision_id": ids[0], "parts": {"quality": 0}},
            {"experiment": "models", "subject": "bob", "parts": {"cost": 0}},
            {"decision_id": ids[2], "reward": 1},
        ]
        results = (await caller.post("/v1/feedback", {"reports": reports})).json()["results"]
        assert [one["status"] for one in results] == ["applied", "problem", "partial", "problem"]
        assert "takes parts, got a reward" in results[3]["problem"]["detail"]

    with_models(tmp_path, work)


def test_the_document_has_the_parts_of_each_option(tmp_path: Path) -> None:
    async def work(caller: Caller, ids: list[str]) -> None:
        for id in ids:
            await tell(caller, id, parts={"cost": 0.05})
        document = (await caller.get(PATH)).json()
        cost = document["parts"]["cost"]
        assert cost == {"lowest": 0.0, "highest": 0.1, "better": "lower", "weight": 1.0, "default": None}
        assert sum(arm["parts"]["cost"]["reports"] for arm in document["arms"]) == 4
        assert {arm["parts"]["quality"]["mean"] for arm in document["arms"]} == {None}
        assert document["outstanding"] == 4
        arms = (await caller.get(f"{PATH}/arms")).json()["arms"]
        assert [arm["parts"] for arm in arms] == [arm["parts"] for arm in document["arms"]]

    with_models(tmp_path, work)


def test_exports_have_the_parts_and_replay_reads_them(tmp_path: Path) -> None:
    async def work(caller: Caller, ids: list[str]) -> None:
        await tell(caller, ids[0], parts={"cost": 0.05, "quality": 1})
        await tell(caller, ids[1], parts={"cost": 0.02})
        text = (await caller.get(f"{PATH}/export.csv")).text
        table = pl.read_csv(io.StringIO(text)).sort("round")
        assert table["status"].to_list() == ["reported", "open", "open", "open"]
        assert [json.loads(one or "{}") for one in table["parts"]] == [
            *({"quality": 1.0, "cost": 0.05}, {"cost": 0.02}, {}, {})
        ]
        content = (await caller.get(f"{PATH}/export.parquet")).content
        again = pl.read_parquet(io.BytesIO(content)).sort("round")
        for column in ("status", "parts", "outcome"):
            assert again[column].to_list() == table[column].to_list()
        (tmp_path / "log.csv").write_text(text)
        log = await asyncio.to_thread(decision_log.read, tmp_path / "log.csv")
        assert log.is_open is not None
        assert log.is_open.tolist() == [False, True, True, True]

    with_models(tmp_path, work)


def test_an_export_without_parts_has_no_column_for_them(tmp_path: Path) -> None:
    async def work(caller: Caller, _: list[str]) -> None:
        await caller.post("/v1/experiments", {"name": "layout", "arms": ["a"]})
        assert "parts" not in (await caller.get("/v1/experiments/layout/export.csv")).text

    with_models(tmp_path, work)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({}, "give either a reward, a loss or parts"),
        ({"reward": 1, "parts": {"cost": 0}}, "give either a reward, a loss or parts"),
        ({"parts": {}}, "parts must be an object with 1 to 20 fields, got {}"),
        ({"parts": {"quality": 1, "cost": "high"}}, 'parts.cost must be a number, got "high"'),
        ({"parts": {"quality": None, "cost": 0}}, "parts.quality must be a number, got null"),
        ({"parts": [1]}, "parts must be an object with 1 to 20 fields, got [1]"),
        ({"parts": {"speed": 1}}, "has no part 'speed'. Its parts are quality, cost."),
    ],
)
def test_a_wrong_report_is_told_in_plain_words(tmp_path: Path, body: Any, expected: str) -> None:
    async def work(caller: Caller, ids: list[str]) -> None:
        answer = await caller.post(f"/v1/decisions/{ids[0]}/feedback", body)
        assert answer.status_code == 422
        assert expected in answer.json()["detail"]

    with_models(tmp_path, work)
