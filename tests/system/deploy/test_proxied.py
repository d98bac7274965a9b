"""Behind a proxy, a service without keys answers nobody. With keys it answers whoever has one."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from belated.serve.process import peers
from tests.support.machine import Nginx
from tests.support.ports import free_port
from tests.support.service import NO_TLS, Served

IS_ROOT = os.geteuid() == 0
PLAIN = "proxy_pass http://127.0.0.1:{port};"
DISGUISED = """
proxy_http_version 1.1;
proxy_set_header Connection "";
proxy_set_header Host localhost;
proxy_pass http://127.0.0.1:{port};
"""  # adds nothing that a header could show


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with Served(tmp_path_factory.mktemp("service")) as server:
        yield server


def through_nginx(folder: Path, served: Served, words: str, *, user: str = "") -> httpx.Response:
    """Ask for the experiments through nginx, as a caller from anywhere who says that it is on this machine."""
    nginx, port = Nginx(folder), free_port()
    if user and IS_ROOT:
        main = folder / "main.conf"
        main.write_text(main.read_text().replace("user root;", f"user {user};"))
    location = words.format(port=served.url.rpartition(":")[2])
    (folder / "conf.d" / "default.conf").write_text(f"server {{ listen {port}; location / {{ {location} }} }}")
    nginx.run()
    try:
        headers = {"Host": served.url.removeprefix("http://")}
        return httpx.get(f"http://127.0.0.1:{port}/v1/experiments", headers=headers, verify=NO_TLS, trust_env=False)
    finally:
        nginx.stop()


@pytest.mark.parametrize(
    "words",
    [
        PLAIN,
        f"proxy_set_header Host $http_host; {PLAIN}",
        f"proxy_http_version 1.1; proxy_set_header X-Real-IP $remote_addr; {PLAIN}",
        f"proxy_http_version 1.1; proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; {PLAIN}",
    ],
    ids=["default", "host", "real-ip", "forwarded-for"],
)
def test_a_service_without_keys_answers_no_proxy(tmp_path: Path, served: Served, words: str) -> None:
    """Even if the proxy has the same user."""
    answer = through_nginx(tmp_path, served, words)
    assert answer.status_code == 403
    assert "belated keys create" in answer.json()["detail"]
    assert served.get("/v1/experiments").status_code == 200


@pytest.mark.skipif(not IS_ROOT, reason="only root can start nginx as another user, as systems do")
@pytest.mark.parametrize("words", [PLAIN, DISGUISED], ids=["default", "disguised"])
def test_a_proxy_with_its_own_user_is_refused_whatever_it_sends(tmp_path: Path, served: Served, words: str) -> None:
    answer = through_nginx(tmp_path, served, words, user="nobody nogroup")
    assert answer.status_code == 403
    assert "another user" in answer.json()["detail"] or "HTTP/1.0" in answer.json()["detail"]


def test_with_a_key_the_same_proxy_is_answered(tmp_path: Path) -> None:
    create = [sys.executable, "-m", "belated", "keys", "create", "--scope", "admin"]
    (tmp_path / "nginx").mkdir()
    key = subprocess.run(create, cwd=tmp_path, capture_output=True, text=True, check=True).stdout.strip()  # noqa: S603
    with Served(tmp_path) as served:
        words = f'proxy_set_header Authorization "Bearer {key}"; {PLAIN}'
        assert through_nginx(tmp_path / "nginx", served, words).status_code == 200


def test_a_system_that_does_not_tell_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert peers.can_tell()

    def forbidden(*_: object) -> int:
        raise PermissionError

    monkeypatch.setattr(peers, "user_of", forbidden)
    assert peers.is_own(("127.0.0.1", 1), ("127.0.0.1", 2)) is None
    assert not peers.can_tell()  # the service warns when it starts


# -- whose program it is --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "::ffff:127.0.0.1"])
def test_the_system_tells_whose_program_calls(host: str) -> None:
    family = socket.AF_INET6 if host == "::1" else socket.AF_INET
    with closing(socket.create_server(("::1" if host == "::1" else "127.0.0.1", 0), family=family)) as listener:
        caller = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        caller.connect((host, listener.getsockname()[1]))
        made = listener.accept()[0]
        ends = made.getpeername()[:2], made.getsockname()[:2]
        with closing(made), closing(caller):
            assert peers.user_of(*ends) == os.geteuid()
            assert peers.is_own(*ends)
            caller.shutdown(socket.SHUT_WR)
            caller.close()  # Linux no longer knows whose it was, and would say root
            deadline = time.monotonic() + 5
            while peers.is_own(*ends):
                assert time.monotonic() < deadline
            assert peers.user_of(*ends) is None
