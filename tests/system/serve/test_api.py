"""The API of a real server. Retries have one effect, and lists and exports are complete. Also metrics."""

import csv
import hashlib
import io
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import polars as pl
import pytest
from prometheus_client.parser import text_string_to_metric_families

from belated import OutcomeRange, replay
from tests.support.service import Served

LAYOUT = {"name": "layout", "arms": ["blue", "green", "red"]}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with Served(tmp_path_factory.mktemp("service")) as server:
        yield server


@pytest.fixture(scope="module")
def filled(served: Served) -> str:
    """An experiment with reported, amended and expired decisions, and a change of arms."""
    body = {"name": "filled", "arms": ["blue", 'gr"een', "röt, ☕"], "reward_wait": 0.001, "default_outcome": 0.5}
    assert served.post("/v1/experiments", body).status_code == 201
    made = decide(served, "filled", 40)
    wait_until(served, "filled", lambda document: document["expired"] == 40)
    for number, one in enumerate(made[:30]):
        assert report(served, one, number / 30) == "late"
    assert report(served, made[0], 1.0, amend=True) == "amended"
    served.post("/v1/experiments/filled/arms", {"add": ["violet"], "retire": ["blue"]})
    decide(served, "filled", 7)
    wait_until(served, "filled", lambda document: document["expired"] == 47)
    return "filled"


def decide(served: Served, name: str, size: int) -> list[dict[str, Any]]:
    answer = served.post(f"/v1/experiments/{name}/decisions/batch", {"size": size})
    assert answer.status_code == 201, answer.text
    return answer.json()["decisions"]  # type: ignore[no-any-return]


def report(served: Served, decision: dict[str, Any], reward: float, **more: Any) -> str:
    answer = served.post(f"/v1/decisions/{decision['decision_id']}/feedback", {"reward": reward, **more})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["status"])


def wait_until(served: Served, name: str, is_so: Any) -> None:
    """Follow the experiment's stream until the condition holds."""
    with httpx.stream("GET", f"{served.url}/v1/experiments/{name}/live", timeout=30) as answer:
        for line in answer.iter_lines():
            if line.startswith("data: ") and is_so(httpx.Response(200, content=line[6:]).json()):
                return


def created(served: Served, name: str, **settings: Any) -> str:
    answer = served.post("/v1/experiments", {**LAYOUT, "name": name, **settings})
    assert answer.status_code == 201, answer.text
    return name


def listed(served: Served, path: str, field: str, limit: int) -> list[Any]:
    """Read a whole list, page by page."""
    found, cursor = [], "0"
    while True:
        page = served.get(f"{path}?limit={limit}&cursor={cursor}").json()
        assert len(page[field]) == limit or page["next"] is None
        found += page[field]
        if page["next"] is None:
            return found
        assert int(page["next"]) > int(cursor), "it would never end"
        cursor = page["next"]


# -- one effect -----------------------------------------------------------------------------------------------------


def test_another_outcome_says_how_to_amend_it(served: Served) -> None:
    served.post("/v1/experiments", {**LAYOUT, "name": "amended"})
    [made] = decide(served, "amended", 1)
    assert report(served, made, 1.0) == "applied"
    single = served.post(f"/v1/decisions/{made['decision_id']}/feedback", {"reward": 0.0})
    batch = served.post("/v1/feedback", {"reports": [{"decision_id": made["decision_id"], "reward": 0.0}]})
    [result] = batch.json()["results"]
    assert (single.status_code, batch.status_code) == (409, 200)
    assert single.json()["detail"].endswith('Send "amend": true and "revision": 0 to correct it.')
    assert single.json()["revision"] == result["problem"]["revision"] == 0
    assert result["problem"]["detail"] == single.json()["detail"]


