"""The commands of docs/deployment.md work. They give two replicas behind nginx, and a live dashboard."""

import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import expect, sync_playwright

from belated.errors import StoreError
from belated.serve.store.postgres import schema as postgres_schema
from belated.serve.store.postgres.journal import PostgresJournal
from belated.serve.store.verify import verify
from tests.support.machine import Machine, blocks
from tests.support.postgres import Cluster
from tests.support.service import Served, compile_kernels

PAGE_TIMEOUT = 15.0  # seconds
VERIFIED = r"(the same, bit for bit|no damage found)\n"  # without a snapshot there is nothing to compare


@pytest.fixture(scope="module")
def machine(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """A machine after section 1, without the first block, which installs, and the last, which stops a replica."""
    compile_kernels()
    install, *rest, stop = blocks(1)
    assert "apt-get install" in install
    assert "kill" in stop
    made = Machine(tmp_path_factory.mktemp("machine"), cluster)
    try:
        for block in rest:
            made.paste(block)
        yield made
    finally:
        made.close()
        with closing(cluster.admin()) as admin:
            admin.execute("DROP DATABASE IF EXISTS belated WITH (FORCE)")
            admin.execute("DROP ROLE IF EXISTS belated")


def becomes(condition: Callable[[], bool]) -> bool:
    """Whether the condition becomes true within the timeout."""
    deadline = time.monotonic() + PAGE_TIMEOUT
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.1)
    return condition()


def decided_by(machine: Machine, port: int) -> int:
    """How many decisions a replica has answered."""
    sample = r'belated_requests_total\{.*POST /v1/experiments/\{name\}/decisions".*status="201"\} (\d+)'
    found = re.search(sample, machine.get("/metrics", port).raise_for_status().text)
    return int(found[1]) if found else 0


def test_both_replicas_decide_and_the_numbers_grow(machine: Machine) -> None:
    before = machine.decisions()
    assert becomes(lambda: machine.decisions() > before + 5)
    assert becomes(lambda: min(decided_by(machine, port) for port in (8321, 8322)) > 0)


def test_the_dashboard_moves(machine: Machine) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(f"{machine.url}/experiments/demo")
        page.get_by_label("Access key").fill(machine.variable("BELATED_KEY"))
        page.keyboard.press("Enter")
        expect(page.get_by_test_id("connection")).to_have_text("Live", timeout=PAGE_TIMEOUT * 1000)
        shown = page.get_by_test_id("decisions").inner_text()
        for _ in range(2):
            expect(page.get_by_test_id("decisions")).not_to_have_text(shown, timeout=PAGE_TIMEOUT * 1000)
            now = page.get_by_test_id("decisions").inner_text()
            assert int(now.replace(",", "")) > int(shown.replace(",", ""))
            shown = now
        browser.close()


def test_a_service_with_keys_wants_one_through_the_proxy_too(machine: Machine) -> None:
    assert httpx.get(f"{machine.url}/v1/experiments", trust_env=False).status_code == 401
    assert httpx.get(f"{machine.url}/readyz", headers={"Host": "service.example"}, trust_env=False).status_code == 200


def test_who_holds_the_replicas_up_is_found(machine: Machine, cluster: Cluster) -> None:
    settings, find = blocks(4)
    machine.paste(settings)
    assert (machine.folder / "conf.d-postgresql" / "belated.conf").exists()
    with closing(cluster.admin()) as other:
        other.execute("BEGIN")
        other.execute("SELECT pg_current_xact_id(), 'forgotten'")
        assert "forgotten" in machine.paste(find)
    assert "forgotten" not in machine.paste(find)


def test_a_backup_is_restored_and_verified(machine: Machine) -> None:
    backup, drill = blocks(5)
    assert re.search(VERIFIED, machine.paste(backup))
    assert re.search(VERIFIED, machine.paste(drill))


def test_the_container_would_be_found_healthy_and_then_not(machine: Machine) -> None:
    words = (machine.folder / "deploy" / "Containerfile").read_text()
    [code] = re.findall(r'CMD \["python", "-c", "(.*)"\]', words)
    command = [sys.executable, "-c", code]
    assert subprocess.run(command, check=False).returncode == 0  # noqa: S603
    code = code.replace(str(machine.ports[8321]), "9")
    assert subprocess.run([sys.executable, "-c", code], check=False, stderr=subprocess.DEVNULL).returncode == 1  # noqa: S603


def test_without_one_replica_the_service_goes_on(machine: Machine) -> None:
    machine.paste(blocks(1)[-1])

    def is_gone() -> bool:
        try:
            machine.get("/readyz", 8321)
        except httpx.TransportError:
            return True
        return False

    assert becomes(is_gone)
    before, answers = machine.decisions(), decided_by(machine, 8322)
    assert becomes(lambda: machine.decisions() > before + 5)
    assert decided_by(machine, 8322) > answers
    assert "Traceback" not in (machine.folder / "home" / "replica-1.log").read_text()
    assert (machine.folder / "home" / "visitors.log").read_text() == ""


@pytest.mark.parametrize("is_compatible", [True, False])
def test_an_upgrade_begins_with_the_migration(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_compatible: bool
) -> None:
    """A replica of the old release works on. If the migration shuts it out, it works until it must reconnect."""
    with Served(tmp_path, "--store", database) as old:
        old.post("/v1/experiments", {"name": "layout", "arms": ["blue", "green"]})
        newer = (*postgres_schema.STEPS, "ALTER TABLE journal ADD COLUMN later text;\n")
        monkeypatch.setattr(postgres_schema, "STEPS", newer)
        monkeypatch.setattr(postgres_schema, "SCHEMA_VERSION", len(newer))
        if not is_compatible:
            monkeypatch.setattr(postgres_schema, "COMPATIBLE_SINCE", len(newer))
        with pytest.raises(StoreError, match=r"is of an older release\. Run `belated migrate"):
            PostgresJournal(database)
        assert list(postgres_schema.migrate(database)) == [f"schema version {len(newer)}"]
        with closing(PostgresJournal(database)) as new:
            for number in range(1, 4):
                decision = old.post("/v1/experiments/layout/decisions").json()
                assert old.post(f"/v1/decisions/{decision['decision_id']}/feedback", {"reward": 1}).status_code == 200
                assert new.last() == 1 + 2 * number
            assert verify(new).problems == []
            assert old.get("/readyz").status_code == 200
            new._rows("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
                      " AND datname = current_database()")  # fmt: skip
            if is_compatible:
                assert becomes(lambda: old.post("/v1/experiments/layout/decisions").status_code == 201)
                old.stop()
                old.start()
                assert old.post("/v1/experiments/layout/decisions").status_code == 201
                assert verify(new).problems == []
                return
            assert becomes(lambda: "Use the release that wrote it" in (tmp_path / "service.log").read_text())
            assert old.get("/readyz").status_code == 503
            assert old.post("/v1/experiments/layout/decisions").status_code == 503
            assert new.last() == 7
