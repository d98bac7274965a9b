"""OFREP 0.3 as the protocol describes it: values, variants, metadata, errors, entity tags and access keys."""

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.support.service import Served

FLAGS = "/ofrep/v1/evaluate/flags"
CONTEXT = {"context": {"targetingKey": "user-1"}}
VALUES = {"blue": {"colour": "#00f", "size": 2}, "green": {"colour": "#0f0", "size": 3}}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with Served(tmp_path_factory.mktemp("service")) as server:
        for settings in (
            {"name": "plain", "arms": ["blue", "green"]},
            {"name": "rich", "arms": ["blue", "green"], "values": VALUES},
            {"name": "single", "arms": ["on"], "values": {"on": True}},
            {"name": "price", "arms": ["low", "high"], "values": {"low": 9, "high": 12.5}},
        ):
            assert server.post("/v1/experiments", settings).status_code == 201
        yield server


def evaluate(served: Served, name: str, subject: str = "user-1") -> dict[str, Any]:
    answer = served.post(f"{FLAGS}/{name}", {"context": {"targetingKey": subject, "plan": "free"}})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def bulk(served: Served, flags: list[str], tag: str = "", subject: str = "user-1") -> httpx.Response:
    headers = {"If_None_Match": tag} if tag else {}
    return served.post(FLAGS, {"context": {"targetingKey": subject, "flags": flags}}, **headers)


def decisions(served: Served, name: str) -> int:
    return int(served.get(f"/v1/experiments/{name}").json()["decisions"])


# -- one flag -------------------------------------------------------------------------------------------------------


def test_an_evaluation_is_a_sticky_decision(served: Served) -> None:
    before = decisions(served, "plain")
    first = evaluate(served, "plain", "sticky")
    assert first.keys() == {"key", "reason", "variant", "value", "metadata"}
    assert (first["key"], first["reason"], first["value"]) == ("plain", "SPLIT", first["variant"])
    assert first["variant"] in ("blue", "green")
    assert first["metadata"]["probability"] == 0.5
    assert evaluate(served, "plain", "sticky") == first
    assert decisions(served, "plain") == before + 1
    native = served.post("/v1/experiments/plain/decisions", {"subject": "sticky"}).json()
    assert (native["decision_id"], native["arm"]) == (first["metadata"]["decision_id"], first["variant"])
    told = served.post(f"/v1/decisions/{first['metadata']['decision_id']}/feedback", {"reward": 1})
    assert told.json()["status"] == "applied"
    evaluate(served, "plain", "another")
    told = served.post("/v1/experiments/plain/feedback", {"subject": "another", "reward": 0})
    assert told.json()["status"] == "applied"


def test_an_arm_has_a_value(served: Served) -> None:
    for number in range(20):
        found = evaluate(served, "rich", f"user-{number}")
        assert found["value"] == VALUES[found["variant"]]
    single = evaluate(served, "single")
    assert (single["value"], single["variant"], single["reason"]) == (True, "on", "STATIC")
    texts = [served.post(f"{FLAGS}/price", {"context": {"targetingKey": str(n)}}).text for n in range(20)]
    assert all('"value":9.0' in text or '"value":12.5' in text for text in texts)  # so that all are floats
    assert served.get("/v1/experiments/rich").json()["values"] == VALUES


def test_arms_that_join_have_values_too(served: Served) -> None:
    made = {"name": "growing", "arms": ["a"], "values": {"a": "x"}}
    assert served.post("/v1/experiments", made).status_code == 201
    said = served.post("/v1/experiments/growing/arms", {"add": ["b"]})
    assert (said.status_code, "values has none for 'b'" in said.json()["detail"]) == (422, True)
    said = served.post("/v1/experiments/growing/arms", {"add": ["b"], "values": {"b": 7}})
    assert (said.status_code, "must be of one kind" in said.json()["detail"]) == (422, True)
    change = {"add": ["b"], "retire": ["a"], "values": {"b": "y"}}
    assert served.post("/v1/experiments/growing/arms", change).json()["values"] == {"a": "x", "b": "y"}
    assert evaluate(served, "growing")["value"] == "y"
    assert served.post("/v1/experiments/growing/arms", {"add": ["a"], "retire": ["b"]}).status_code == 200
    assert evaluate(served, "growing", "later")["value"] == "x"
    assert served.post("/v1/experiments", made).status_code == 200  # it repeats the request that created it
    plain = served.post("/v1/experiments/plain/arms", {"add": ["c"], "values": {"c": 1}})
    assert "have no values, so values must be left out" in plain.json()["detail"]


