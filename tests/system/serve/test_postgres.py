"""The PostgreSQL server stops, restarts, loses data or is misconfigured. Its password stays secret."""

import json
import time
import traceback
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from threading import Thread
from typing import Any

import msgspec
import psycopg
import pytest
from typer.testing import CliRunner

from belated import cli
from belated.errors import InvalidInput, StoreError, StoreUnreachable
from belated.serve.domain.fold import Snapshot
from belated.serve.store import opening as stores
from belated.serve.store.journal import Conflict, Journal, Key, Rejected
from belated.serve.store.opening import open_journal, shown
from belated.serve.store.postgres.journal import PostgresJournal
from belated.serve.store.postgres.notices import is_doubtful
from belated.serve.store.postgres.schema import SCHEMA_VERSION, migrate
from belated.testing.entries import created, decided, event, outcome
from belated.testing.journal_contract import record
from tests.support.journals import Slow
from tests.support.older_release import older_store
from tests.support.postgres import PASSWORD, ROLE, Cluster, connect
from tests.support.relay import relay_to
from tests.support.service import Served
from tests.support.waiting import until

SECRETS = (PASSWORD, PASSWORD.replace("%40", "@"), "ss-word")


# -- a server that stops and restarts ----------------------------------------------------------------------------

CALLS: dict[str, Callable[[Journal], Any]] = {
    "append": lambda journal: journal.append([decided(1, 5)]),
    "last": lambda journal: journal.last(),
    "named": lambda journal: journal.named(["one"]),
    "read": lambda journal: journal.read(0, 10),
    "find": lambda journal: journal.find([1]),
    "requested": lambda journal: journal.requested([(1, "k")]),
    "save": lambda journal: journal.save(Snapshot(1, 1, b"")),
    "keys": lambda journal: journal.keys(),
    "add_key": lambda journal: journal.add_key(Key("b", b"", "admin", None, 1)),
    "size": lambda journal: journal.size(),
    "check": lambda journal: journal.check(),
}


def test_every_call_connects_again_after_a_crash_and_what_was_acknowledged_is_there(
    cluster: Cluster, journal: Journal
) -> None:
    reader, acknowledged = journal.reader(), journal.read(0, 10)
    cluster.stop("immediate")
    for call in [*CALLS.values(), *CALLS.values()]:
        with pytest.raises(StoreUnreachable, match=f"postgresql://{ROLE}@127.0.0.1:{cluster.port}/test_"):
            call(journal)
    cluster.start()
    for call in CALLS.values():
        call(journal)
    assert journal.read(0, 10)[:1] == acknowledged
    with pytest.raises(StoreUnreachable):
        reader.last()
    assert reader.read(0, 10) == journal.read(0, 10)
    assert len(journal.read(0, 10)) == 2
    reader.close()


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_each_call_alone_connects_again(cluster: Cluster, journal: Journal, call: Callable[[Journal], Any]) -> None:
    with closing(cluster.admin()) as admin:
        admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'belated'")
    with pytest.raises(StoreUnreachable):
        call(journal)
    call(journal)


def test_a_server_that_is_silent_is_given_up(cluster: Cluster, database: str, journal: Journal) -> None:
    """TCP is healthy but no data arrives, as behind a broken proxy. Every call times out once, then reconnects."""
    with relay_to(cluster.port) as (between, port):
        far = PostgresJournal(database.replace(f":{cluster.port}/", f":{port}/"), silence_timeout=0.3)
        far.append([decided(1, 4)])  # prepares the statement, so that the next append is sent at once
        for call in CALLS.values():
            far.last()
            between.cut()
            began = time.monotonic()
            with pytest.raises(StoreUnreachable, match=r"no answer for 0\.3 seconds"):
                call(far)
            assert 0.3 <= time.monotonic() - began < 3.0
            between.heal()
        far.close()
        until(lambda: journal.last() == 3)  # the delayed append has arrived
        assert len(journal.read(0, 10)) == 3