def test_a_delayed_copy_of_an_amendment_does_not_undo_a_later_one(served: Served) -> None:
    served.post("/v1/experiments", {**LAYOUT, "name": "copied"})
    [made] = decide(served, "copied", 1)
    path = f"/v1/decisions/{made['decision_id']}"

    def send(reward: float, **more: Any) -> tuple[Any, ...]:
        got = served.post(f"{path}/feedback", {"reward": reward, **more}).json()
        return got["status"], got["revision"]

    assert send(1.0) == ("applied", 0)
    assert send(0.5, amend=True, revision=0) == ("amended", 1)
    assert send(0.25, amend=True, revision=1) == ("amended", 2)
    assert send(0.5, amend=True, revision=0) == ("superseded", 2)
    assert send(0.5, amend=True) == (409, 2)
    assert send(0.5) == (409, 2)
    assert send(0.25, amend=True, revision=1) == ("duplicate", 2)
    batch = [{"decision_id": made["decision_id"], "reward": reward, "amend": True, "revision": 2} for reward in (0, 1)]
    results = served.post("/v1/feedback", {"reports": batch}).json()["results"]
    assert [(one["status"], one["revision"]) for one in results] == [("amended", 3), ("superseded", 3)]
    found = served.get(path).json()
    assert [(one["value"], one["revision"]) for one in found["outcomes"]] == [(1.0, 0), (0.5, 1), (0.25, 2), (0.0, 3)]
    lonely = served.post(f"{path}/feedback", {"reward": 1, "revision": 3})
    assert (lonely.status_code, lonely.json()["detail"]) == (
        422,
        'the revision 3 is that of an amendment. Send "amend": true too.',
    )


@pytest.mark.parametrize("size", [None, 20])
def test_fifty_posts_of_one_key_have_one_effect(served: Served, size: int | None) -> None:
    name = created(served, f"key-{size}")
    path = f"/v1/experiments/{name}/decisions" + ("" if size is None else "/batch")

    def post(_: int) -> httpx.Response:
        return served.post(path, None if size is None else {"size": size}, Idempotency_Key="same key")

    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(post, range(50)))
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.text for answer in answers}) == 1
    assert sum(answer.headers.get("Idempotent-Replayed") != "true" for answer in answers) == 1
    assert len(listed(served, f"/v1/experiments/{name}/decisions", "decisions", 100)) == (size or 1)
    other = served.post(f"/v1/experiments/{name}/decisions/batch", {"size": 3}, Idempotency_Key="same key")
    assert other.status_code == 422
    assert "same key" in other.json()["detail"]
    assert served.post(path, None if size is None else {"size": size}).text != answers[0].text


def test_a_key_belongs_to_its_experiment(served: Served) -> None:
    made = [
        served.post(f"/v1/experiments/{created(served, name)}/decisions", Idempotency_Key="k").json()["decision_id"]
        for name in ("mine", "yours")
    ]
    assert made[0] != made[1]


def test_the_same_experiment_again_is_no_conflict(served: Served) -> None:
    first = served.post("/v1/experiments", {**LAYOUT, "name": "again"})
    second = served.post("/v1/experiments", {**LAYOUT, "name": "again"})
    other = served.post("/v1/experiments", {**LAYOUT, "name": "again", "arms": ["a", "b"]})
    assert [first.status_code, second.status_code, other.status_code] == [201, 200, 409]
    assert len(listed(served, "/v1/experiments/again/events", "events", 10)) == 1


def test_a_decision_counts_as_the_default_while_it_waits_unless_that_is_turned_off(served: Served) -> None:
    """Nobody reports a failure. Sales are told at once, and green sells most."""
    shown, green = [], []
    for name, more in (("provisional", {}), ("not-provisional", {"provisional": False})):
        created(served, name, reward_wait=3600, default_outcome=0, **more)
        for _ in range(30):
            sold = [one for one in decide(served, name, 20) if one["arm"] == "green" or one["round"] % 10 == 0]
            served.post("/v1/feedback", {"reports": [{"decision_id": one["decision_id"], "reward": 1} for one in sold]})
        document = served.get(f"/v1/experiments/{name}").json()
        shown.append((document["provisional"], document["tuning"]))
        green.append(document["arms"][1]["probability"])
    assert shown == [(True, {"name": "means"}), (False, {"name": "means"})]
    assert green[0] > 0.9 > green[1]
    refused = served.post("/v1/experiments", {**LAYOUT, "name": "refused", "provisional": True})
    assert refused.status_code == 422
    assert "provisional needs a default_outcome" in refused.json()["detail"]