def test_a_closed_experiment_shows_the_default_of_the_app(served: Served) -> None:
    served.post("/v1/experiments", {"name": "over", "arms": ["a", "b"]})
    served.post("/v1/experiments/over/close")
    found = evaluate(served, "over")
    assert (found["reason"], found["variant"]) == ("DISABLED", "")
    assert "value" not in found
    assert "is closed" in found["metadata"]["detail"]


@pytest.mark.parametrize(
    ("name", "body", "status", "code", "said"),
    [
        ("plain", {"context": {}}, 400, "TARGETING_KEY_MISSING", "context.targetingKey is missing"),
        ("plain", {"context": {"targetingKey": ""}}, 400, "TARGETING_KEY_MISSING", "context.targetingKey"),
        ("plain", {}, 400, "TARGETING_KEY_MISSING", "context.targetingKey"),
        ("plain", {"context": {"targetingKey": 7}}, 400, "INVALID_CONTEXT", "must be a string"),
        ("plain", {"context": []}, 400, "INVALID_CONTEXT", "context must be an object, got []"),
        ("plain", {"context": {"targetingKey": "x" * 999}}, 400, "INVALID_CONTEXT", "subject must have"),
        ("nowhere", CONTEXT, 404, "FLAG_NOT_FOUND", "there is no experiment 'nowhere'"),
    ],
)
def test_errors_have_the_codes_of_openfeature(
    served: Served, name: str, body: Any, status: int, code: str, said: str
) -> None:
    before = served.get("/v1/store").json()["entries"]
    answer = served.post(f"{FLAGS}/{name}", body)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/json")
    found = answer.json()
    assert (found["key"], found["errorCode"]) == (name, code)
    assert said in found["errorDetails"]
    assert served.get("/v1/store").json()["entries"] == before


@pytest.mark.parametrize("flags", [{"beta": True}, "all", ["x"] * 200, None])
def test_an_attribute_of_the_app_with_the_name_of_ours_does_no_harm(served: Served, flags: Any) -> None:
    """A single evaluation has no use for it. Every attribute of a context is the app's own."""
    context = {"targetingKey": "user-1", "flags": flags, "email": 7}
    answer = served.post(f"{FLAGS}/plain", {"context": context})
    assert (answer.status_code, answer.json()) == (200, evaluate(served, "plain"))
    assert served.post(FLAGS, {"context": context}).status_code == 400


def test_a_body_that_is_not_json(served: Served) -> None:
    with served.client() as http:
        for path in (f"{FLAGS}/plain", FLAGS):
            answer = http.post(path, content=b"{", headers={"Content-Type": "application/json"})
            assert (answer.status_code, answer.json()["errorCode"]) == (400, "PARSE_ERROR")
            answer = http.post(path, content=b"{}", headers={"Content-Type": "text/plain"})
            assert (answer.status_code, answer.json()["errorCode"]) == (400, "PARSE_ERROR")


# -- many flags -----------------------------------------------------------------------------------------------------


