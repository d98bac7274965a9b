"""The restore of docs/deployment.md to any point in time, from a base backup and the archived WAL."""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime

import pytest

from belated.errors import StoreError, StoreUnreachable
from belated.serve.domain.settings import Settings
from belated.serve.engine.engine import Engine
from belated.serve.engine.requests import Create
from belated.serve.store.journal import Journal
from belated.serve.store.postgres.journal import PostgresJournal
from belated.serve.store.verify import verify
from tests.support.machine import ROOT, section
from tests.support.postgres import AS, TEMPLATE, Cluster
from tests.support.waiting import until

BACKUP, RESTORE = (block for shell, block in re.findall(r"```(sh)?\n(.*?)```", section(5), re.DOTALL) if not shell)
[TARGET] = re.findall(r"`(recovery_target_time[^`]*)`", section(5))
[ACTION] = re.findall(r"`(recovery_target_action[^`]*)`", section(5))
ARCHIVING = re.findall(r"^#(archive_\w+ = .*)$", (ROOT / "deploy" / "postgresql.conf").read_text(), re.MULTILINE)
PATIENCE = 30.0  # seconds


def here(words: str, cluster: Cluster) -> str:
    """Replace what the page's machine has by what this cluster has."""
    control = f"pg_ctl -w -D {cluster.data} -l {cluster.folder}/log -o '-p {cluster.port} -k {cluster.folder}'"
    replaced = {
        "sudo -u postgres ": "",
        "sudo ": "",
        "install -d -o postgres": "mkdir -p",
        "service postgresql": control,
        "pg_basebackup": f"pg_basebackup -h {cluster.folder} -p {cluster.port} -U postgres",
        "/etc/postgresql/15/main/conf.d": str(cluster.folder),
        "/var/lib/postgresql/15/main": str(cluster.data),
        "/var/lib/postgresql/15": str(cluster.folder),
        "/var/backups/belated": str(cluster.folder / "backups"),
        "\nbelated verify": "",  # it needs the URL of this cluster
    }
    for old, new in replaced.items():
        words = words.replace(old, new)
    return words


def paste(block: str, cluster: Cluster) -> None:
    """Run a block of the page as the user of the database."""
    path = f"{cluster.programs}:{os.environ['PATH']}"
    log = cluster.folder / "pasted.log"  # not a pipe, because a started server would keep it open
    with log.open("w") as output:
        subprocess.run(
            ["/bin/bash", "-e"], input=here(block, cluster), stdout=output, stderr=output, text=True,
            env={**os.environ, "PATH": path}, cwd=cluster.folder, check=False, **AS,
        )  # fmt: skip
    assert "rror" not in log.read_text(), log.read_text()


@pytest.fixture
def archived() -> Iterator[Cluster]:
    """A server that archives its WAL and has a base backup, as the page says."""
    cluster = Cluster()
    try:
        with (cluster.data / "postgresql.conf").open("a") as settings:
            settings.write("".join(here(f"{line}\n", cluster) for line in ARCHIVING))
            settings.write(f"include_if_exists = '{cluster.folder}/restore.conf'\n")
        cluster.create("store", TEMPLATE)
        paste(BACKUP, cluster)
        yield cluster
    finally:
        cluster.remove()


def create(engine: Engine, name: str) -> None:
    engine.process([Create(Settings(name, ["a", "b"]))])


def names(journal: Journal) -> list[str]:
    """The names of all experiments."""
    return [json.loads(entry.body)["name"] for entry in journal.read(0, 10) if entry.body]


def lose(cluster: Cluster) -> None:
    """Archive everything, and stop the server."""
    with closing(cluster.admin()) as admin:
        [(segment,)] = admin.execute("SELECT pg_walfile_name(pg_switch_wal())").fetchall()
        archived = "SELECT last_archived_wal >= %s FROM pg_stat_archiver"
        until(lambda: admin.execute(archived, (segment,)).fetchall() == [(True,)], PATIENCE)
    cluster.stop()


def is_primary(cluster: Cluster) -> bool:
    with suppress(Exception), closing(cluster.admin()) as admin:
        return admin.execute("SELECT pg_is_in_recovery()").fetchall() == [(False,)]
    return False


@pytest.mark.parametrize("is_early", [False, True])
def test_a_store_is_restored_to_a_point_in_time(archived: Cluster, *, is_early: bool) -> None:
    url, target = archived.url("store"), ""
    with closing(PostgresJournal(url)) as journal:
        replica = Engine(journal)  # it goes on running, against the advice of the page
        create(replica, "before")
        point = datetime.now(UTC)
        create(replica, "after")
        lose(archived)
        if is_early:
            when = re.sub("'.*'", f"'{point.isoformat()}'", TARGET)
            target = f'printf "{when}\\n{ACTION}\\n" >> {archived.folder}/restore.conf\n'
        begin, start = RESTORE.split("sudo service")
        paste(f"{begin}{target}sudo service{start}", archived)
        until(lambda: is_primary(archived), PATIENCE)
        with closing(PostgresJournal(url)) as restored:
            assert names(restored) == (["before"] if is_early else ["before", "after"])
            assert verify(restored).problems == []
        with suppress(StoreUnreachable):  # its connection was cut
            journal.last()
        if is_early:
            with pytest.raises(StoreError, match="lost entries up to 2"):
                create(replica, "later")
        else:
            create(replica, "later")
            until(lambda: names(journal) == ["before", "after", "later"], PATIENCE)
