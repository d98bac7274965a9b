"""`belated migrate` creates and upgrades stores even if it is killed on the way. `belated copy` copies them."""

import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import numpy as np
import pytest
from typer.testing import CliRunner

from belated import cli
from belated.cli.stores import NEW_FILE
from belated.errors import BelatedError, StoreError
from belated.serve.domain import fold
from belated.serve.domain.entries import Entry, EntryKind
from belated.serve.domain.fold import Snapshot
from belated.serve.domain.quotas import OpenLimit
from belated.serve.store.copy import copy
from belated.serve.store.journal import Journal, Key, Record
from belated.serve.store.loading import load
from belated.serve.store.opening import migrate, open_journal, shown
from belated.serve.store.postgres import schema as postgres_schema
from belated.serve.store.sqlite import schema as sqlite_schema
from belated.serve.store.sqlite.journal import SQLiteJournal
from belated.serve.store.verify import verify
from belated.testing.entries import created, decided, filled
from belated.testing.journal_contract import record
from tests.support import histories
from tests.support.engines import Driven
from tests.support.journals import Slow
from tests.support.postgres import Cluster, connect
from tests.support.service import Served

pytestmark = pytest.mark.long

runner = CliRunner()
FIRST_SCHEMA = """
CREATE TABLE journal (
    at INTEGER NOT NULL, kind INTEGER NOT NULL, experiment INTEGER NOT NULL, seq INTEGER PRIMARY KEY,
    round INTEGER, arm INTEGER, probability REAL, nonce INTEGER, seen INTEGER, request TEXT, position INTEGER,
    decision INTEGER, decided_at INTEGER, revision INTEGER, value REAL, old REAL, body BLOB
) STRICT;
CREATE UNIQUE INDEX one_name ON journal (json_extract(body, '$.name')) WHERE kind = 1;
CREATE UNIQUE INDEX one_effect ON journal (experiment, request, position) WHERE request IS NOT NULL;
CREATE UNIQUE INDEX one_outcome ON journal (decision, revision) WHERE decision IS NOT NULL;
CREATE INDEX decisions ON journal (experiment, seq) WHERE kind = 2;
CREATE INDEX events ON journal (experiment, seq) WHERE body IS NOT NULL;
CREATE TABLE snapshots (seq INTEGER PRIMARY KEY, version INTEGER NOT NULL, state BLOB NOT NULL) STRICT;
CREATE TABLE keys (
    id TEXT PRIMARY KEY, digest BLOB NOT NULL, scope TEXT NOT NULL, experiment TEXT, created_at INTEGER NOT NULL,
    revoked_at INTEGER
) STRICT;
PRAGMA application_id = 1113943137;
PRAGMA user_version = 1;
PRAGMA journal_mode = WAL;
"""  # as release 0.1.0 made it
KILLED = """
import os, signal, sys, apsw, psycopg
from belated.serve.store import opening as stores
from belated.serve.store.sqlite import schema as sqlite_schema
left = [int(sys.argv[2])]
def count(*_):
    left[0] -= 1
    if left[0] < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return True
def counted(path, *, connect=sqlite_schema.connect, **options):
    db = connect(path, **options)
    db.exec_trace = count
    return db
sqlite_schema.connect = counted
execute = psycopg.Connection.execute
psycopg.Connection.execute = lambda self, *a, **k: (count(), execute(self, *a, **k))[1]
print(list(stores.migrate(sys.argv[1])))
"""  # a process that migrates, and is killed before it runs its n-th statement


@pytest.fixture
def bare(cluster: Cluster) -> Iterator[str]:
    """The URL of a database without any table."""
    with cluster.database("template0") as url:
        yield url


@pytest.fixture
def lived(tmp_path: Path) -> Iterator[Driven]:
    """An engine on a file whose journal has entries of every kind, with snapshots and keys."""
    driven = life(tmp_path, histories.LIMIT)
    driven.engine.journal.add_key(Key("a", b"\x00\xff", "decide", "naïve ☕", 5))
    driven.engine.journal.add_key(Key("b", b"", "admin", None, 6, 7, "ops", 8, 9))
    driven.engine.journal.note([record("one"), record("two", is_change=False)])
    yield driven
    driven.engine.journal.close()


@pytest.fixture
def without_limits(tmp_path: Path) -> Iterator[Driven]:
    """An engine on a file whose decisions count for no key, as in the first release."""
    driven = life(tmp_path, None)
    yield driven
    driven.engine.journal.close()