def test_a_crash_takes_back_places_and_the_horizon_with_them(
    cluster: Cluster, database: str, journal: PostgresJournal
) -> None:
    """A crash can reset the sequence, so numbers repeat. A horizon from before the crash would skip these entries."""
    slow = Slow(database)
    journal.read(0, 10)
    slow.connection.execute("SELECT pg_current_xact_id(), nextval('places') FROM generate_series(1, 1000)")
    slow.roll_back()
    slow.close()
    assert journal.read(1, 10) == []
    assert journal._horizon.seq == 1001
    cluster.stop("immediate")
    cluster.start()
    slow = Slow(database)
    [first] = slow.append(decided(1, 1))
    with pytest.raises(StoreUnreachable):
        journal.read(1, 10)
    [second] = journal.append([decided(1, 2)])
    assert first < second < 1001, "the crash reset the sequence"
    assert journal.read(1, 10) == []
    slow.commit()
    slow.close()
    assert [entry.seq for entry in journal.read(1, 10)] == [first, second]


def test_a_server_that_has_lost_what_was_read_is_not_followed(
    cluster: Cluster, database: str, journal: Journal
) -> None:
    """After a failover to a lagging standby, another entry may have the same number."""
    journal.append([decided(1, 1)])
    assert len(journal.read(0, 10)) == 2
    with closing(connect(database)) as connection:
        connection.execute("UPDATE journal SET nonce = 8 WHERE seq = 2")
    assert len(journal.read(0, 10)) == 2, "the same connection is the same server"
    journal.read(0, 1)
    with closing(cluster.admin()) as admin:
        kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'belated'"
        admin.execute(kill)
        with pytest.raises(StoreUnreachable):
            journal.last()
        assert len(journal.read(0, 10)) == 2, "the entry that was read last is there"
        with closing(connect(database)) as connection:
            connection.execute("UPDATE journal SET nonce = 9 WHERE seq = 2")
        admin.execute(kill)
    with pytest.raises(StoreUnreachable):
        journal.last()
    for _ in range(2):
        with pytest.raises(StoreError, match="has lost entries up to 2"):
            journal.read(2, 10)


def test_a_server_that_has_lost_what_was_written_is_not_followed(
    cluster: Cluster, database: str, journal: Journal
) -> None:
    """An engine applies what it has written at once, without reading it."""
    assert len(journal.read(0, 10)) == 1
    journal.append([decided(1, 1), decided(1, 2)])
    with closing(cluster.admin(database.rpartition("/")[2])) as admin:
        admin.execute("DELETE FROM belated.journal WHERE seq = 3")
        admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'belated'")
    with pytest.raises(StoreUnreachable):
        journal.last()
    with pytest.raises(StoreError, match="has lost entries up to 3"):
        journal.read(3, 10)


def test_a_standby_is_no_store(cluster: Cluster, database: str) -> None:
    signal = cluster.folder / "data" / "standby.signal"
    cluster.stop("fast")
    signal.touch()
    cluster.start()
    try:
        with pytest.raises(StoreError, match=r"is a standby or read only\. Name the primary"):
            PostgresJournal(database)
        with pytest.raises(StoreError, match="standby"):
            PostgresJournal(database, readonly=True)
    finally:
        cluster.stop("fast")
        signal.unlink()
        cluster.start()
    PostgresJournal(database).close()


def test_an_append_whose_standby_is_not_waited_for_is_not_acknowledged(cluster: Cluster, journal: Journal) -> None:
    raised: list[BaseException] = []

    def write() -> None:
        try:
            journal.append([decided(1, 1)])
        except StoreUnreachable as error:
            raised.append(error)

    with closing(cluster.admin()) as admin:
        admin.execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
        admin.execute("SELECT pg_reload_conf()")
        time.sleep(0.2)
        writer = Thread(target=write)
        writer.start()
        cancel = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
        while not admin.execute(cancel).fetchall():
            time.sleep(0.01)
        writer.join()
        admin.execute("ALTER SYSTEM RESET synchronous_standby_names")
        admin.execute("SELECT pg_reload_conf()")
    assert "canceling wait for synchronous replication" in str(raised[0])
    assert journal.last() == 2, "it is committed here, but the writer cannot know"


