"""Each file of deploy/ works with its program. nginx retries only requests that are safe to retry."""

import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any

import httpx
import pytest
import yaml

from tests.support.machine import PAGE, ROOT, Nginx
from tests.support.ports import free_port
from tests.support.postgres import Cluster

DEPLOY = ROOT / "deploy"
ANSWER = b"HTTP/1.1 %d Told\r\nContent-Length: 2\r\n\r\nok"
STREAM = b"HTTP/1.1 200 OK\r\n\r\nfirst"


def test_the_page_names_every_file() -> None:
    files = {str(path.relative_to(DEPLOY)) for path in DEPLOY.rglob("*") if path.is_file()}
    assert files == set(re.findall(r"\.\./deploy/([^)]+)\)", PAGE))
    for name in re.findall(r"\bdeploy/([\w.@-]+\w)", PAGE):
        assert name == ".env" or (DEPLOY / name).exists(), name


# -- nginx --------------------------------------------------------------------------------------------------------


class Replica:
    """Counts requests and answers each with a status. Status 0 closes the connection, and status 1 begins a stream."""

    def __init__(self, status: int) -> None:
        self.status, self.heard, self._closed = status, 0, Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                caller = self._listener.accept()[0]
            except OSError:
                return
            with caller:
                if caller.recv(65536):
                    self.heard += 1
                    caller.sendall({0: b"", 1: STREAM}.get(self.status, ANSWER % self.status))
                    self._closed.wait(10 if self.status == 1 else 0)

    def close(self) -> None:
        self._closed.set()
        with suppress(OSError):  # already closed
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