# -- lists and exports ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["decisions", "feedback", "events"])
def test_lists_have_neither_gaps_nor_repetitions(served: Served, filled: str, what: str) -> None:
    field, expected = {
        "decisions": ("decisions", 47),
        "feedback": ("outcomes", 47 + 30 + 1),
        "events": ("events", 2),
    }[what]
    path = f"/v1/experiments/{filled}/{what}"
    whole = listed(served, path, field, 1000)
    assert len(whole) == expected
    for limit in (1, 7, expected - 1, expected, expected + 1):
        assert listed(served, path, field, limit) == whole
    times = [one["at" if what != "decisions" else "decided_at"] for one in whole]
    assert times == sorted(times)


def test_experiments_are_listed_in_pages_too(served: Served, filled: str) -> None:
    whole = listed(served, "/v1/experiments", "experiments", 1000)
    names = [one["name"] for one in whole]
    assert filled in names
    assert len(set(names)) == len(names)
    for limit in (1, 2, len(whole)):
        assert listed(served, "/v1/experiments", "experiments", limit) == whole


def test_a_decision_tells_all_that_was_said_of_it(served: Served, filled: str) -> None:
    first = listed(served, f"/v1/experiments/{filled}/decisions", "decisions", 1000)[0]
    document = served.get(f"/v1/decisions/{first['decision_id']}").json()
    assert [(one["status"], one["value"]) for one in document.pop("outcomes")] == [
        ("expired", 0.5),
        ("late", 0.0),
        ("amended", 1.0),
    ]
    assert document.pop("next") is None
    assert document == first
    assert first["outcome"]["status"] == "amended"
    assert first["decided_at"] < first["expires_at"] <= first["outcome"]["at"]


def rows_of(answer: httpx.Response) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(answer.content.decode())))


def test_the_exports_are_the_list(served: Served, filled: str, tmp_path: Path) -> None:
    known = listed(served, f"/v1/experiments/{filled}/decisions", "decisions", 1000)
    answer = served.get(f"/v1/experiments/{filled}/export.csv")
    rows = rows_of(answer)
    assert answer.headers["content-disposition"] == 'attachment; filename="filled.csv"'
    for row, one in zip(rows, known, strict=True):
        assert float(row["probability"]) == one["probability"]
        assert (row["decision_id"], row["arm"], int(row["round"])) == (one["decision_id"], one["arm"], one["round"])
        assert (row["time"], row["outcome_time"]) == (one["decided_at"], one["outcome"]["at"])
        assert (float(row["outcome"]), row["status"]) == (one["outcome"]["value"], one["outcome"]["status"])
        assert [row[f"outcome_{word}"] for word in ("lowest", "highest", "better")] == ["0.0", "1.0", "higher"]
    target = tmp_path / "export.parquet"
    target.write_bytes(served.get(f"/v1/experiments/{filled}/export.parquet").content)
    frame = pl.read_parquet(target)
    assert frame["probability"].to_list() == [one["probability"] for one in known]
    assert frame["arm"].to_list() == [one["arm"] for one in known]
    assert frame["outcome"].to_list() == [one["outcome"]["value"] for one in known]
    assert frame["decision_id"].to_list() == [one["decision_id"] for one in known]
    assert set(frame.select("outcome_lowest", "outcome_highest", "outcome_better").rows()) == {(0.0, 1.0, "higher")}
    assert frame["outcome_time"].dt.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_list() == [
        row["outcome_time"] for row in rows
    ]


def test_an_export_goes_on_where_it_was_cut_off(served: Served) -> None:
    """Whole rows of a file that is incomplete, and what comes after the last of them, are the whole file."""
    name = created(served, "cut-off")
    decide(served, name, 5000)
    path = f"/v1/experiments/{name}/export.csv"
    with served.client() as http, http.stream("GET", path) as answer:
        part = next(answer.iter_raw(100_000))
    begun = part[: part.rindex(b"\n") + 1]
    last = begun.splitlines()[-1].split(b",")[0].decode()
    rest = served.get(f"{path}?after={last}").content
    assert begun + rest == served.get(path).content
    end = served.get(f"{path}?after={rest.splitlines()[-1].split(b',')[0].decode()}")
    assert (end.status_code, end.content) == (200, b"")


