"""The sdists and wheels have what they should. Each extra works in a fresh environment."""

import subprocess
import tarfile
from hashlib import sha256
from pathlib import Path
from zipfile import ZipFile

import pytest
from packaging.metadata import Metadata
from readme_renderer import markdown

import belated
from tests.support.distributions import FOLDERS, ROOT, build, installed, metadata_of
from tests.support.processes import run_python
from tests.support.service import Served

Built = dict[str, dict[str, Path]]
ASK = """
from belated import Client
with Client("http://127.0.0.1:8321") as client:
    client.create_experiment("page", ["blue", "red"])
    print(client.tell(client.ask("page"), reward=1))
"""
LEARN = """
import belated
learner = belated.FTRL(3, seed=1)
for round in range(200):
    learner.tell(learner.ask(), loss=round % 7 / 7)
print(learner.distribution().tolist())
"""
README = (ROOT / "client" / "README.md").read_text()
CLIENTS = {("belated", "client"): ASK, ("belated-client",): README.partition("```python\n")[2].partition("```")[0]}
USES: dict[tuple[str, ...], str] = {
    ("fast",): f"{LEARN}\nimport numba",
    ("lab",): """
import os, sys, belated.cli, belated.reports
os.environ["BELATED_KERNELS"] = "interpreted"
sys.argv = "belated compare --algorithms dew --rounds 50 --seeds 1 --out results".split()
belated.cli.main()
""",
    ("dask",): "import belated.lab.comparisons.dask_games, distributed",
    ("testing",): "import belated.testing.learner_contract",
}


def contents(wheel: Path) -> dict[str, str]:
    """The digest of each file, but for the list of them all."""
    with ZipFile(wheel) as opened:
        names = [name for name in opened.namelist() if not name.endswith("/RECORD")]
        return {name: sha256(opened.read(name)).hexdigest() for name in names}


def in_git(*options: str) -> set[str]:
    """The files of the clone."""
    command = ["git", "ls-files", "--exclude-standard", "--cached", *options]
    return set(subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines())  # noqa: S603


def test_the_wheel_has_every_file_of_the_package(built: Built) -> None:
    names = {name for name in contents(built["belated"]["wheel"]) if ".dist-info/" not in name}
    assert {f"src/{name}" for name in names} == in_git("--others", "src")
    assert "belated/py.typed" in names


def test_the_sdist_has_every_file_of_the_clone(built: Built) -> None:
    with tarfile.open(built["belated"]["sdist"]) as opened:
        names = {name.partition("/")[2] for name in opened.getnames()}
    assert {name for name in in_git() if not name.startswith(".")} <= names
    assert names <= in_git("--others") | {"PKG-INFO"}


def test_the_client_alone_is_that_of_belated(built: Built) -> None:
    belated_files, files = contents(built["belated"]["wheel"]), contents(built["belated-client"]["wheel"])
    names = {name.removeprefix("belated_client/") for name in files if ".dist-info/" not in name}
    assert names == {"__init__.py", "py.typed", "client.py", "deadlines.py", "errors.py", "extras.py", "scalars.py"}
    for name in names - {"__init__.py"}:
        assert files[f"belated_client/{name}"] == belated_files[f"belated/{name}"], name
    assert (ROOT / "client" / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()


@pytest.mark.parametrize("name", FOLDERS)
def test_a_wheel_from_the_sdist_is_the_same(name: str, built: Built, tmp_path: Path) -> None:
    with tarfile.open(built[name]["sdist"]) as opened:
        opened.extractall(tmp_path, filter="data")
    [unpacked] = tmp_path.iterdir()
    assert contents(build(unpacked, tmp_path / "again", "wheel")) == contents(built[name]["wheel"])


@pytest.mark.parametrize("name", FOLDERS)
def test_a_registry_would_take_it_and_show_its_readme(name: str, built: Built) -> None:
    text = metadata_of(built[name]["wheel"]).read_text("METADATA") or ""
    metadata = Metadata.from_email(text, validate=True)
    assert metadata.name == name
    assert str(metadata.version) == belated.__version__
    assert metadata.license_files == ["LICENSE"]
    assert metadata.description == (FOLDERS[name] / "README.md").read_text()
    assert metadata.description_content_type == "text/markdown"
    page = markdown.render(metadata.description) or ""
    assert page.count("</h1>") == 1
    assert page.count("</pre>") == metadata.description.count("```") / 2


# -- fresh environments -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("extras", USES, ids=",".join)
def test_an_extra_works_alone(extras: tuple[str, ...], built: Built, tmp_path: Path) -> None:
    installed(tmp_path / "fresh", built["belated"]["wheel"], *extras).run("-c", USES[extras])


@pytest.mark.parametrize("wanted", CLIENTS, ids=" ".join)
def test_a_client_works_alone(wanted: tuple[str, ...], built: Built, server: Served, tmp_path: Path) -> None:
    name, *extras = wanted
    fresh = installed(tmp_path / "fresh", built[name]["wheel"], *extras)
    code = CLIENTS[wanted].replace("http://127.0.0.1:8321", server.url)
    said = fresh.run("-c", f"{code}\nimport sys; print({{'numpy', 'numba'}} & set(sys.modules))").splitlines()
    assert said[-2:] == ["applied", "set()"]


def test_without_numba_the_learner_decides_the_same_and_says_what_to_install(built: Built, tmp_path: Path) -> None:
    fresh = installed(tmp_path / "fresh", built["belated"]["wheel"])
    assert fresh.run("-c", "from importlib.util import find_spec; print(find_spec('numba'))") == "None"
    assert fresh.run("-c", LEARN) == run_python(LEARN)
    said = fresh.run("-c", f"import sys; sys.stderr = sys.stdout\n{LEARN}")
    assert said.count(f"numba is missing. Install it with `pip install '{built['belated']['wheel']}[fast]'`.") == 1


def test_the_service_works_alone(built: Built, tmp_path: Path) -> None:
    fresh = installed(tmp_path / "fresh", built["belated"]["wheel"], "serve", "postgres")
    fresh.run("-c", "import belated.serve.store.postgres.journal")
    key = fresh.run("-m", "belated", "keys", "create", "--scope", "admin", "--store", str(tmp_path / "locked.db"))
    assert key.startswith("blt_")
    with Served(tmp_path, inside=("env", "-i"), python=fresh.python) as served:
        assert fresh.run("-c", ASK.replace("http://127.0.0.1:8321", served.url)) == "applied"
        assert served.stop() == 0


def test_every_extra_is_tried(built: Built) -> None:
    tried = {"client", "serve", "postgres", *(extra for extras in USES for extra in extras)}
    declared = metadata_of(built["belated"]["wheel"]).metadata.get_all("Provides-Extra") or []
    assert {*tried, "test", "bench"} == set(declared)
