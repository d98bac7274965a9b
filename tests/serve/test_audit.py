"""Keys over the API, and the audit trail that names them."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from belated.serve.domain.timestamps import MICROSECONDS
from belated.serve.engine.engine import Engine
from belated.serve.engine.writer import Writer
from belated.serve.service.service import Service
from belated.serve.service.trail import MOST_KINDS, MOST_OF_ONE, OTHERS, Kind, Refused
from belated.serve.store.sqlite.journal import SQLiteJournal
from tests.support.in_process import Caller, visit

LAYOUT = {"name": "layout", "arms": ["a", "b"]}


def opened(folder: Path) -> Service:
    return Service(Engine(SQLiteJournal(folder / "belated.db", synchronous="OFF")))


async def first_key(caller: Caller) -> Caller:
    """Create the first key, over the API of a service that has none."""
    made = await caller.post("/v1/keys", {"label": "ops", "scopes": ["admin"]})
    assert made.status_code == 201, made.text
    return caller.having(made.json()["key"])


async def trail(admin: Caller, query: str = "") -> list[dict[str, Any]]:
    """The audit trail, without times."""
    page = (await admin.get(f"/v1/audit{query}")).json()
    drop = {"first", "last", "request_id"}
    return [{name: value for name, value in one.items() if name not in drop} for one in page["records"]]


def test_keys_are_created_listed_rotated_and_revoked(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    secrets = list[str]()

    async def manage(caller: Caller) -> None:
        refused = await caller.post("/v1/keys", {"scopes": ["decide"]})
        assert (refused.status_code, "first key" in refused.json()["detail"]) == (422, True)
        admin = await first_key(caller)
        assert (await caller.get("/v1/keys")).status_code == 401
        wish = {"label": "shop", "scopes": ["decide", "report"], "experiment": "layout", "expires_in": 60, "rate": 9}
        made = (await admin.post("/v1/keys", wish)).json()
        shop = admin.having(made["key"])
        assert (await admin.post("/v1/experiments", LAYOUT)).status_code == 201
        assert (await shop.post("/v1/experiments/layout/decisions")).status_code == 201  # at once, on this server
        assert (await shop.get("/v1/keys")).status_code == 403
        rotated = (await admin.post(f"/v1/keys/{made['id']}/rotate", {"overlap": 1000})).json()
        for one in (made["key"], rotated["key"]):
            assert (await admin.having(one).post("/v1/experiments/layout/decisions")).status_code == 201
        revoked = await admin.post(f"/v1/keys/{made['id']}/revoke")
        assert revoked.status_code == 200
        assert revoked.json() == (await admin.post(f"/v1/keys/{made['id']}/revoke")).json()
        assert (await shop.post("/v1/experiments/layout/decisions")).status_code == 401
        assert (await admin.post("/v1/keys/nope/revoke")).status_code == 404
        listed = (await admin.get("/v1/keys")).json()["keys"]
        assert [(one["label"], one["scopes"], one["experiment"], one["rate"]) for one in listed] == [
            ("ops", ["admin"], None, None),
            *[("shop", ["decide", "report"], "layout", 9)] * 2,
        ]
        assert [one["revoked_at"] is None for one in listed] == [True, False, True]
        assert [one["used_at"] is None for one in listed] == [True] * 3  # they are written once a minute
        secrets.extend(one["key"].split("_")[2] for one in (made, rotated))
        secrets.append(json.dumps(listed))

    visit(opened(tmp_path), manage)
    *hidden, listed = secrets
    stored = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    for secret in hidden:
        assert secret.encode() not in stored
        assert secret not in listed + caplog.text
    journal = SQLiteJournal(tmp_path / "belated.db")
    assert [key.used_at is not None for key in sorted(journal.keys(), key=lambda key: key.created_at)] == [True] * 3
    journal.close()


def test_the_trail_names_who_changed_what_and_who_was_refused(tmp_path: Path) -> None:
    async def work(caller: Caller) -> None:
        admin = await first_key(caller)
        [ops] = (await admin.get("/v1/keys")).json()["keys"]
        made = (await admin.post("/v1/keys", {"label": "shop", "scopes": ["decide"]})).json()
        shop = admin.having(made["key"])
        for _ in range(2):
            await admin.post("/v1/experiments", LAYOUT, **{"X-Request-ID": "mine"})
        await admin.post("/v1/experiments/layout/arms", {"add": ["c"]})
        for _ in range(3):
            await shop.post("/v1/experiments/layout/close")
            await shop.post("/v1/experiments/unknown%0Aline/close")
        await shop.post("/v1/experiments/layout/decisions")
        await caller.post("/v1/experiments/layout/close")
        await admin.post("/v1/experiments", {**LAYOUT, "arms": ["x"]})
        by_ops, by_shop = {"by": "ops", "key": ops["id"]}, {"by": "shop", "key": made["id"]}
        create, close = "POST /v1/experiments", "POST /v1/experiments/{name}/close"
        nobody = {"kind": "change", "times": 1, "status": 201, "by": "", "key": ""}
        first, second = (f"POST /v1/keys, new key {one['id']}" for one in (ops, made))
        found = await trail(admin)
        assert found == [
            {**nobody, "what": first, "experiment": ""},
            {**nobody, **by_ops, "what": second, "experiment": ""},
            {**nobody, **by_ops, "what": create, "experiment": "layout"},
            {**nobody, **by_ops, "what": create, "status": 200, "experiment": "layout"},
            {**nobody, **by_ops, "what": "POST /v1/experiments/{name}/arms", "status": 200, "experiment": "layout"},
            {"kind": "refusal", "times": 3, "what": close, "status": 403, **by_shop, "experiment": "layout"},
            {"kind": "refusal", "times": 3, "what": close, "status": 403, **by_shop, "experiment": ""},
            {"kind": "refusal", "times": 1, "what": close, "status": 401, "by": "", "key": "", "experiment": "layout"},
            {"kind": "refusal", "times": 1, "what": create, "status": 409, **by_ops, "experiment": "layout"},
        ]
        page = (await admin.get("/v1/audit?limit=3")).json()
        assert page["records"][2]["request_id"] == "mine"
        assert page["next"] == page["resume"]
        assert await trail(admin, f"?cursor={page['next']}") == found[3:]
        last = (await admin.get(f"/v1/audit?cursor={page['next']}")).json()
        assert last["next"] is None
        await admin.post("/v1/experiments/layout/close")
        assert [one["what"] for one in await trail(admin, f"?cursor={last['resume']}")] == [close]
        assert (await shop.get("/v1/audit")).status_code == 403  # the labels of others are not for everyone
        own = (await admin.post("/v1/keys", {"scopes": ["admin"], "experiment": "layout"})).json()
        seen = await trail(admin.having(own["key"]))
        assert {one["experiment"] for one in seen} == {"layout"}
        assert len(seen) == 8

    visit(opened(tmp_path), work)


def test_the_trail_says_which_key_was_rotated_and_revoked(tmp_path: Path) -> None:
    async def work(caller: Caller) -> None:
        admin = await first_key(caller)
        old = (await admin.post("/v1/keys", {"label": "shop", "scopes": ["decide"]})).json()["id"]
        new = (await admin.post(f"/v1/keys/{old}/rotate", {})).json()["id"]
        await admin.post(f"/v1/keys/{old}/revoke", {})
        await admin.post("/v1/keys/nobodys/revoke", {})
        found = [one["what"] for one in await trail(admin)][2:]
        changes = [f"POST /v1/keys/{old}/rotate, new key {new}", f"POST /v1/keys/{old}/revoke"]
        assert found == [*changes, "POST /v1/keys/{key_id}/revoke"], "a refusal has no name that a caller chose"
        await admin.post("/v1/experiments", LAYOUT)
        mine = {"scopes": ["admin"], "experiment": "layout"}
        own = (await admin.post("/v1/keys", mine)).json()
        await admin.post(f"/v1/keys/{own['id']}/rotate", {})
        await admin.post(f"/v1/keys/{own['id']}/revoke", {})
        seen = await trail(admin.having((await admin.post("/v1/keys", mine)).json()["key"]))
        assert [one["what"].split("/")[-1].split(",")[0] for one in seen] == [
            *("experiments", "keys", "rotate", "revoke", "keys")
        ], "also whose key of this experiment was replaced"

    visit(opened(tmp_path), work)


def test_a_change_is_in_the_trail_when_it_is_answered_and_refusals_when_the_server_stops(tmp_path: Path) -> None:
    async def work(caller: Caller) -> None:
        admin = await first_key(caller)
        await admin.post("/v1/experiments", LAYOUT)
        other = SQLiteJournal(tmp_path / "belated.db")
        [key, made] = [one.what for one in other.records(0, 10)]
        assert (key.startswith("POST /v1/keys, new key "), made) == (True, "POST /v1/experiments")
        other.close()
        await caller.get("/v1/keys")

    visit(opened(tmp_path), work)
    journal = SQLiteJournal(tmp_path / "belated.db")
    last = journal.records(0, 10)[-1]
    assert (last.is_change, last.what, last.status) == (False, "GET /v1/keys", 401)
    journal.close()


def test_a_flood_of_refusals_takes_little_memory_and_is_told() -> None:
    refused = Refused()
    for number in range(10_000):
        refused.add(Kind("POST /v1/feedback", 403, f"label {number}", str(number), ""), number * MICROSECONDS, "id")
    records = refused.take()
    assert len(records) == MOST_KINDS + 1
    assert sum(one.times for one in records) == 10_000
    [rest] = [one for one in records if one.what == OTHERS]
    assert (rest.times, rest.first, rest.last) == (10_000 - MOST_KINDS, MOST_KINDS * MICROSECONDS, 9_999 * MICROSECONDS)
    assert refused.take() == []


def test_nobody_hides_the_refusals_of_others() -> None:
    """Neither with many kinds of refusals of a key, nor without a key."""
    refused = Refused()
    for number in range(1000):
        for key in ("", "mad"):
            refused.add(Kind(f"POST /{number}", 403, key, key, ""), number, "id")
    calm = Kind("POST /v1/keys", 403, "shop", "calm", "")
    refused.add(calm, 1000, "id")
    records = refused.take()
    assert len(records) == 2 * (MOST_OF_ONE + 1) + 1
    assert [Kind(*one[5:10]) for one in records if one.key == "calm"] == [calm]
    others = [(one.what, one.label, one.times) for one in records if one.what == OTHERS]
    assert others == [(OTHERS, key, 1000 - MOST_OF_ONE) for key in ("", "mad")]


def test_strange_methods_are_one_kind(tmp_path: Path) -> None:
    async def work(caller: Caller) -> None:
        admin = await first_key(caller)
        for method in ("PROPFIND", "SOURCE", "MKCOL"):
            assert (await caller.request(method, "/v1/keys")).status_code == 405
        assert [(one["what"], one["times"]) for one in (await trail(admin))[1:]] == [("other /v1/keys", 3)]

    visit(opened(tmp_path), work)


def test_who_reads_the_trail_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(caller: Caller) -> None:
        admin = await first_key(caller)
        await caller.get("/v1/keys")
        assert len(await trail(admin)) == 2  # the refusal is there at once
        monkeypatch.setattr(Writer, "run", None)
        for _ in range(3):
            assert len(await trail(admin)) == 2

    visit(opened(tmp_path), work)


def test_what_could_not_be_written_is_counted_again() -> None:
    refused, kind, other = Refused(), *(Kind("POST /v1/feedback", status, "", "", "") for status in (403, 404))
    for at in (5, 7):
        refused.add(kind, at, str(at))
    taken = refused.take()
    refused.add(kind, 9, "9")
    refused.add(other, 8, "8")
    refused.put_back(taken)
    assert [(one.status, one.first, one.last, one.times, one.request_id) for one in refused.take()] == [
        (403, 5, 9, 3, "9"),
        (404, 8, 8, 1, "8"),
    ]


def test_a_repeated_revocation_waits_for_the_standby(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It writes nothing. So it rests on a commit of which it does not know whether that has waited."""
    settled = list[bool]()
    monkeypatch.setattr(SQLiteJournal, "settle", lambda _: settled.append(True))

    async def revoke(caller: Caller) -> None:
        admin = await first_key(caller)
        id = (await admin.post("/v1/keys", {"scopes": ["read"]})).json()["id"]
        for _ in range(2):
            before = len(settled)
            assert (await admin.post(f"/v1/keys/{id}/revoke")).status_code == 200
            assert len(settled) > before

    visit(opened(tmp_path), revoke)


