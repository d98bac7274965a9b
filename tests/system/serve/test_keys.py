"""The store keeps only hashes of keys. Every route accepts exactly the keys that are allowed."""

import hmac
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from typer.testing import CliRunner

from belated import cli
from belated.errors import InvalidInput
from belated.serve.domain import ids
from belated.serve.domain.refusals import Refusal
from belated.serve.http.routes import ROUTES
from belated.serve.service import keys
from belated.serve.service.keys import Gate
from tests.support.engines import Driven
from tests.support.service import NO_TLS, Served
from tests.support.waiting import until

runner = CliRunner()
LAYOUT = {"name": "layout", "arms": ["blue", "green"]}
SCOPES = ("read", "metrics", "decide", "report", "admin")
READ, METRICS, DECIDE, REPORT, ADMIN = ({scope, "admin"} for scope in SCOPES)
WHO_MAY: dict[tuple[str, str], set[str] | None] = {  # written by hand. None means everybody, even without a key.
    ("GET", "/healthz"): None,
    ("GET", "/readyz"): None,
    ("GET", "/openapi.json"): None,
    ("GET", "/metrics"): METRICS,
    ("POST", "/v1/experiments/{name}/decisions"): DECIDE,
    ("POST", "/v1/experiments/{name}/decisions/batch"): DECIDE,
    ("POST", "/v1/decisions/{decision_id}/feedback"): REPORT,
    ("POST", "/v1/experiments/{name}/feedback"): REPORT,
    ("POST", "/v1/feedback"): REPORT,
    ("POST", "/ofrep/v1/evaluate/flags"): DECIDE,
    ("POST", "/ofrep/v1/evaluate/flags/{name}"): DECIDE,
    ("POST", "/v1/experiments"): ADMIN,
    ("GET", "/v1/experiments"): READ,
    ("GET", "/v1/experiments/{name}"): READ,
    ("POST", "/v1/experiments/{name}/arms"): ADMIN,
    ("GET", "/v1/experiments/{name}/arms"): READ,
    ("POST", "/v1/experiments/{name}/close"): ADMIN,
    ("POST", "/v1/experiments/{name}/pause"): ADMIN,
    ("POST", "/v1/experiments/{name}/resume"): ADMIN,
    ("POST", "/v1/experiments/{name}/freeze"): ADMIN,
    ("POST", "/v1/experiments/{name}/unfreeze"): ADMIN,
    ("POST", "/v1/experiments/{name}/end"): ADMIN,
    ("POST", "/v1/experiments/{name}/edit"): ADMIN,
    ("GET", "/v1/experiments/{name}/decisions"): READ,
    ("GET", "/v1/experiments/{name}/feedback"): READ,
    ("GET", "/v1/experiments/{name}/events"): READ,
    ("GET", "/v1/experiments/{name}/export.csv"): READ,
    ("GET", "/v1/experiments/{name}/export.parquet"): READ,
    ("GET", "/v1/experiments/{name}/live"): READ,
    ("GET", "/v1/live"): READ,
    ("GET", "/v1/decisions/{decision_id}"): READ,
    ("GET", "/v1/store"): READ,
    ("POST", "/v1/keys"): ADMIN,
    ("GET", "/v1/keys"): ADMIN,
    ("POST", "/v1/keys/{key_id}/rotate"): ADMIN,
    ("POST", "/v1/keys/{key_id}/revoke"): ADMIN,
    ("GET", "/v1/audit"): ADMIN,
}
WHOLE = {"/v1/store", "/v1/keys", "/v1/keys/{key_id}/rotate", "/v1/keys/{key_id}/revoke"}  # not for one experiment
OWN_PART = {  # for the key's experiment only
    *(("GET", path) for path in ("/v1/experiments", "/v1/live", "/metrics", "/v1/audit")),
    ("POST", "/v1/feedback"),
}
BODIES: dict[str, Any] = {
    "/v1/experiments": LAYOUT,
    "/v1/experiments/{name}/decisions/batch": {"size": 2},
    "/v1/decisions/{decision_id}/feedback": {"reward": 1},
    "/v1/experiments/{name}/feedback": {"subject": "ann", "reward": 1},
    "/ofrep/v1/evaluate/flags": {"context": {"targetingKey": "ann", "flags": ["layout"]}},
    "/ofrep/v1/evaluate/flags/{name}": {"context": {"targetingKey": "ann"}},
}


