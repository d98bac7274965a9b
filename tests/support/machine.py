"""A machine for docs/deployment.md. Tests paste the commands of the page into its shell."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import final

import httpx

from tests.support.ports import free_port
from tests.support.postgres import Cluster
from tests.support.service import NO_TLS

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "deployment.md").read_text()
PROGRAMS = Path(sys.executable).parent
NGINX = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin:{PROGRAMS.parent / 'nginx/usr/sbin'}") or "nginx"
PORTS = 8080, 8321, 8322
MAIN = """
pid {folder}/nginx.pid;
error_log {folder}/error.log;
{user}
events {{}}
http {{
    access_log {folder}/access.log;
    {temporary}
    include {folder}/conf.d/*.conf;
}}
"""  # like a distribution's, but in the test's folder


def section(number: int) -> str:
    """A section of the page."""
    [found] = re.findall(rf"\n## {number}\. .*?(?=\n## |\Z)", PAGE, re.DOTALL)
    return str(found)


def blocks(number: int) -> list[str]:
    """The commands of a section that can be run without systemd or containers."""
    return re.findall(r"```sh\n(.*?)```", section(number), re.DOTALL)


@final
class Nginx:
    """nginx with its own folder. The files in `conf.d` are its configuration."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "conf.d").mkdir()
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        temporary = " ".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
        user = "user root;" if os.geteuid() == 0 else ""
        (folder / "main.conf").write_text(MAIN.format(folder=folder, user=user, temporary=temporary))
        self.command = [NGINX, "-p", str(folder), "-c", str(folder / "main.conf"), "-e", str(folder / "error.log")]

    def run(self, *options: str) -> str:
        """Run nginx with these options and check that it succeeds. Without options it starts."""
        done = subprocess.run([*self.command, *options], capture_output=True, text=True, check=False)  # noqa: S603
        assert done.returncode == 0, done.stderr
        return done.stderr

    def stop(self) -> None:
        """Stop nginx and all its workers, if it runs."""
        pid = self.folder / "nginx.pid"
        if pid.exists():
            os.kill(int(pid.read_text()), signal.SIGTERM)
            while pid.exists():
                time.sleep(0.01)


@final
class Shell:
    """One shell. Tests paste blocks of commands into it."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.log = folder / "shell.log"
        output = self.log.open("w")
        self._bash = subprocess.Popen(
            ["/bin/bash", "-e"], stdin=subprocess.PIPE, stdout=output, stderr=output, text=True, cwd=folder,
            env=environment, start_new_session=True,
        )  # fmt: skip
        output.close()
        self._pasted = 0

    def paste(self, block: str, within: float = 60) -> str:
        """Run a block to its end and return its output. A command that fails ends the shell."""
        assert self._bash.stdin is not None
        self._pasted += 1
        before, end = len(self.log.read_text()), f"-- end of block {self._pasted} --\n"
        self._bash.stdin.write(f"{block}\necho '{end.strip()}'\n")
        self._bash.stdin.flush()
        deadline = time.monotonic() + within
        while not self.log.read_text().endswith(end):
            assert self._bash.poll() is None, self.log.read_text()
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.02)
        return self.log.read_text()[before:].removesuffix(end)

    def close(self) -> None:
        """End the shell and every process that it has started."""
        os.killpg(self._bash.pid, signal.SIGKILL)
        self._bash.wait()
        assert self._bash.stdin is not None
        self._bash.stdin.close()


@final
class Machine:
    """The machine that the page describes, with other ports and folders, and the tests' PostgreSQL."""

    def __init__(self, folder: Path, cluster: Cluster) -> None:
        self.folder, self.nginx = folder, Nginx(folder)
        self.ports = {5432: cluster.port, **{port: free_port() for port in PORTS}}
        self.url = f"http://127.0.0.1:{self.ports[8080]}"
        for name in ("bin", "home", "conf.d-postgresql"):
            (folder / name).mkdir()
        (folder / "examples").symlink_to(ROOT / "examples")
        shutil.copytree(ROOT / "deploy", folder / "deploy")
        for file in (path for path in (folder / "deploy").rglob("*") if path.is_file()):
            file.write_text(self.here(file.read_text()))
        as_postgres = f"export PGHOST={cluster.folder} PGPORT={cluster.port} PGUSER=postgres"
        shims = {
            "sudo": f'if [ "$1" = -u ]; then shift 2; {as_postgres}; fi\nexec "$@"',
            "service": '[ "$*" = "nginx restart" ] || exit 0\nexec nginx',
            "nginx": f'exec {" ".join(self.nginx.command)} "$@"',
        }  # these stand in for programs that a test must not run
        for name, words in shims.items():
            (folder / "bin" / name).write_text(f"#!/bin/sh\n{words}\n")
            (folder / "bin" / name).chmod(0o755)
        path = f"{folder / 'bin'}:{cluster.programs}:{os.environ['PATH']}"
        clean = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
        self.shell = Shell(folder, {**clean, "PATH": path, "HOME": str(folder / "home"), "COLUMNS": "200"})

    def here(self, words: str) -> str:
        """Replace the ports and folders of the page by those of this machine."""
        for port, own in self.ports.items():
            words = re.sub(rf"\b{port}\b", str(own), words)
        folders = {"/opt/belated/bin": PROGRAMS, "/etc/nginx/conf.d": self.nginx.folder / "conf.d"}
        for folder, mine in {**folders, "/etc/postgresql/15/main/conf.d": self.folder / "conf.d-postgresql"}.items():
            words = words.replace(folder, str(mine))
        return words

    def paste(self, block: str) -> str:
        """Run a block of the page."""
        return self.shell.paste(self.here(block))

    def variable(self, name: str) -> str:
        """The value of a shell variable."""
        return self.shell.paste(f'echo "${name}"').strip()

    def get(self, path: str, port: int = 8080) -> httpx.Response:
        """Send a GET request with the key, as the page does with curl."""
        headers = {"Authorization": f"Bearer {self.variable('BELATED_KEY')}"}
        url = f"http://127.0.0.1:{self.ports[port]}{path}"
        return httpx.get(url, headers=headers, timeout=30, verify=NO_TLS, trust_env=False)

    def decisions(self) -> int:
        """The number of decisions of the demonstration, read through nginx."""
        return int(self.get("/v1/experiments/demo").raise_for_status().json()["decisions"])

    def close(self) -> None:
        """End every process that was started."""
        self.shell.close()
        self.nginx.stop()