def life(folder: Path, limit: OpenLimit | None) -> Driven:
    """A history with snapshots."""
    home = folder / "lived"
    home.mkdir()
    driven = Driven(home, seed=3)
    histories.begin(driven)
    for steps in (60, 60):
        histories.live(driven, np.random.default_rng(3), steps, limit)
        driven.engine.snapshot()
    histories.live(driven, np.random.default_rng(4), 30, limit)
    return driven


def first_release(path: Path, entries: list[Entry]) -> None:
    """A file of the first release with these entries."""
    database = sqlite3.connect(path)
    database.executescript(FIRST_SCHEMA)
    fields = Entry.__struct_fields__[: Entry.__struct_fields__.index("drawn")]
    rows = [[getattr(entry, field) for field in fields] for entry in entries]
    database.executemany(f"INSERT INTO journal VALUES ({', '.join('?' * len(fields))})", rows)  # noqa: S608
    database.commit()
    database.close()


def as_first_written(entry: Entry) -> Entry:
    """The entry in the first release's form. Events had no revision, outcomes no `seen` and decisions no `drawn`."""
    seen = entry.seen if entry.kind is EntryKind.DECIDED else None
    revision = entry.revision if entry.body is None else None
    return msgspec.structs.replace(entry, seen=seen, revision=revision, drawn=None)