def test_a_parquet_export_can_be_had_in_parts(served: Served) -> None:
    name = created(served, "parts")
    made = [one["decision_id"] for one in decide(served, name, 5000)]
    path, after, parts = f"/v1/experiments/{name}/export.parquet", "", list[pl.DataFrame]()
    while not parts or parts[-1].height:
        parts.append(pl.read_parquet(io.BytesIO(served.get(f"{path}?limit=2100{after}").content)))
        after = f"&after={parts[-1]['decision_id'][-1]}" if parts[-1].height else after
    assert [part.height for part in parts] == [2100, 2100, 800, 0]
    whole = pl.read_parquet(io.BytesIO(served.get(path).content))
    assert pl.concat(parts).equals(whole)
    assert whole["decision_id"].to_list() == made


@pytest.mark.parametrize("query", ["after=7", "after=", "limit=0", "limit=x", "curser=3"])
def test_an_export_refuses_what_it_does_not_understand(served: Served, filled: str, query: str) -> None:
    for ending in ("csv", "parquet"):
        assert served.get(f"/v1/experiments/{filled}/export.{ending}?{query}").status_code == 422


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_replay_reads_an_export(served: Served, tmp_path: Path, ending: str) -> None:
    """The export has more than one page, and some decisions are still open."""
    name = created(served, f"export-{ending}")
    made = decide(served, name, 2500)
    for one in made[:300]:
        report(served, one, 0.75)
    file = tmp_path / f"export.{ending}"
    file.write_bytes(served.get(f"/v1/experiments/{name}/export.{ending}").content)
    log = replay.read(file)
    assert (log.arm_names, log.arms.size) == (("blue", "green", "red"), 2500)
    assert log.probabilities is not None
    assert log.probabilities.tolist() == [one["probability"] for one in made]
    assert log.probabilities == pytest.approx(1 / 3)
    assert np.isfinite(log.outcomes).sum() == 300
    assert set(log.outcomes[:300]) == {0.75}
    assert (log.outcome_times[:300] >= log.times[:300]).all()
    assert log.declared == OutcomeRange(0, 1, better="higher")


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_an_experiment_without_decisions_has_an_export_without_rows(
    served: Served, ending: str, tmp_path: Path
) -> None:
    name = created(served, f"nothing-{ending}")
    answer = served.get(f"/v1/experiments/{name}/export.{ending}")
    assert answer.status_code == 200
    (tmp_path / "file").write_bytes(answer.content)
    frame = pl.read_csv(tmp_path / "file") if ending == "csv" else pl.read_parquet(tmp_path / "file")
    assert frame.height == 0
    assert frame.columns[:5] == ["decision_id", "round", "time", "arm", "probability"]
    assert frame.columns[-4:] == ["outcome_lowest", "outcome_highest", "outcome_better", "subject"]


# -- health and metrics ---------------------------------------------------------------------------------------------


def metrics(served: Served) -> dict[tuple[str, str], float]:
    """The metrics by name and by the one label that matters."""
    families = text_string_to_metric_families(served.get("/metrics").text)
    found = {}
    for sample in (sample for family in families for sample in family.samples):
        labels = sample.labels.get("experiment") or " ".join(
            sample.labels.get(name, "") for name in ("route", "status")
        )
        if "arm" not in sample.labels:  # test_metrics.py counts those
            found[sample.name, labels.strip()] = sample.value
    return found


def test_metrics_count_right(served: Served) -> None:
    name = created(served, "counted", reward_wait=3600)
    before = metrics(served)
    made = decide(served, name, 10)
    for one in made[:4]:
        report(served, one, 1.0)
        report(served, one, 1.0)
    report(served, made[0], 0.5, amend=True)
    served.get("/v1/experiments/nobody")
    after = metrics(served)
    own = {key[0].removeprefix("belated_"): value for key, value in after.items() if key[1] == name}
    costs = served.get(f"/v1/experiments/{name}").json()["costs"]
    assert own.pop("proven_regret") == pytest.approx(costs["proven"])
    assert costs["proven"] > costs["most"] == 10  # so few decisions cannot be bounded
    assert own == {
        "decisions_total": 10,
        "outstanding": 6,
        "reported_total": 4,
        "expired_total": 0,
        "late_total": 0,
        "amended_total": 1,
        "removed_total": 0,
        "reporting_warning": 0,
        "experiment_failed": 0,
        "arms_left_out": 0,
    }

    def grown(metric: str, labels: str = "") -> float:
        return after[metric, labels] - before.get((metric, labels), 0)

    assert grown("belated_requests_total", "POST /v1/decisions/{decision_id}/feedback 200") == 9
    assert grown("belated_requests_total", "POST /v1/experiments/{name}/decisions/batch 201") == 1
    assert grown("belated_requests_total", "GET /v1/experiments/{name} 404") == 1
    assert grown("belated_request_seconds_count", "/v1/decisions/{decision_id}/feedback") == 9
    assert grown("belated_journal_entries_written_total") == 10 + 4 + 1
    assert grown("belated_journal_seq") == 15
    assert grown("belated_commit_seconds_count") == 6
    assert after["belated_store_writable", ""] == 1
    assert after["belated_queue", ""] == 0
    assert after["belated_store_bytes", ""] > 0