class Proxy:
    """nginx with the shipped configuration, in front of two fake replicas."""

    def __init__(self, folder: Path, failing: int, *, is_patient: bool = True) -> None:
        self.nginx, self.well, self.port = Nginx(folder), Replica(200), free_port()
        self.failing = Replica(failing)
        ports = {8080: self.port, 8321: self.failing.port, 8322: self.well.port}
        for name in ("nginx.conf", "replicas.conf"):
            words = (DEPLOY / name).read_text()
            for shipped, mine in ports.items():
                words = words.replace(str(shipped), str(mine))
            (folder / "conf.d" / name).write_text(words.replace("max_fails=3", "max_fails=0") if is_patient else words)
        self.nginx.run()

    def statuses(self, method: str, path: str, **headers: str) -> set[int]:
        """The statuses of four requests, which go to the replicas in turn."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        url = f"http://127.0.0.1:{self.port}{path}"
        return {httpx.request(method, url, headers=named, trust_env=False).status_code for _ in range(4)}

    def close(self) -> None:
        self.nginx.stop()
        self.well.close()
        self.failing.close()


@pytest.fixture(params=[0, 503], ids=["hangs-up", "503"])
def proxy(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Proxy]:
    made = Proxy(tmp_path, request.param)
    yield made
    made.close()


def test_when_all_have_refused_for_a_while_they_are_soon_asked_again(tmp_path: Path) -> None:
    """This happens after PostgreSQL was down."""
    with closing(Proxy(tmp_path, 503, is_patient=False)) as proxy:
        proxy.well.status = 503
        for _ in range(5):
            assert proxy.statuses("GET", "/") <= {502, 503}
        proxy.well.status = proxy.failing.status = 200
        back = time.monotonic()
        while proxy.statuses("GET", "/") != {200}:
            assert time.monotonic() < back + 3


DECISIONS = "/v1/experiments/layout/decisions"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v1/decisions/01a1e2bd/feedback"),
        ("POST", "/v1/feedback"),
        ("POST", "/v1/experiments"),
        ("GET", DECISIONS),
        ("GET", "/v1/experiments/layout/live"),
        ("GET", "/"),
    ],
)
def test_what_has_one_effect_is_sent_to_the_other_replica(proxy: Proxy, method: str, path: str) -> None:
    assert proxy.statuses(method, path) == {200}
    assert (proxy.well.heard, proxy.failing.heard) == (4, 2)


@pytest.mark.parametrize("path", [DECISIONS, f"{DECISIONS}/batch"])
def test_a_decision_is_sent_again_only_with_a_key(proxy: Proxy, path: str) -> None:
    assert proxy.statuses("POST", path, Idempotency_Key="a") == {200}
    assert (proxy.well.heard, proxy.failing.heard) == (4, 2)
    assert proxy.statuses("POST", path) == {200, 503 if proxy.failing.status else 502}
    assert (proxy.well.heard, proxy.failing.heard) == (6, 4)


@pytest.mark.parametrize("path", ["/v1/keys", "/v1/keys/0123456789ab/rotate"])
def test_an_access_key_is_made_once(proxy: Proxy, path: str) -> None:
    """The caller would learn of one of two."""
    assert proxy.statuses("POST", path) == {200, 503 if proxy.failing.status else 502}
    assert (proxy.well.heard, proxy.failing.heard) == (2, 2)


@pytest.mark.parametrize(("method", "path"), [("GET", "/v1/keys"), ("POST", "/v1/keys/0123456789ab/revoke")])
def test_what_else_is_done_with_keys_may_be_repeated(proxy: Proxy, method: str, path: str) -> None:
    assert proxy.statuses(method, path) == {200}


def test_a_decision_that_was_not_sent_yet_goes_to_the_other(proxy: Proxy) -> None:
    proxy.failing.close()
    assert proxy.statuses("POST", DECISIONS) == {200}


@pytest.mark.parametrize("path", ["/v1/live", "/v1/experiments/layout/live", "/v1/experiments/layout/export.csv"])
def test_a_stream_is_not_kept_back(tmp_path: Path, path: str) -> None:
    proxy = Proxy(tmp_path, 1)
    try:
        url = f"http://127.0.0.1:{proxy.port}{path}"
        with httpx.stream("GET", url, trust_env=False, timeout=5) as answer:
            assert next(answer.iter_raw()) == b"first"
    finally:
        proxy.close()


def test_the_replicas_of_compose_are_taken_too(tmp_path: Path) -> None:
    nginx = Nginx(tmp_path)
    words = (DEPLOY / "replicas-compose.conf").read_text()
    (tmp_path / "conf.d" / "replicas.conf").write_text(re.sub(r"replica-\d", "127.0.0.1", words))
    shutil.copy(DEPLOY / "nginx.conf", tmp_path / "conf.d")
    assert "successful" in nginx.run("-t")


# -- PostgreSQL, systemd, containers -----------------------------------------------------------------------------


def test_postgresql_takes_every_setting(cluster: Cluster) -> None:
    words = (DEPLOY / "postgresql.conf").read_text()
    settings = dict(re.findall(r"^#?(\w+) = '?(.*?)'?$", words, re.MULTILINE))
    assert len(settings) > 10
    (cluster.folder / "deploy.conf").write_text(re.sub(r"^#(?=\w+ = )", "", words, flags=re.MULTILINE))
    where = "-D", str(cluster.folder / "data"), "-c", f"config_file={cluster.folder}/deploy.conf"
    units = {"256MB": "32768", "4GB": "4096", "512MB": "512", "15min": "900", "60s": "60000", "on": "on|pglz"}
    for name, value in settings.items():
        said = cluster.run("postgres", "-C", name, *where, "-c", "listen_addresses=*").strip()
        assert said == value or re.fullmatch(units[value], said), (name, said)


def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    words = (DEPLOY / "belated@.service").read_text()
    belated = Path(sys.executable).with_name("belated")
    assert "ExecStart=/opt/belated/bin/belated serve" in words
    unit = tmp_path / "belated@8321.service"
    unit.write_text(words.replace("/opt/belated/bin/belated", str(belated)))
    program = shutil.which("systemd-analyze")
    if program is None:  # check at least the form
        assert all(re.fullmatch(r"(#.*|\[\w+\]|[A-Z]\w+=.*|)", line) for line in words.splitlines())
        return
    done = subprocess.run([program, "verify", str(unit)], capture_output=True, text=True, check=False)  # noqa: S603
    assert "belated" not in done.stderr, done.stderr
    unit.write_text(words)
    done = subprocess.run([program, "verify", str(unit)], capture_output=True, text=True, check=False)  # noqa: S603
    assert "/opt/belated/bin/belated" in done.stderr


def files_of(service: dict[str, Any]) -> list[str]:
    """The files of this folder that a service of the compose file uses."""
    mounted = [one.split(":")[0] for one in service.get("volumes", []) if one.startswith(".")]
    build = service.get("build")
    return mounted if build is None else [*mounted, f"{build['context']}/{build['dockerfile']}"]


def test_the_compose_file_is_whole() -> None:
    words = (DEPLOY / "compose.yaml").read_text()
    services: dict[str, dict[str, Any]] = yaml.safe_load(words)["services"]
    assert list(services) == ["postgres", "migrate", "replica-1", "replica-2", "nginx"]
    files = [file for service in services.values() for file in files_of(service)]
    assert len(files) == 4
    for file in files:
        assert (DEPLOY / file).is_file(), file
    for name, service in services.items():
        assert set(service.get("depends_on", ())) <= set(services), name
        environment = service.get("environment", {}).items()
        assert all(value.startswith("${") for key, value in environment if "PASSWORD" in key), name
    [check] = re.findall(r"CMD (\[.*\])", (DEPLOY / "Containerfile").read_text())[:1]
    for replica in ("replica-1", "replica-2"):
        assert services[replica]["healthcheck"]["test"] == ["CMD", *yaml.safe_load(check)]
    upstreams = re.findall(r"server ([\w-]+):8321", (DEPLOY / "replicas-compose.conf").read_text())
    assert upstreams == [name for name in services if name.startswith("replica")]
    addresses = [services[name]["networks"]["default"]["ipv4_address"] for name in upstreams]
    assert len(set(addresses)) == len(addresses)
    assert ".env" in (ROOT / ".gitignore").read_text().splitlines()


def test_the_container_gets_what_it_builds_from() -> None:
    words = (DEPLOY / "Containerfile").read_text()
    copied = re.findall(r"^COPY (?!--)(.*) \S+$", words, re.MULTILINE)
    sources = {name for line in copied for name in line.split()}
    let_in = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert sources == let_in == {"pyproject.toml", "README.md", "LICENSE", "src"}
    assert words.index("\nUSER ") < words.index("\nENV NUMBA_CACHE_DIR") < words.index("\nRUN belated warm\n")
    assert words.index("\nRUN belated warm\n") < words.index("\nENTRYPOINT")
