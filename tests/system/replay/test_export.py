"""An export of a real service is replayed without options, in the units of its outcomes."""

import csv
import json
import random
import time
from pathlib import Path
from typing import Any

import pytest

from belated.replay import decision_log
from tests.support.replays import run
from tests.support.service import Served

EUROS = {"blue": 10.0, "green": 40.0}


def sold(served: Served) -> None:
    """Some 2,000 decisions with sales up to 50 euros, and a few still open."""
    settings = {"outcome": {"lowest": 0, "highest": 50, "better": "higher"}}
    assert served.post("/v1/experiments", {"name": "sales", "arms": list(EUROS), **settings}).status_code == 201
    draw = random.Random(1)  # noqa: S311
    for _ in range(20):
        made = served.post("/v1/experiments/sales/decisions/batch", {"size": 100}).json()["decisions"]
        reports = [
            {"decision_id": one["decision_id"], "reward": EUROS[one["arm"]] + draw.uniform(-2, 2)} for one in made
        ]
        assert served.post("/v1/feedback", {"reports": reports[:-1]}).status_code == 200


FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "'=quoted", "''", "'plain", "=HYPERLINK(1,2)", "blue", "\uff1d1"]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_names_that_look_like_formulas_are_harmless_and_come_back(ending: str, tmp_path: Path) -> None:
    """A spreadsheet that opens the file would run them. Numbers below zero stay numbers."""
    with Served(tmp_path) as served:
        settings = {"outcome": {"lowest": -1, "highest": 1, "better": "higher"}}
        assert served.post("/v1/experiments", {"name": "odd", "arms": FORMULAS, **settings}).status_code == 201
        made = served.post("/v1/experiments/odd/decisions/batch", {"size": 300}).json()["decisions"]
        reports = [{"decision_id": one["decision_id"], "reward": -0.5} for one in made]
        assert served.post("/v1/feedback", {"reports": reports}).status_code == 200
        path = tmp_path / f"odd.{ending}"
        path.write_bytes(served.get(f"/v1/experiments/odd/export.{ending}").content)
    log = decision_log.read(path)
    assert set(log.arm_names) == {one["arm"] for one in made} == set(FORMULAS)
    assert [log.arm_names[arm] for arm in log.arms] == [one["arm"] for one in made]
    if ending == "csv":
        rows = list(csv.DictReader(path.read_text().splitlines()))
        assert {row["arm"][0] for row in rows} == {"'", "b"}
        assert {row["outcome"] for row in rows} == {"-0.5"}


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_an_export_needs_no_options(ending: str, tmp_path: Path) -> None:
    with Served(tmp_path) as served:
        sold(served)
        path = tmp_path / f"sales.{ending}"
        path.write_bytes(served.get(f"/v1/experiments/sales/export.{ending}").content)
    said = run(str(path), "--out", str(tmp_path / "out"))
    assert "Outcomes are rewards from 0 to 50, and higher is better." in said
    results = json.loads((tmp_path / "out" / "results.json").read_text())["results"]
    estimates: dict[str, Any] = {one["name"]: one for one in results["estimates"]}
    for name, mean in EUROS.items():
        assert estimates[f"always {name}"]["snips"]["value"] == pytest.approx(mean, abs=2)  # in euros, not from 0 to 1
    assert results["waiting"]["n_rounds"] == 2000
    if ending == "csv":
        values = [float(row["outcome"]) for row in csv.DictReader(path.read_text().splitlines()) if row["outcome"]]
        assert estimates["logged"]["snips"]["value"] == pytest.approx(sum(values) / len(values))
        assert len(values) == 1980


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_decisions_within_their_wait_are_neither_missing_nor_failures(ending: str, tmp_path: Path) -> None:
    """Likes are told at once, and a tenth of the others never. An export half-way has 400 decisions to wait for."""
    likes, draw, path = {"blue": 0.3, "green": 0.6}, random.Random(1), tmp_path / f"likes.{ending}"  # noqa: S311
    with Served(tmp_path) as served:
        served.post("/v1/experiments", {"name": "likes", "arms": list(likes), "reward_wait": 2})
        for size in (1200, 400):
            made = served.post("/v1/experiments/likes/decisions/batch", {"size": size}).json()["decisions"]
            rewards = [(one["decision_id"], float(draw.random() < likes[one["arm"]])) for one in made]
            told = [(one, reward) for one, reward in rewards if reward or (size == 1200 and draw.random() < 0.9)]
            reports = [{"decision_id": one, "reward": reward} for one, reward in told]
            assert served.post("/v1/feedback", {"reports": reports}).status_code == 200
            if size == 1200:
                time.sleep(3)
        path.write_bytes(served.get(f"/v1/experiments/likes/export.{ending}").content)
    said = " ".join(run(str(path), "--out", str(tmp_path / "out")).split())
    assert "400 decisions younger than 2 seconds are left out." in said
    results = json.loads((tmp_path / "out" / "results.json").read_text())["results"]
    assert results["waiting"]["n_rounds"] == 1200
    assert results["waiting"]["share_open"] == 0
    assert 0.01 < results["waiting"]["share_never"] < 0.12
    assert not {"waiting", "young", "one value"} & {kind for kind, *_ in results["check"]["findings"]}
