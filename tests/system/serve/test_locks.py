"""Nobody waits behind a lock that somebody else's open transaction has on the tables beside the journal."""

import asyncio
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager

import pytest

from belated.errors import StoreUnreachable
from belated.serve.domain.settings import Settings
from belated.serve.engine import engine as engines
from belated.serve.engine.engine import Engine
from belated.serve.engine.requests import Create
from belated.serve.service import service as serving
from belated.serve.service.service import Service
from belated.serve.store import journal as contract
from belated.serve.store.journal import Busy, Key, Record
from belated.serve.store.opening import open_to_serve
from belated.serve.store.postgres import partitions, schema
from belated.serve.store.postgres.journal import PostgresJournal
from tests.serve.test_ended_keys import MOST, assert_ended_keys_are_dropped
from tests.support.in_process import Caller, visit
from tests.support.postgres import ROLE, Cluster, connect

LONG = 60.0  # seconds without an answer of the database, so that only the lock decides
TABLES = ["audit", "keys", "forgotten"]
KEY = Key("0" * 12, b"digest", "read", None, 1)
RECORD = Record(0, True, 1, 1, 1, "what", 200, "ops", "", "", "")  # noqa: FBT003


@contextmanager
def locked(url: str, table: str, mode: str = "EXCLUSIVE") -> Iterator[None]:
    """Somebody has changed the table, and does not end the transaction."""
    with closing(connect(url)) as other, other.transaction(force_rollback=True):
        other.execute(f"LOCK TABLE {table} IN {mode} MODE".encode())
        yield


@pytest.mark.parametrize("mode", ["EXCLUSIVE", "ACCESS EXCLUSIVE"])
@pytest.mark.parametrize("table", TABLES)
def test_a_server_does_not_wait_for_a_lock(database: str, table: str, mode: str) -> None:
    with closing(PostgresJournal(database, silence_timeout=LONG)) as journal:
        journal.add_key(KEY)
        all: dict[str, list[Callable[[], object]]] = {
            "audit": [lambda: journal.note([RECORD]), lambda: journal.revoke_key(KEY.id, 2, RECORD)],
            "keys": [lambda: journal.note_uses({KEY.id: 2}), lambda: journal.revoke_key(KEY.id, 2)],
            "forgotten": [lambda: list(journal.forget_requests(1))],
        }
        changes, engine = all[table], Engine(journal)
        process(engine)
        with locked(database, table, mode):
            for change in changes:
                with pytest.raises(Busy):
                    change()
            process(engine)  # over the same connection
        for change in changes:
            change()


def process(engine: Engine) -> None:
    """Let an engine write an entry."""
    [result] = engine.process([Create(Settings(f"after-{engine.fold.seq}", ["a", "b"]))])
    assert isinstance(result, tuple), result


@pytest.mark.parametrize("table", [*TABLES, "saved_snapshots", "snapshot_parts", "base_parts", "version"])
def test_nobody_waits_for_a_table_that_cannot_even_be_read(
    database: str, monkeypatch: pytest.MonkeyPatch, table: str
) -> None:
    """As during a VACUUM FULL, or after a LOCK TABLE without a mode. The writer looks at all of them twice a second."""
    monkeypatch.setattr(engines, "SNAPSHOT_EVERY", 1)
    journal, saved = open_to_serve(database, silence_timeout=LONG), list[int]()
    service = Service(Engine(journal), make_snapshot=lambda: saved.append(1))

    async def work(caller: Caller) -> None:
        made = await caller.post("/v1/keys", {"label": "ops", "scopes": ["admin"]})
        admin = caller.having(made.json()["key"])
        assert (await admin.post("/v1/experiments", {"name": "layout", "arms": ["a", "b"]})).status_code == 201
        with locked(database, table, "ACCESS EXCLUSIVE"):
            service._engine._forgetting._not_before = 0.0
            learned, n_saved = service._writer._next_look, len(saved)
            while service._writer._next_look == learned or len(saved) == n_saved:
                assert (await admin.post("/v1/experiments/layout/decisions")).status_code == 201
            for path, needed in (("/v1/keys", "keys"), ("/v1/audit", "audit")):
                answer = await admin.get(path)
                assert answer.status_code == (503 if table == needed else 200)
                assert ("Retry-After" in answer.headers) == (table == needed)
            assert (await admin.get("/v1/experiments/layout/decisions")).status_code == 200
            assert service.refusal() is None
        assert (await admin.get("/v1/keys")).status_code == 200

    visit(service, work)


