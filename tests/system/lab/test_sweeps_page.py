"""The commands of docs/sweeps.md work."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support import dask_clusters as processes
from tests.support.ports import free_port

PAGE = (Path(__file__).parents[3] / "docs" / "sweeps.md").read_text()
BIN = Path(sys.executable).parent


def blocks(language: str) -> list[str]:
    return [str(block) for block in re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)]


def run(command: str, folder: Path) -> str:
    environment = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "200"}
    done = subprocess.run(  # noqa: S603
        ["/bin/sh", "-euc", command], capture_output=True, text=True, env=environment, cwd=folder, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_commands_run_as_they_stand(tmp_path: Path) -> None:
    """Only the addresses are changed. The workers run in a separate folder."""
    alone, local, schedule, work, together = blocks("sh")
    assert "results.csv" in run(alone, tmp_path)
    first = (tmp_path / "results" / "results.csv").read_bytes()
    assert "8 of 8 games were in results already" in run(alone, tmp_path)
    assert "qpm-d" in run(local, tmp_path)
    (tmp_path / "results").rename(tmp_path / "before")
    port = str(free_port())
    schedule, work, together = (
        text.replace("10.0.0.1", "127.0.0.1").replace("8786", port).strip() for text in (schedule, work, together)
    )
    there = tmp_path / "there"
    there.mkdir()
    with (
        processes.running(*schedule.split()[1:], "--dashboard-address", ":0", folder=there) as started,
        processes.running(*work.split()[1:], folder=there),
    ):
        processes.wait_for(started, int(port))
        output = run(together, tmp_path)
    assert "results.csv, results.parquet, regret.png and table.tex are in results" in output
    assert (tmp_path / "results" / "results.csv").read_bytes() == first


def test_the_slurm_script_is_a_script(tmp_path: Path) -> None:
    [script] = blocks("bash")
    (tmp_path / "sweep.sh").write_text(script)
    subprocess.run(["/bin/bash", "-n", str(tmp_path / "sweep.sh")], check=True)  # noqa: S603
    [python] = blocks("py")
    compile(python, "slurm.py", "exec")


def test_the_kubernetes_manifest_is_one() -> None:
    [manifest] = blocks("yaml")
    documents: list[dict[str, Any]] = list(yaml.safe_load_all(manifest))
    assert [document["kind"] for document in documents] == [
        "Deployment",
        "Service",
        "Deployment",
        "PersistentVolumeClaim",
        "Job",
    ]
    scheduler, service, workers, claim, job = documents
    for deployment in (scheduler, workers):
        assert deployment["spec"]["selector"]["matchLabels"] == deployment["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"] == scheduler["spec"]["template"]["metadata"]["labels"]
    address = f"tcp://{service['metadata']['name']}:{service['spec']['ports'][0]['port']}"
    pod = job["spec"]["template"]["spec"]
    assert address in pod["containers"][0]["command"]
    assert address in workers["spec"]["template"]["spec"]["containers"][0]["command"]
    assert {mount["name"] for mount in pod["containers"][0]["volumeMounts"]} == {v["name"] for v in pod["volumes"]}
    assert claim["metadata"]["name"] in [v.get("persistentVolumeClaim", {}).get("claimName") for v in pod["volumes"]]
    words = [
        container["command"]
        for container in (scheduler, workers, job)
        for container in container["spec"]["template"]["spec"]["containers"]
    ]
    for command in words:
        assert all(isinstance(word, str) for word in command), command
        assert shutil.which(command[0], path=str(BIN)), command


@pytest.mark.parametrize("command", ["scheduler", "worker"])
def test_the_options_that_the_page_gives_dask_exist(command: str) -> None:
    known = subprocess.run([processes.DASK, command, "--help"], check=True, capture_output=True, text=True).stdout  # noqa: S603
    given = {word for line in re.findall(rf"dask,? {command}\b(.*)", PAGE) for word in re.findall(r"--[a-z-]+", line)}
    assert given
    assert not {word for word in given if word not in known}