class Locked(NamedTuple):
    """A service with keys, and a decision of each experiment."""

    served: Served
    keys: dict[str, str]
    decisions: dict[str, str]


def command(folder: Path, *arguments: str) -> str:
    line = [sys.executable, "-m", "belated", "keys", *arguments]
    return subprocess.run(line, cwd=folder, capture_output=True, text=True, check=True).stdout.strip()  # noqa: S603


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Locked]:
    folder = tmp_path_factory.mktemp("service")
    made = {}
    store = ["--store", str(folder / "belated.db")]
    for scope in SCOPES:
        for name, options in (
            (scope, []),
            *((f"{scope} of {one}", ["--experiment", one]) for one in ("layout", "other")),
        ):
            made[name] = runner.invoke(cli.app, ["keys", "create", "--scope", scope, *options, *store]).stdout.strip()
    made["revoked"] = runner.invoke(cli.app, ["keys", "create", "--scope", "admin", *store]).stdout.strip()
    assert runner.invoke(cli.app, ["keys", "revoke", made["revoked"].split("_")[1], *store]).exit_code == 0
    with Served(folder) as served:
        decisions = {}
        for name in ("layout", "other"):
            by = {"Authorization": f"Bearer {made['admin']}"}
            assert served.post("/v1/experiments", {**LAYOUT, "name": name}, **by).status_code == 201
            decisions[name] = served.post(f"/v1/experiments/{name}/decisions", {"subject": "ann"}, **by).json()[
                "decision_id"
            ]
        yield Locked(served, made, decisions)


def call(locked: Locked, method: str, path: str, headers: dict[str, str], experiment: str = "layout") -> int:
    """Send a request and return its status. The body is not read, because it may be a stream."""
    where = path.format(name=experiment, decision_id=locked.decisions[experiment], key_id="0" * 12)
    body = BODIES.get(path)
    if path == "/v1/feedback":
        body = {"reports": [{"decision_id": locked.decisions[experiment], "reward": 1}]}
    elif path == "/v1/experiments" and method == "POST":
        body = {**LAYOUT, "name": experiment}
    more: Any = {"json": body} if method == "POST" else {}
    url = locked.served.url + where
    with httpx.stream(method, url, headers=headers, timeout=30, verify=NO_TLS, **more) as answer:
        if answer.status_code >= 400:
            assert answer.headers["content-type"] == "application/problem+json"
        if answer.status_code == 401:
            assert answer.headers["www-authenticate"] == "Bearer"
            assert "Send Authorization: Bearer KEY" in answer.read().decode()
        return answer.status_code


def test_the_table_names_every_route() -> None:
    served = {(route.method, route.path) for route in ROUTES}
    assert served | {("GET", "/metrics"), ("GET", "/openapi.json")} == set(WHO_MAY)


@pytest.mark.parametrize(("method", "path"), WHO_MAY)
def test_every_route_lets_in_exactly_those_who_may(locked: Locked, method: str, path: str) -> None:
    may = WHO_MAY[method, path]
    known = locked.keys["admin"]
    strangers = {
        "no key": {},
        "unknown": {"Authorization": "Bearer blt_" + "0" * 12 + "_" + "0" * 64},
        "another secret": {"Authorization": f"Bearer {known[:-1]}{'1' if known[-1] == '0' else '0'}"},
        "malformed": {"Authorization": "Bearer nonsense"},
        "empty": {"Authorization": "Bearer"},
        "another scheme": {"Authorization": f"Basic {known}"},
        "no scheme": {"Authorization": known},
        "revoked": {"Authorization": f"Bearer {locked.keys['revoked']}"},
    }
    for who, headers in strangers.items():
        status = call(locked, method, path, headers)
        assert (status == 401) == (may is not None), who
        assert status != 403, who
    for who, key in locked.keys.items():
        if who != "revoked":
            status = call(locked, method, path, {"Authorization": f"Bearer {key}"})
            assert status in expected(method, path, *who.split(" of ")), (who, status)