def test_a_change_of_a_key_is_made_once_if_the_keys_are_locked_after_it(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise it would be tried again, and make another key."""
    service, made = Service(Engine(open_to_serve(database, silence_timeout=LONG))), list[int]()
    journal = service._engine.journal
    keys = journal.keys

    def keys_unless_made() -> list[Key]:
        if made:
            raise Busy("locked")
        return keys()

    async def work(_: Caller) -> None:
        monkeypatch.setattr(journal, "keys", keys_unless_made)
        await service.manage(lambda _journal, now: made.append(now))
        assert len(made) == 1

    visit(service, work)


def test_tables_that_may_not_be_written_stop_no_decision(
    cluster: Cluster, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a migration by another role."""
    monkeypatch.setattr(serving, "NOTE_EVERY", 0.0)
    service = Service(Engine(open_to_serve(database, silence_timeout=LONG)))
    name = database.rpartition("/")[2]

    async def work(caller: Caller) -> None:
        made = await caller.post("/v1/keys", {"label": "ops", "scopes": ["admin"]})
        admin = caller.having(made.json()["key"])
        assert (await admin.post("/v1/experiments", {"name": "layout", "arms": ["a", "b"]})).status_code == 201
        with closing(cluster.admin(name)) as other:
            other.execute("ALTER TABLE belated.audit OWNER TO postgres")
        assert (await caller.get("/v1/keys")).status_code == 401
        change = await admin.post("/v1/keys", {"scopes": ["read"]})
        assert (change.status_code, "keys or the audit trail" in change.json()["detail"]) == (503, True)
        await asyncio.sleep(1)  # the writer notes the refusal twice a second
        assert (await admin.post("/v1/experiments/layout/decisions")).status_code == 201
        assert service.failure == ""
        with closing(cluster.admin(name)) as other:
            other.execute(f"ALTER TABLE belated.audit OWNER TO {ROLE}".encode())
        assert (await admin.post("/v1/keys", {"scopes": ["read"]})).status_code == 201

    visit(service, work)


def test_a_migration_of_the_keys_holds_up_nobody(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It needs the table for itself. A backup may have it for hours, and servers would queue behind the migration."""
    monkeypatch.setattr(partitions, "PATIENCE", 3.0)
    with closing(connect(database)) as other:
        other.execute("DROP TABLE audit")
        other.execute("ALTER TABLE keys DROP COLUMN label, DROP COLUMN expires_at, DROP COLUMN used_at")
        other.execute("UPDATE version SET number = 5")
        with ThreadPoolExecutor(1) as pool, closing(connect(database)) as server:
            with other.transaction():
                other.execute("SELECT count(*) FROM keys")
                done = pool.submit(lambda: list(schema.migrate(database)))
                server.execute("SET lock_timeout = 1000")
                while not done.done():
                    server.execute("SELECT id FROM keys")  # as a server does twice a second
                with pytest.raises(StoreUnreachable, match="an open transaction uses"):
                    done.result()
            assert list(schema.migrate(database)) == ["schema version 6"]


def test_a_command_waits(database: str) -> None:
    with closing(PostgresJournal(database)) as journal, ThreadPoolExecutor(1) as pool:
        with locked(database, "audit"):
            done = pool.submit(journal.add_key, KEY, None, RECORD)
            time.sleep(0.2)
            assert not done.done()
        done.result(10)
        assert len(journal.records(0, 10)) == 1


def test_only_who_changes_keys_waits_for_a_lock(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The writer serves all others meanwhile, also when it is time to note who was refused."""
    monkeypatch.setattr(serving, "NOTE_EVERY", 0.0)
    service = Service(Engine(open_to_serve(database, silence_timeout=LONG)))

    async def work(caller: Caller) -> None:
        made = await caller.post("/v1/keys", {"label": "ops", "scopes": ["admin"]})
        admin = caller.having(made.json()["key"])
        assert (await admin.post("/v1/experiments", {"name": "layout", "arms": ["a", "b"]})).status_code == 201
        assert (await caller.get("/v1/keys")).status_code == 401
        with locked(database, "audit"):
            change = asyncio.create_task(admin.post("/v1/keys", {"scopes": ["read"]}))
            decided = 0
            while not change.done() or decided < 20:
                assert (await admin.post("/v1/experiments/layout/decisions")).status_code == 201
                decided += 1
            assert (await change).status_code == 503
            assert "Retry-After" in (await change).headers
            assert service.refusal() is None
        assert (await admin.post("/v1/keys", {"scopes": ["read"]})).status_code == 201
        await asyncio.sleep(1)  # the writer looks at keys twice a second
        kinds = [(one["kind"], one["what"]) for one in (await admin.get("/v1/audit")).json()["records"]]
        assert sum(kind == "change" and what.startswith("POST /v1/keys, new key ") for kind, what in kinds) == 2
        assert ("refusal", "GET /v1/keys") in kinds, "it was counted again while it could not be written"

    visit(service, work)


def test_keys_that_ended_long_ago_are_dropped(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a file. Whoever makes keys in a loop would otherwise slow all servers down for good."""
    monkeypatch.setattr(contract, "MOST_ENDED_KEYS", MOST)
    with closing(PostgresJournal(database)) as journal:
        assert_ended_keys_are_dropped(journal)