def test_health(served: Served) -> None:
    for path in ("/healthz", "/readyz"):
        answer = served.get(path)
        assert (answer.status_code, answer.json()) == (200, {"status": "ok"})
    store = served.get("/v1/store").json()
    assert store["writable"]
    assert store["queue"] == 0
    assert httpx.head(served.url + "/healthz").content == b""


# -- subjects ----------------------------------------------------------------------------------------------------------


def test_a_subject_sees_one_option_and_reports_by_name(served: Served) -> None:
    served.post("/v1/experiments", {**LAYOUT, "name": "sticky", "outcome": {"highest": 100}, "several": "sum"})
    path = "/v1/experiments/sticky"
    first, again = (served.post(f"{path}/decisions", {"subject": "ann"}) for _ in range(2))
    assert (first.status_code, first.json()["repeated"], again.json()) == (
        201,
        False,
        {**first.json(), "repeated": True},
    )
    assert "repeated" not in served.post(f"{path}/decisions").json()
    got = served.post(f"{path}/decisions/batch", {"subjects": ["bob", "ann", "bob"]}).json()["decisions"]
    assert [one["repeated"] for one in got] == [False, True, True]
    assert got[0]["decision_id"] == got[2]["decision_id"]
    sale = {"subject": "ann", "reward": 20, "report_id": "order 7"}
    said = [served.post(f"{path}/feedback", {**sale, "report_id": id}).json() for id in ("a", "b", "a")]
    assert [one["status"] for one in said] == ["applied", "added", "duplicate"]
    assert {one["decision_id"] for one in said} == {first.json()["decision_id"]}
    bob = {"experiment": "sticky", "subject": "bob", "reward": 1, "report_id": "c"}
    results = served.post("/v1/feedback", {"reports": [bob, {**bob, "subject": "eve"}]}).json()["results"]
    assert [one["status"] for one in results] == ["applied", "problem"]
    assert results[0]["decision_id"] == got[0]["decision_id"]
    assert results[1]["problem"]["detail"] == "this subject has no decision in 'sticky'. Ask for one first."
    known = served.get(f"/v1/decisions/{first.json()['decision_id']}").json()
    assert known["outcome"]["value"] == 40
    rows = list(csv.DictReader(io.StringIO(served.get(f"{path}/export.csv").text)))
    digest = hashlib.sha256(b"sticky\nann").hexdigest()[:32]
    assert [row["decision_id"] for row in rows if row["subject"] == digest] == [first.json()["decision_id"]]
    assert served.get(path).json()["several"] == "sum"


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        ("experiments/layout/decisions", {"subject": ""}, "length >= 1"),
        ("experiments/layout/decisions", {"subject": "a\nb"}, "a subject must have 1 to 200 printable characters"),
        ("experiments/layout/decisions/batch", {"subjects": ["a"], "size": 1}, "give either a size or subjects"),
        ("experiments/layout/decisions/batch", {}, "give either a size or subjects"),
        ("experiments/layout/feedback", {"subject": "a", "reward": 1, "report_id": "\u007f"}, "a report_id must have"),
        (
            "feedback",
            {"reports": [{"subject": "a", "reward": 1}]},
            "either a decision_id, or an experiment and a subject",
        ),
    ],
)
def test_a_wrong_subject_is_refused(served: Served, path: str, body: dict[str, Any], said: str) -> None:
    served.post("/v1/experiments", LAYOUT)
    answer = served.post(f"/v1/{path}", body)
    assert answer.status_code == 422
    assert said in answer.json()["detail"]