def expected(method: str, path: str, scope: str, experiment: str | None = None) -> set[int]:
    """The statuses that a key may get for the experiment `layout`. Other tests check when 409 and 422 occur."""
    may = WHO_MAY[method, path]
    if may is None:
        return {200}
    if scope not in may or (experiment is not None and path in WHOLE):
        return {403}
    if experiment == "other" and path.startswith("/v1/decisions/"):
        return {404}  # the key must not reveal that the decision exists
    if experiment == "other" and (method, path) not in OWN_PART:
        return {403}
    return {404} if "key_id" in path else {200, 201, 409, 422}


def test_a_key_of_one_experiment_sees_no_other(locked: Locked) -> None:
    by = {"Authorization": f"Bearer {locked.keys['admin of other']}"}
    served, mine, yours = locked.served, locked.decisions["other"], locked.decisions["layout"]
    assert [one["name"] for one in served.get("/v1/experiments", **by).json()["experiments"]] == ["other"]
    with httpx.stream("GET", served.url + "/v1/live", headers=by, verify=NO_TLS) as answer:
        first = next(line for line in answer.iter_lines() if line)
    assert '"other"' in first
    assert '"layout"' not in first
    reports = [{"decision_id": id, "reward": 0.5, "amend": True} for id in (mine, yours)]
    results = served.post("/v1/feedback", {"reports": reports}, **by).json()["results"]
    assert results[0]["status"] in ("applied", "amended", "duplicate")
    assert results[1]["problem"]["status"] == 404
    assert served.get(f"/v1/decisions/{yours}", **by).status_code == 404
    assert served.post(f"/v1/decisions/{yours}/feedback", {"reward": 1}, **by).status_code == 404
    assert served.post("/v1/experiments", {**LAYOUT, "name": "third"}, **by).status_code == 403
    admin = {"Authorization": f"Bearer {locked.keys['admin']}"}
    assert len(served.get("/v1/experiments", **admin).json()["experiments"]) == 2


def test_guesses_are_counted_and_limited_for_each_key(locked: Locked) -> None:
    served, folder = locked.served, locked.served.folder
    guesser, other = ({"Authorization": f"Bearer {command(folder, 'create', '--scope', 'report')}"} for _ in range(2))
    until(lambda: served.post("/v1/feedback", {"reports": []}, **other).status_code == 422)
    admin = {"Authorization": f"Bearer {locked.keys['admin']}"}

    def misses() -> float:
        [line] = re.findall(
            r"^belated_unknown_decisions_total (\S+)$", served.get("/metrics", **admin).text, re.MULTILINE
        )
        return float(line)

    before, decision = misses(), locked.decisions["layout"]
    guesses = [{"decision_id": ids.encode(0, 3, 2**40 + number), "reward": 1} for number in range(10_000)]
    assert served.post("/v1/feedback", {"reports": guesses}, **guesser).status_code == 200
    served.post("/v1/feedback", {"reports": guesses}, **guesser)
    assert misses() == before + 20_000
    for path, body in {
        "/v1/feedback": {"reports": guesses},
        f"/v1/decisions/{decision}/feedback": {"reward": 1},
    }.items():
        refused = served.post(path, body, **guesser)
        assert refused.status_code == 429, refused.text
        assert 50 < int(refused.headers["Retry-After"]) <= 100
        assert "too many unknown decision ids" in refused.json()["detail"]
    assert misses() == before + 20_000
    assert served.post(f"/v1/decisions/{decision}/feedback", {"reward": 1}, **other).status_code in (200, 409)


def test_the_scheme_is_written_in_any_case(locked: Locked) -> None:
    for scheme in ("bearer", "BEARER"):
        assert locked.served.get("/v1/store", Authorization=f"{scheme} {locked.keys['admin']}").status_code == 200