def run(*arguments: str) -> str:
    done = runner.invoke(cli.app, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


VERSIONS = [f"schema version {number}" for number in range(1, postgres_schema.SCHEMA_VERSION + 1)]
READING = ["index outcomes", "index in_force"]
STEPS = [*VERSIONS[:3], *READING, *VERSIONS[3:]]
FILE_STEPS = [*(f"schema version {number}" for number in range(1, sqlite_schema.SCHEMA_VERSION + 1)), *READING]


# -- migrate -----------------------------------------------------------------------------------------------------


def test_a_database_gets_its_tables_from_migrate_and_only_from_there(bare: str) -> None:
    with pytest.raises(StoreError, match=f"has no tables yet. Run `belated migrate --store {shown(bare)}`"):
        open_journal(bare)
    with closing(connect(bare)) as connection:
        assert connection.execute("SELECT to_regnamespace('belated')").fetchall() == [(None,)]
    assert run("migrate", "--store", bare).splitlines() == [f"{shown(bare)}: {step}" for step in STEPS]
    assert run("migrate", "--store", bare) == f"{shown(bare)}: nothing to do\n"
    with closing(open_journal(bare)) as journal:
        filled(journal)
        assert run("migrate", "--store", bare) == f"{shown(bare)}: nothing to do\n"
        assert journal.last() == 11


def test_a_file_may_be_made_by_migrate_too(tmp_path: Path) -> None:
    path = tmp_path / "new.db"
    said = [NEW_FILE, *FILE_STEPS]  # a wrong name must show
    assert run("migrate", "--store", str(path)).splitlines() == [f"{path}: {step}" for step in said]
    assert run("migrate", "--store", str(path)) == f"{path}: nothing to do\n"
    with closing(SQLiteJournal(path)) as journal, closing(SQLiteJournal(tmp_path / "other.db")) as other:
        schema = "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY name"
        assert journal._rows(schema) == other._rows(schema)
        assert journal._rows("PRAGMA journal_mode") == [("wal",)]


def newer_database(url: str) -> None:
    list(migrate(url))
    with closing(connect(url)) as connection:
        newer = postgres_schema.SCHEMA_VERSION + 1
        connection.execute(f"UPDATE version SET number = {newer}, since = {newer}".encode())  # noqa: S608


def newer_file(store: str) -> None:
    list(migrate(store))
    with sqlite3.connect(store) as database:
        database.execute(f"PRAGMA user_version = {sqlite_schema.SCHEMA_VERSION + 1}")
        database.execute(f"UPDATE compatible SET since = {sqlite_schema.SCHEMA_VERSION + 1}")  # noqa: S608
    database.close()


@pytest.mark.parametrize(("kind", "make"), [("sqlite", newer_file), ("postgresql", newer_database)])
def test_a_newer_store_is_refused(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str, make: Callable[[str], None]
) -> None:
    store = str(tmp_path / "newer.db") if kind == "sqlite" else request.getfixturevalue("bare")
    make(store)
    for attempt in (migrate, lambda store: [open_journal(store)]):
        with pytest.raises(StoreError, match="Use the release that wrote it"):
            list(attempt(store))


def test_a_file_is_migrated_under_a_running_service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The service goes on, also after a restart, because the newer release only adds something."""
    newer = (*sqlite_schema.STEPS, "ALTER TABLE journal ADD COLUMN later TEXT; ALTER TABLE keys ADD COLUMN later TEXT;")
    with Served(tmp_path) as old:
        old.post("/v1/experiments", {"name": "layout", "arms": ["blue", "green"]})
        monkeypatch.setattr(sqlite_schema, "STEPS", newer)
        monkeypatch.setattr(sqlite_schema, "SCHEMA_VERSION", len(newer))
        path = tmp_path / "belated.db"
        assert list(migrate(path)) == [f"schema version {len(newer)}"]
        with closing(SQLiteJournal(path)) as new:
            for number in range(1, 5):
                decision = old.post("/v1/experiments/layout/decisions", Idempotency_Key=f"k{number}").json()
                assert old.post(f"/v1/decisions/{decision['decision_id']}/feedback", {"reward": 1}).status_code == 200
                assert new.last() == 1 + 2 * number
                if number == 2:
                    old.stop()
                    old.start()
            assert verify(new).problems == []


def test_a_file_of_the_first_release_is_upgraded_and_keeps_every_entry(tmp_path: Path, without_limits: Driven) -> None:
    lived = without_limits
    path, entries = tmp_path / "old.db", list(map(as_first_written, lived.engine.journal.read(0, 10**6)))
    first_release(path, entries)
    before = path.read_bytes()
    with pytest.raises(StoreError, match=f"is of an older release. Run `belated migrate --store {path}`"):
        SQLiteJournal(path)
    assert path.read_bytes() == before
    assert run("migrate", "--store", str(path)).splitlines() == [f"{path}: {step}" for step in FILE_STEPS[1:]]
    with closing(SQLiteJournal(path)) as journal:
        assert journal.read(0, 10**6) == entries
        assert verify(journal).problems == []
        assert load(journal).snapshot() == lived.engine.fold.snapshot()
        assert journal.append([Entry(1, EntryKind.ARMS, 1, revision=5, body=b"{}", drawn=b"d")]) == [
            entries[-1].seq + 1
        ]


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_migration_that_is_killed_anywhere_can_be_run_again(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str
) -> None:
    store = str(tmp_path / "old.db") if kind == "sqlite" else request.getfixturevalue("bare")
    if kind == "sqlite":
        first_release(Path(store), [Entry(1, EntryKind.CREATED, 1, 1, body=b'{"name": "one"}')])
    kills = 0
    while True:
        command = [sys.executable, "-c", KILLED, store, str(kills)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL, done.stderr
        kills += 2
    assert kills > (5 if kind == "sqlite" else 20)
    with closing(open_journal(store)) as journal:
        if kind == "sqlite":
            assert "index outcomes" in done.stdout
            assert [entry.seq for entry in journal.read(0, 10)] == [1]
        else:
            filled(journal)
        assert journal.check() == []


def test_migrations_at_the_same_time_take_turns(bare: str) -> None:
    command = [sys.executable, "-c", KILLED, bare, "1000"]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]  # noqa: S603
    said = [process.communicate()[0].strip() for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert sorted(said) == [str(STEPS), "[]", "[]"]


# -- copy --------------------------------------------------------------------------------------------------------


def content(journal: Journal) -> tuple[list[Entry], list[Snapshot], list[Key], list[Record], bytes]:
    """The whole content of a store, and the state it folds to."""
    state = load(journal).snapshot().state
    return journal.read(0, 10**6), journal.snapshots(), journal.keys(), journal.records(0, 10), state


def test_there_and_back_again(tmp_path: Path, database: str, lived: Driven) -> None:
    file, back = str(lived.path), str(tmp_path / "back.db")
    for source, destination in ((file, database), (database, back)):
        said = run("copy", source, destination)
        assert f"{lived.engine.fold.seq:,} entries, 2 snapshots and 2 keys to {shown(destination)}" in said
    contents = []
    for store in (file, database, back):
        with closing(open_journal(store)) as journal:
            contents.append(content(journal))
            assert verify(journal).problems == []
            assert journal.append([decided(1, 10**6)]) == [lived.engine.fold.seq + 1]
    assert contents[0] == contents[1] == contents[2]
    assert contents[0][-1] == lived.engine.fold.snapshot().state


def test_gaps_are_kept_and_snapshots_of_another_fold_are_not(tmp_path: Path, cluster: Cluster, database: str) -> None:
    with (
        closing(open_journal(database)) as source,
        closing(SQLiteJournal(tmp_path / "copy.db")) as file,
        cluster.database() as url,
        closing(open_journal(url)) as other,
    ):
        slow = Slow(database)
        source.append([created("one")])
        slow.append(decided(1, 1), decided(1, 2))
        slow.roll_back()
        slow.close()
        source.append([decided(1, 3)])
        for snapshot in (Snapshot(1, fold.VERSION + 1, b"other"), Snapshot(4, fold.VERSION, b"this")):
            source.save(snapshot)
        for destination in (file, other):
            assert copy(source, destination) == (2, 1, 0)
            assert [entry.seq for entry in destination.read(0, 10)] == [1, 4]
            assert destination.snapshots() == [Snapshot(4, fold.VERSION, b"this")]
            assert destination.append([decided(1, 4)]) == [5]


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_only_into_an_empty_store_and_all_or_nothing(
    request: pytest.FixtureRequest, tmp_path: Path, lived: Driven, kind: str
) -> None:
    store = str(tmp_path / "copy.db") if kind == "sqlite" else request.getfixturevalue("database")
    source = lived.engine.journal

    def interrupt(_seq: int) -> None:
        source.append([decided(1, 10**6)])  # the source may be written meanwhile
        raise KeyboardInterrupt

    with closing(open_journal(store)) as destination:
        whole = source.read(0, 10**6)
        with pytest.raises(KeyboardInterrupt):
            copy(source, destination, interrupt)
        assert (destination.last(), destination.snapshots(), destination.keys()) == (0, [], [])
        assert copy(source, destination).entries == len(whole) + 1
        with pytest.raises(StoreError, match="is not empty"):
            copy(source, destination)
        assert destination.read(0, 10**6) == source.read(0, 10**6)


def test_what_comes_while_it_copies_is_left_out(tmp_path: Path, lived: Driven) -> None:
    source = lived.engine.journal
    last = source.last()
    with closing(SQLiteJournal(tmp_path / "copy.db")) as destination:
        progress: Callable[[int], object] = lambda _: source.append([decided(1, 10**6)])  # noqa: E731
        copy(source, destination, progress)
        assert destination.last() == last < source.last()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("postgresql+psycopg://me:SECRET@host/data", "unknown kind of store 'postgresql\\+psycopg:/'"),
        ("POSTGRESQL://me:SECRET@host/data", "unknown kind of store 'POSTGRESQL:/'"),
        ("postgresql:/me:SECRET@host/data", "Give a postgresql:// URL"),
        ("mysql://me:SECRET@host/data", "unknown kind of store 'mysql:/'"),
        (".", "is a folder. Name a file in it"),
        ("", "empty name. Set --store or BELATED_STORE"),
    ],
)
@pytest.mark.parametrize("command", ["migrate", "verify", "serve"])
def test_a_name_that_makes_no_sense_is_refused(command: str, name: str, message: str) -> None:
    """The error does not show a password in the name."""
    port = ["--port", "0"] if command == "serve" else []  # somebody else may use the usual one
    with pytest.raises(BelatedError, match=message) as refused:
        runner.invoke(cli.app, [command, "--store", name, *port], catch_exceptions=False)
    assert "SECRET" not in str(refused.value)


def test_an_empty_variable_does_not_make_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment file may be left empty. Decisions would then go to an unexpected file."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BelatedError, match="unset the variable"):
        runner.invoke(cli.app, ["migrate"], env={"BELATED_STORE": ""}, catch_exceptions=False)
    assert list(tmp_path.iterdir()) == []
    named = ["migrate", "--store", "named.db"]
    assert runner.invoke(cli.app, named, env={"BELATED_STORE": ""}, catch_exceptions=False).exit_code == 0
    assert runner.invoke(cli.app, ["migrate"], env={"BELATED_STORE": "other.db"}).exit_code == 0
    assert {"named.db", "other.db"} <= {path.name for path in tmp_path.iterdir()}


def test_a_source_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="there is no store"):
        runner.invoke(cli.app, ["copy", str(tmp_path / "a.db"), str(tmp_path / "b.db")], catch_exceptions=False)
    assert list(tmp_path.iterdir()) == []