def test_other_warnings_are_logged_and_the_append_is_acknowledged(
    database: str, journal: Journal, caplog: pytest.LogCaptureFixture
) -> None:
    """PostgreSQL warns with every commit, long before its transaction numbers run out."""
    warn = "RAISE WARNING 'database % must be vacuumed within % transactions', 'belated', NEW.seq USING HINT = 'VACUUM'"
    with closing(connect(database)) as other:
        other.execute(f"CREATE FUNCTION warn() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN {warn}; RETURN NEW; END$$")
        other.execute("CREATE TRIGGER warns BEFORE INSERT ON journal FOR EACH ROW EXECUTE FUNCTION warn()")
        other.execute("CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON journal DEFERRABLE INITIALLY DEFERRED "
                      "FOR EACH ROW EXECUTE FUNCTION warn()")  # fmt: skip
    first = journal.last()
    for number in range(5):
        journal.append([decided(1, 10 + number)])
    assert journal.last() == first + 5
    [line] = [one for one in caplog.records if one.message == "the database warns, and the service goes on"]
    assert (line.levelname, line.hint) == ("WARNING", "VACUUM")  # type: ignore[attr-defined]
    assert line.warning.endswith(f"must be vacuumed within {first + 1} transactions")  # type: ignore[attr-defined]
    assert "pa@ss-word" not in caplog.text


@pytest.mark.parametrize(
    ("sqlstate", "function", "message", "expected"),
    [
        ("01000", "SyncRepWaitForLSN", "storniere Warten auf synchrone Replikation wegen Benutzeraufforderung", True),
        ("57P01", "SyncRepWaitForLSN", "canceling the wait for synchronous replication and terminating", True),
        ("01000", None, "canceling wait for synchronous replication due to user request", True),
        ("57P02", "quickdie", "terminating connection because of crash of another server process", True),
        ("01000", "exec_stmt_raise", "anything", False),
        ("01000", "GetNewTransactionId", "database must be vacuumed within 1000 transactions", False),
        (None, None, None, False),
    ],
)
def test_which_warnings_put_a_commit_in_doubt(
    sqlstate: str | None, function: str | None, message: str | None, expected: bool
) -> None:
    assert is_doubtful(sqlstate, function, message) is expected


@pytest.mark.parametrize(("field", "value"), [("request", "a\x00b"), ("request", "\ud800"), ("nonce", 2**63)])
def test_a_value_that_the_database_cannot_hold_is_rejected_and_nothing_is_written(
    journal: Journal, field: str, value: Any
) -> None:
    before, good = journal.last(), decided(1, 1)
    with pytest.raises(Rejected):
        journal.append([good, msgspec.structs.replace(good, **{field: value, "position": 0})])
    assert journal.last() == before
    assert journal.append([good])


def test_a_key_that_the_database_cannot_hold_is_rejected(journal: Journal) -> None:
    with pytest.raises(Rejected):
        journal.requested([(1, "a\x00b")])
    assert journal.requested([(1, "ab")]) == {}


def test_appends_that_wait_for_each_other_are_sorted_out(database: str, journal: Journal) -> None:
    """PostgreSQL ends the deadlock after a second. The journal retries and gets the conflict."""
    slow, raised = Slow(database), list[BaseException]()

    def write() -> None:
        try:
            journal.append([decided(1, 1, key="b", position=0), decided(1, 2, key="a", position=0)])
        except Conflict as error:
            raised.append(error)

    slow.append(decided(1, 3, key="a", position=0))
    writer = Thread(target=write)
    writer.start()
    time.sleep(0.3)
    slow.append(decided(1, 4, key="b", position=0))
    slow.commit()
    slow.close()
    writer.join()
    assert [str(error) for error in raised] == ["one_effect"]


def test_another_thread_may_look_while_one_writes(journal: Journal) -> None:
    """The service does this when it is asked for the size of the store."""
    writer = Thread(target=lambda: [journal.append([decided(1, n)]) for n in range(100)])
    writer.start()
    while writer.is_alive():
        assert journal.size() > 0
    writer.join()
    assert journal.last() == 101


# -- settings of a role or a server --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "theirs", "ours"),
    [
        ("synchronous_commit", "off", "on"),
        ("synchronous_commit", "local", "on"),
        ("synchronous_commit", "remote_apply", "remote_apply"),
        ("default_transaction_isolation", "repeatable read", "read committed"),
        ("search_path", "public", "belated"),
        ("client_min_messages", "error", "warning"),
        ("standard_conforming_strings", "off", "on"),
        ("tcp_keepalives_idle", "7200", "1"),
        ("tcp_keepalives_interval", "75", "1"),
        ("tcp_keepalives_count", "9", "3"),
        ("tcp_user_timeout", "0", "3000"),
    ],
)
def test_settings_that_would_break_a_promise_are_set(
    cluster: Cluster, database: str, name: str, theirs: str, ours: str
) -> None:
    with closing(cluster.admin()) as admin:
        admin.execute(f"ALTER DATABASE {database.rpartition('/')[2]} SET {name} = '{theirs}'".encode())
    with closing(PostgresJournal(database)) as journal, closing(journal.reader()) as reader:
        for one in (journal, reader):
            assert one._rows("SELECT current_setting($1)", (name,)) == [(ours,)]  # type: ignore[attr-defined]