def test_a_key_that_is_revoked_while_running_is_refused_within_about_a_second(locked: Locked) -> None:
    folder = locked.served.folder
    key = command(folder, "create", "--scope", "admin")
    headers = {"Authorization": f"Bearer {key}"}
    deadline = time.monotonic() + 10
    while call(locked, "GET", "/v1/store", headers) != 200:
        assert time.monotonic() < deadline, "a new key is not let in"
    assert command(folder, "revoke", key.split("_")[1]).startswith("revoked ")
    revoked = time.monotonic()
    while call(locked, "GET", "/v1/store", headers) != 401:
        assert time.monotonic() < revoked + 10, "a revoked key is still let in"
    assert time.monotonic() - revoked < 2.5


def test_only_hashes_are_kept(locked: Locked) -> None:
    stored = b"".join(file.read_bytes() for file in locked.served.folder.glob("belated.db*"))
    assert {file.name for file in locked.served.folder.glob("belated.db*")} >= {"belated.db", "belated.db-wal"}
    for key in locked.keys.values():
        _, id, secret = key.split("_")
        assert id.encode() in stored
        assert keys.digest(secret) in stored
        assert secret.encode() not in stored
        assert bytes.fromhex(secret) not in stored
        assert secret not in (locked.served.folder / "service.log").read_text()


def test_keys_are_listed_without_their_secrets(locked: Locked) -> None:
    listed = command(locked.served.folder, "list")
    for who, key in locked.keys.items():
        _, id, secret = key.split("_")
        line = next(line for line in listed.splitlines() if id in line)
        assert who.partition(" of ")[0] in line or who == "revoked"
        assert (who.partition(" of ")[2] or "all") in line
        assert secret[:16] not in listed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["create", "--scope", "root"], "one of read, metrics, decide, report, admin, got 'root'"),
        (["revoke", "000000000000"], "there is no key '000000000000'"),
    ],
)
def test_what_cannot_be_done_with_keys_is_told(tmp_path: Path, arguments: list[str], message: str) -> None:
    store = ["--store", str(tmp_path / "belated.db")]
    runner.invoke(cli.app, ["keys", "create", "--scope", "admin", *store])
    result = runner.invoke(cli.app, ["keys", *arguments, *store])
    assert isinstance(result.exception, InvalidInput)
    assert message in str(result.exception)


def test_a_store_is_not_made_by_looking_for_keys(tmp_path: Path) -> None:
    for arguments in (["list"], ["revoke", "000000000000"]):
        result = runner.invoke(cli.app, ["keys", *arguments, "--store", str(tmp_path / "belated.db")])
        assert isinstance(result.exception, InvalidInput)
    assert list(tmp_path.iterdir()) == []


def test_secrets_are_compared_in_constant_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """This includes unknown and malformed keys, so that the response time reveals nothing."""
    journal = Driven(tmp_path).engine.journal
    key = keys.create(journal, "admin", None)
    gate, compared = Gate(journal.keys()), list[tuple[bytes, bytes]]()

    def spy(one: bytes, other: bytes) -> bool:
        compared.append((one, other))
        return one == other

    monkeypatch.setattr(hmac, "compare_digest", spy)
    assert gate.admit(key, "admin").scope == "admin"
    for wrong in (None, "nonsense", "blt_" + "0" * 12 + "_" + "0" * 64, f"{key[:-1]}x"):
        with pytest.raises(Refusal, match="unauthenticated"):
            gate.admit(wrong, "decide")
    assert len(compared) == 5
    assert compared[0][0] == compared[0][1] == keys.digest(key.split("_")[2])
    assert all(len(part) == 32 for pair in compared for part in pair)


def test_a_store_that_has_lost_its_keys_does_not_open_the_door(tmp_path: Path) -> None:
    journal = Driven(tmp_path).engine.journal
    keys.create(journal, "admin", None)
    gate = Gate(journal.keys())
    gate.learn([])
    assert gate.is_locked
    with pytest.raises(Refusal, match="unauthenticated"):
        gate.admit(None, "admin")


def test_revoking_the_last_key_does_not_open_the_door(tmp_path: Path) -> None:
    journal = Driven(tmp_path).engine.journal
    assert not Gate(journal.keys()).is_locked
    key = keys.create(journal, "admin", None)
    journal.revoke_key(key.split("_")[1], 1)
    assert Gate(journal.keys()).is_locked
    with pytest.raises(Refusal, match="unauthenticated"):
        Gate(journal.keys()).admit(key, "admin")
