"""A PostgreSQL that does not write to its disk is noticed, at the start and later."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from belated.errors import StoreUnreachable
from belated.serve.store.opening import open_journal, open_to_serve
from tests.support.postgres import Cluster
from tests.support.service import Served


@pytest.fixture(autouse=True)
def restored(cluster: Cluster) -> Iterator[None]:
    yield
    with closing(cluster.admin()) as admin:
        admin.execute("ALTER SYSTEM RESET fsync")
        admin.execute("ALTER SYSTEM RESET full_page_writes")
        admin.execute("SELECT pg_reload_conf()")


def switch(cluster: Cluster, name: str, value: str) -> None:
    """Change a setting of the running server."""
    with closing(cluster.admin()) as admin:
        admin.execute(f"ALTER SYSTEM SET {name} = {value}".encode())
        admin.execute("SELECT pg_reload_conf()")
        while admin.execute(f"SHOW {name}".encode()).fetchall() != [(value,)]:
            time.sleep(0.01)
    time.sleep(0.2)  # the other connections follow


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_service_does_not_start_without_fsync(cluster: Cluster, database: str, tmp_path: Path, workers: str) -> None:
    switch(cluster, "fsync", "off")
    command = [sys.executable, "-m", "belated", "serve", "--port", "0", "--store", database, "--workers", workers]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)  # noqa: S603
    assert done.returncode == 2
    assert "fsync = on in postgresql.conf" in done.stderr
    assert "Traceback" not in done.stderr
    open_journal(database).close()  # to copy it, for example


def test_a_running_service_refuses_while_fsync_is_off(cluster: Cluster, database: str, tmp_path: Path) -> None:
    with Served(tmp_path, "--store", database) as served:
        served.post("/v1/experiments", {"name": "layout", "arms": ["blue", "green"]})
        assert served.post("/v1/experiments/layout/decisions").status_code == 201
        switch(cluster, "fsync", "off")
        time.sleep(1)
        refused = served.post("/v1/experiments/layout/decisions")
        assert (refused.status_code, "Retry-After" in refused.headers) == (503, True)
        assert served.get("/readyz").status_code == 503
        assert "fsync = off" in served.log()
        switch(cluster, "fsync", "on")
        time.sleep(1)
        assert served.post("/v1/experiments/layout/decisions").status_code == 201


def test_half_written_pages_are_warned_of(cluster: Cluster, database: str, caplog: pytest.LogCaptureFixture) -> None:
    with closing(open_to_serve(database)) as journal:
        assert caplog.records == []
        switch(cluster, "full_page_writes", "off")
        for _ in range(3):
            journal.require_durability()
        assert ["full_page_writes = off" in record.message for record in caplog.records] == [True]  # only once
        switch(cluster, "fsync", "off")
        with pytest.raises(StoreUnreachable, match="fsync = off"):
            journal.require_durability()