def test_a_database_whose_triggers_do_not_run_is_refused(cluster: Cluster, database: str) -> None:
    with closing(cluster.admin()) as admin:
        admin.execute(f"ALTER DATABASE {database.rpartition('/')[2]} SET session_replication_role = replica".encode())
    with pytest.raises(StoreError, match="session_replication_role"):
        PostgresJournal(database)


def test_a_database_that_is_read_only_is_refused(cluster: Cluster, database: str) -> None:
    with closing(cluster.admin()) as admin:
        admin.execute(f"ALTER DATABASE {database.rpartition('/')[2]} SET default_transaction_read_only = on".encode())
    with pytest.raises(StoreError, match="read only"):
        PostgresJournal(database)


def test_the_url_says_otherwise(database: str) -> None:
    with closing(PostgresJournal(f"{database}?application_name=mine&keepalives_idle=30")) as journal:
        assert journal._rows("SELECT current_setting('application_name')") == [("mine",)]


def test_a_missing_library_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "find_spec", lambda _: None)
    with pytest.raises(InvalidInput, match=r"psycopg is missing\. .*pip install -e '.*\[serve,postgres\]'"):
        open_journal("postgresql:///any")


# -- damage ----------------------------------------------------------------------------------------------------------


def test_damage_is_found(database: str, journal: Journal) -> None:
    journal.append([decided(1, 1), outcome(2), decided(1, 2), event(1, 1)])
    assert journal.check() == []
    with closing(connect(database)) as connection:
        connection.execute("DELETE FROM journal WHERE seq = 2")
        assert journal.check() == ["entry 3: its decision was never made"]
        connection.execute("UPDATE journal SET experiment = 4 WHERE seq = 5")
        connection.execute("DROP INDEX one_effect")
        connection.execute("SELECT setval('places', 3)")
        found = journal.check()
    assert "entry 5: its experiment was never created" in found
    assert "the index one_effect is missing" in found
    assert "the sequence `places` is behind entry 5. Set it to that number." in found
    with pytest.raises(StoreError, match=r"`places` .* is behind"):
        journal.append([decided(1, 3)] * 2)
    assert journal.last() == 5


@pytest.mark.parametrize("page", ["decisions", "outcomes", "events"])
def test_a_page_is_found_by_an_index(
    database: str, journal: PostgresJournal, monkeypatch: pytest.MonkeyPatch, page: str
) -> None:
    """Without one a page of a small experiment would read the whole journal."""
    journal.append([created("two"), *(decided(1, number) for number in range(1, 20_001))])
    journal.append([outcome(3 + number) for number in range(10_000)])
    asked = list[str]()

    def remember(sql: str, _values: Any) -> list[Any]:
        asked.append(sql)
        return []

    monkeypatch.setattr(journal, "_rows", remember)
    getattr(journal, page)(2, 0, 100)
    with closing(connect(database)) as other:
        other.execute("ANALYZE")
    with journal._link.using("read") as connection:
        connection.execute(f"PREPARE page AS {asked[0]}".encode())
        for mode in ("force_custom_plan", "force_generic_plan"):
            connection.execute(f"SET plan_cache_mode = {mode}".encode())
            plan = "\n".join(row[0] for row in connection.execute("EXPLAIN EXECUTE page (2, 0, 100)").fetchall())
            assert f"Index Scan using {page}_0 on journal_0" in plan, plan
            assert "Seq Scan" not in plan