def test_the_bulk_form_decides_only_what_it_names(served: Served) -> None:
    before = decisions(served, "rich")
    answer = bulk(served, ["plain", "nowhere", "plain"], subject="bulk")
    assert answer.status_code == 200
    plain, nowhere = answer.json()["flags"]
    assert plain == evaluate(served, "plain", "bulk")
    assert (nowhere["key"], nowhere["errorCode"]) == ("nowhere", "FLAG_NOT_FOUND")
    assert decisions(served, "rich") == before
    unnamed = served.post(FLAGS, CONTEXT)
    assert (unnamed.status_code, unnamed.json()["errorCode"]) == (400, "INVALID_CONTEXT")
    assert "name the experiments in context.flags" in unnamed.json()["errorDetails"]
    keyless = served.post(FLAGS, {"context": {"flags": ["plain"]}})
    assert keyless.json()["errorCode"] == "TARGETING_KEY_MISSING"


def test_nothing_is_evaluated_again_while_nothing_changes(served: Served) -> None:
    served.post("/v1/experiments", {"name": "tagged", "arms": ["a", "b"]})
    first = bulk(served, ["plain", "tagged"], subject="tags")
    tag = first.headers["etag"]
    for subject in ("x", "y", "z"):  # others' decisions and reports change nothing for this one
        served.post(
            f"/v1/decisions/{evaluate(served, 'tagged', subject)['metadata']['decision_id']}/feedback", {"reward": 1}
        )
    again = bulk(served, ["plain", "tagged"], tag, "tags")
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    assert bulk(served, ["plain", "tagged"], subject="tags").headers["etag"] == tag
    assert bulk(served, ["tagged"], tag, "tags").status_code == 200
    assert bulk(served, ["plain", "tagged"], tag, "another").status_code == 200
    shown = next(one["variant"] for one in first.json()["flags"] if one["key"] == "tagged")
    served.post("/v1/experiments/tagged/arms", {"retire": [shown]})
    changed = bulk(served, ["plain", "tagged"], tag, "tags")
    assert changed.status_code == 200
    assert changed.json()["flags"][0] == first.json()["flags"][0]
    assert changed.json()["flags"][1]["variant"] != shown
    served.post("/v1/experiments/tagged/close")
    assert bulk(served, ["plain", "tagged"], changed.headers["etag"], "tags").json()["flags"][1]["reason"] == "DISABLED"


# -- access keys and limits -----------------------------------------------------------------------------------------


def test_access_keys_and_rates(tmp_path: Any) -> None:
    def key(*options: str) -> str:
        command = [sys.executable, "-m", "belated", "keys", "create", *options]
        done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=tmp_path)  # noqa: S603
        return next(word for word in done.stdout.split() if word.startswith("blt_"))

    admin = {"Authorization": f"Bearer {key('--scope', 'admin')}"}
    own = {"X_API_Key": key("--scope", "decide", "--experiment", "plain", "--rate", "3")}
    reporting = {"X_API_Key": key("--scope", "report")}
    with Served(tmp_path) as served:
        for name in ("plain", "rich"):
            assert served.post("/v1/experiments", {"name": name, "arms": ["a", "b"]}, **admin).status_code == 201
        assert served.post(f"{FLAGS}/plain", CONTEXT).status_code == 401
        assert served.post(f"{FLAGS}/plain", CONTEXT, X_API_Key="blt_nonsense").status_code == 401
        assert served.post(f"{FLAGS}/plain", CONTEXT, **reporting).status_code == 403
        assert served.post(f"{FLAGS}/rich", CONTEXT, **own).status_code == 403
        assert served.post(FLAGS, {"context": {"targetingKey": "a", "flags": ["rich"]}}, **own).status_code == 403
        unnamed = served.post(FLAGS, CONTEXT, **own)  # a key for one experiment needs no names
        assert [one["key"] for one in unnamed.json()["flags"]] == ["plain"]
        answers = [served.post(f"{FLAGS}/plain", CONTEXT, **own) for _ in range(9)]
        refused = [one for one in answers if one.status_code == 429]
        assert refused
        assert int(refused[0].headers["retry-after"]) >= 1
        tag = {"If_None_Match": unnamed.headers["etag"]}
        assert served.post(FLAGS, CONTEXT, **own, **tag).status_code == 304  # it costs nothing
