"""A runaway caller gets 429 with Retry-After, the metrics count it, and others go on."""

import subprocess
import sys
from pathlib import Path

import httpx

import belated
from belated.serve.http.routes import ROUTES
from tests.support.service import Served

ARMS = {"arms": ["blue", "green"]}


def assert_exhausted(answer: httpx.Response, *said: str) -> None:
    assert answer.status_code == 429, answer.text
    assert int(answer.headers["Retry-After"]) >= 1
    assert answer.headers["content-type"] == "application/problem+json"
    for words in said:
        assert words in answer.json()["detail"]


def create_key(folder: Path, *options: str) -> dict[str, str]:
    command = [sys.executable, "-m", "belated", "keys", "create", *options]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)  # noqa: S603
    return {"Authorization": f"Bearer {done.stdout.strip()}"}


def test_open_decisions_are_limited(tmp_path: Path) -> None:
    with Served(tmp_path, "--max-open", "15000") as served:
        for name in ("mad", "calm"):
            served.post("/v1/experiments", {"name": name, **ARMS})
        first = served.post("/v1/experiments/mad/decisions/batch", {"size": 10_000}, Idempotency_Key="first")
        assert first.status_code == 201
        batch = served.post("/v1/experiments/mad/decisions/batch", {"size": 10_000})
        assert_exhausted(batch, "'mad'", "20,000", "15,000", "--max-open", "reward_wait")
        again = served.post("/v1/experiments/mad/decisions/batch", {"size": 10_000}, Idempotency_Key="first")
        assert again.json() == first.json()
        assert served.post("/v1/experiments/mad/decisions/batch", {"size": 5_000}).status_code == 201
        assert_exhausted(served.post("/v1/experiments/mad/decisions"))
        assert served.post("/v1/experiments/calm/decisions").status_code == 201
        id = first.json()["decisions"][0]["decision_id"]
        assert served.post(f"/v1/decisions/{id}/feedback", {"reward": 1}).status_code == 200
        assert served.post("/v1/experiments/mad/decisions").status_code == 201
        assert 'belated_exhausted_total{quota="open decisions"} 2.0' in served.get("/metrics").text


def test_keys_have_a_rate_and_limits_of_their_own(tmp_path: Path) -> None:
    admin = create_key(tmp_path, "--scope", "admin", "--rate", "1e9")
    mad = create_key(tmp_path, "--scope", "decide")
    small = create_key(tmp_path, "--scope", "decide", "--max-open", "5", "--rate", "1000")
    with Served(tmp_path, "--rate", "20") as served, served.client() as http:
        assert http.post("/v1/experiments", json={"name": "layout", **ARMS}, headers=admin).status_code == 201
        path = "/v1/experiments/layout/decisions"
        answers = [http.post(path, headers=mad) for _ in range(200)]
        assert_exhausted(next(one for one in answers if one.status_code != 201), "20 a second", "--rate")
        ids = [one.json()["decision_id"] for one in answers if one.status_code == 201]
        assert len(ids) >= 20
        flag = "/ofrep/v1/evaluate/flags/layout"
        own = [http.post(path, headers=small) for _ in range(4)]
        assert http.post(flag, json={"context": {"targetingKey": "ann"}}, headers=small).status_code == 200
        id = small["Authorization"].split("_")[1]
        rotated = http.post(f"/v1/keys/{id}/rotate", headers=admin).json()["key"]
        for again in (small, {"Authorization": f"Bearer {rotated}"}):  # who replaces a key shares its room
            assert_exhausted(http.post(path, headers=again), "this access key", "6 open", "the key's own limit")
        reports = {"reports": [{"decision_id": own[0].json()["decision_id"], "reward": 1}]}
        assert http.post("/v1/feedback", json=reports, headers=admin).status_code == 200
        assert http.post(path, headers=small).status_code == 201
        metrics = http.get("/metrics", headers=admin).text
        assert 'belated_exhausted_total{quota="rate of a key"}' in metrics
        assert 'belated_exhausted_total{quota="open decisions"} 2.0' in metrics


def test_an_experiment_has_a_rate_and_the_client_waits(tmp_path: Path) -> None:
    with Served(tmp_path, "--experiment-rate", "100") as served, belated.Client(served.url) as client:
        client.create_experiment("layout", ["blue", "green"])
        client.ask("layout", size=200)  # from now on in debt for a second
        refused = served.post("/v1/experiments/layout/decisions")
        assert_exhausted(refused, "rate of the experiment", "'layout'", "--experiment-rate")
        assert client.ask("layout").round == 201


def test_the_description_names_the_answer() -> None:
    counted = {route.path for route in ROUTES if 429 in route.problems}
    assert counted == {
        "/v1/experiments/{name}/decisions",
        "/v1/experiments/{name}/decisions/batch",
        "/v1/decisions/{decision_id}",  # if too many of them are unknown
        "/v1/decisions/{decision_id}/feedback",
        "/v1/experiments/{name}/feedback",
        "/v1/feedback",
        "/v1/experiments",
        "/v1/experiments/{name}/arms",
        "/v1/keys",
        "/v1/keys/{key_id}/rotate",
        "/v1/experiments/{name}/export.csv",
        "/v1/experiments/{name}/export.parquet",
        "/v1/experiments/{name}/live",
        "/v1/live",
        "/ofrep/v1/evaluate/flags",
        "/ofrep/v1/evaluate/flags/{name}",
    }