def test_an_interrupted_index_is_made_again(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    with cluster.database("template0") as url:
        older_store(url, monkeypatch)
        with closing(cluster.admin(url.rpartition("/")[2])) as admin:
            admin.execute("CREATE INDEX outcomes ON belated.journal (seq)")
            admin.execute("UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'belated.outcomes'::regclass")
        steps = [f"schema version {number}" for number in range(4, SCHEMA_VERSION + 1)]
        assert list(migrate(url)) == ["index outcomes", "index in_force", *steps]
        assert list(migrate(url)) == []
        with closing(PostgresJournal(url)) as journal:
            assert journal.check() == []


def test_an_invalid_index_is_found(cluster: Cluster, database: str, journal: Journal) -> None:
    with closing(cluster.admin(database.rpartition("/")[2])) as admin:
        admin.execute("UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'belated.one_outcome'::regclass")
    assert journal.check() == ["the index one_outcome is invalid. REINDEX it."]


# -- the password ------------------------------------------------------------------------------------------------------


def told(error: BaseException) -> str:
    """Everything that could be shown of an error and its causes."""
    return f"{error!r} {error} {''.join(traceback.format_exception(error))}"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda url: url.replace("test_", "nowhere_"), "does not exist"),
        (lambda url: url.replace("127.0.0.1", "nowhere.invalid"), "nowhere.invalid"),
        (lambda url: url.replace(PASSWORD, f"x{PASSWORD}"), "Give the password as PGPASSWORD"),
        (lambda url: url.replace("%40", "@"), "cannot be read. Write postgresql://"),
        (lambda url: url.replace("%40", "/"), "cannot be read. Write postgresql://"),
        (lambda url: url.replace("%40", "#"), "cannot be read. Write postgresql://"),
        (lambda url: url.replace("%40", "?"), "cannot be read. Write postgresql://"),
        (lambda url: url.replace("%40", "%4"), "cannot be read. Write postgresql://"),
        (lambda url: f"{url}?passwort={PASSWORD}", "has the setting passwort, which"),
        (lambda url: f"{url.replace(f':{PASSWORD}', '')}?password=no", "password authentication failed"),
    ],
)
def test_no_error_tells_the_password(database: str, change: Callable[[str], str], message: str) -> None:
    with pytest.raises(StoreError, match=message) as caught:
        open_journal(change(database))
    assert [secret for secret in SECRETS if secret in told(caught.value)] == []


def test_neither_names_nor_commands_nor_logs_tell_the_password(
    cluster: Cluster, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"postgresql://{ROLE}@127.0.0.1:{cluster.port}/{database.rpartition('/')[2]}"
    assert shown(database) == shown(f"{database}?sslmode=prefer&password={PASSWORD}") == name
    with closing(PostgresJournal(database)) as journal:
        said = [repr(journal), repr(journal._link), str(journal._link._connection)]
    monkeypatch.setenv("BELATED_STORE", database)
    for command in ("migrate", "verify", "keys create --scope admin", "keys list", "verify --help", "serve --help"):
        done = CliRunner().invoke(cli.app, command.split(), catch_exceptions=False)
        assert done.exit_code == 0, done.output
        said.append(done.output)
    with Served(tmp_path, "--host", "127.0.0.1") as served:
        said += [json.dumps(served.get("/v1/store").json())]
        cluster.stop("immediate")
        cluster.start()
        said += [served.get("/v1/store").text, served.get("/readyz").text]
        served.stop()
    said.append((tmp_path / "service.log").read_text())
    assert name in said[-1]
    assert [(text, secret) for text in said for secret in SECRETS if secret in text] == []


def test_a_database_that_cannot_hold_every_name_is_refused(cluster: Cluster) -> None:
    with closing(cluster.admin()) as admin:
        admin.execute(f"CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' OWNER {ROLE}".encode())
        with pytest.raises(StoreError, match="does not have the encoding UTF8"):
            PostgresJournal(cluster.url("latin"))
        admin.execute("DROP DATABASE latin")


# -- keys and the audit trail ------------------------------------------------------------------------------------------


def test_many_keys_and_records_take_few_round_trips(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread that writes all decisions notes them too, and the server may be milliseconds away."""
    ids, waits = [f"{number:03}" for number in range(300)], list[bool]()
    for id in ids:
        journal.add_key(Key(id, b"", "decide", None, 1))
    kept = psycopg.Connection.execute

    def execute(self: Any, *arguments: Any, **options: Any) -> Any:
        waits.append(self.pgconn.pipeline_status == psycopg.pq.PipelineStatus.OFF)
        return kept(self, *arguments, **options)

    monkeypatch.setattr(psycopg.Connection, "execute", execute)
    journal.note_uses(dict.fromkeys(ids, 5))
    assert len(waits) == 1
    journal.note([record(str(number)) for number in range(50)])
    assert not any(waits)
    monkeypatch.undo()
    assert [key.used_at for key in journal.keys() if key.id in ids] == [5] * 300  # noqa: SIM118
    assert len(journal.records(0, 100)) == 50