def test_a_bug_in_the_change_of_a_key_stops_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(caller: Caller) -> None:
        admin = await first_key(caller)
        with monkeypatch.context() as patched:
            patched.setattr(SQLiteJournal, "add_key", lambda *_: 1 / 0)
            assert (await admin.post("/v1/keys", {"scopes": ["read"]})).status_code == 500
        assert (await admin.get("/readyz")).status_code == 200
        assert (await admin.post("/v1/experiments", LAYOUT)).status_code == 201

    visit(opened(tmp_path), work)


def test_nothing_is_written_for_a_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Last uses and refusals are written once a minute, so that a flood does not become writes."""
    noted = list[int]()
    for name in ("note", "note_uses"):
        kept = getattr(SQLiteJournal, name)

        def spy(self: SQLiteJournal, what: Any, kept: Any = kept) -> None:
            noted.append(len(what))
            kept(self, what)

        monkeypatch.setattr(SQLiteJournal, name, spy)

    async def work(caller: Caller) -> None:
        admin = await first_key(caller)
        for _ in range(200):
            assert (await admin.get("/v1/keys")).status_code == 200
            assert (await caller.get("/v1/keys")).status_code == 401

    visit(opened(tmp_path), work)
    assert noted == [1, 1]  # at the end


def test_whoever_reads_the_trail_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """But for refusals that it must show. Each commit would hold up decisions."""
    commits = list[int]()
    kept = SQLiteJournal._commit

    def spy(self: SQLiteJournal, statements: Any) -> list[int]:
        commits.append(len(statements))
        return kept(self, statements)

    async def read(caller: Caller) -> None:
        admin = await first_key(caller)
        monkeypatch.setattr(SQLiteJournal, "_commit", spy)
        for _ in range(20):
            await trail(admin)
        assert commits == []
        assert (await caller.get("/v1/keys")).status_code == 401
        assert [one["kind"] for one in await trail(admin)] == ["change", "refusal"]
        assert len(commits) == 1

    visit(opened(tmp_path), read)
