"""What the folder listing promises: the direction of imports, a light import, documented names."""

import hashlib
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.main import get_command

import belated
from belated import cli, errors, kernels, lab, paper, replay
from belated.kernels import compiling
from belated.lab.problems import parsing
from belated.serve.http.metrics import Metrics
from belated.serve.http.routes import ROUTES
from belated.serve.service.service import Service

ROOT = Path(__file__).parent.parent.parent
PACKAGE = ROOT / "src" / "belated"


def test_the_service_does_not_load_the_lab() -> None:
    loaded = "import belated.serve.process.run, sys; print({'belated.lab', 'matplotlib', 'polars'} & set(sys.modules))"
    assert run_python(loaded) == "set()"


def test_only_kernels_know_numba() -> None:
    for path in PACKAGE.glob("*.py"):
        assert "import numba" not in path.read_text(), path
        assert "from numba" not in path.read_text(), path


def test_the_cache_of_a_kernel_notices_edits_in_every_kernel_file() -> None:
    """Numba's own check looks at the kernel's file only; the name in the cache carries a digest of all."""
    sources = b"".join(path.read_bytes() for path in sorted((PACKAGE / "kernels").glob("*.py")))
    digest = hashlib.sha256(sources).hexdigest()[:12]
    argmin: Any = kernels.argmin
    assert argmin.py_func.__qualname__ == f"argmin-{digest}"
    argmin(np.ones((kernels.ROWS, 2)), 1.0, 1.0, 0)  # on a fresh machine nothing is in the cache yet
    assert list(Path(argmin.stats.cache_path).glob(f"argmin.argmin-{digest}*.nbi"))


def test_without_a_folder_for_the_cache_kernels_are_compiled_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def njit(*, cache: bool = False, **_settings: Any) -> Any:
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return lambda function: function

    monkeypatch.setattr(compiling, "njit", njit)
    assert compiling.compiled(lambda: 7)() == 7


def run_python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()  # noqa: S603


def test_import_is_light() -> None:
    heavy = run_python("import belated, sys; print({'numpy', 'numba', 'belated.kernels'} & set(sys.modules))")
    assert heavy == "set()"
    assert run_python("import belated, sys; belated.InvalidInput; print('numba' in sys.modules)") == "False"


def test_dask_is_loaded_only_for_sweeps_on_it() -> None:
    compare = "sys.argv = ['belated', 'compare', '--algorithms', 'dew', '--rounds', '50', '--seeds', '1']"
    for work in (
        "import belated, belated.serve.process.run, belated.lab, belated.paper, belated.replay",
        f"{compare}; from belated.cli import main\ntry: main()\nexcept SystemExit: pass",
    ):
        loaded = run_python(f"import sys; {work}\nprint({{'dask', 'distributed'}} & set(sys.modules))")
        assert loaded.endswith("set()"), work
    for path in (ROOT / "src").rglob("*.py"):
        for line in path.read_text().splitlines():
            if re.match(r"\s*(from|import) (dask|distributed)\b", line):
                assert line.startswith("    "), f"{path}: {line}"  # inside a function, or for types only


def test_every_public_name_resolves_and_is_documented() -> None:
    documents = "".join(path.read_text() for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
    assert dir(belated) == sorted(belated.__all__)
    for name in belated.__all__:
        assert getattr(belated, name).__doc__, name
        assert f"`{name}" in documents or f"belated.{name}" in documents, f"{name} is in no document"
    with pytest.raises(AttributeError, match="no attribute 'Magic'"):
        _ = belated.Magic  # type: ignore[attr-defined]


def test_every_name_of_the_lab_is_in_its_document() -> None:
    document = (ROOT / "docs" / "lab.md").read_text()
    for name in [*(a.name for a in lab.ALGORITHMS), *parsing.LOSSES, *parsing.DELAYS, *parsing.AROUND]:
        assert f"`{name}" in document, name
    for name in lab.__all__:
        assert re.search(rf"`(lab\.)?{name}\b", document), name


def test_every_command_and_option_is_documented() -> None:
    names = ("lab.md", "sweeps.md", "paper.md", "replay.md", "service.md")
    documents = "".join((ROOT / "docs" / name).read_text() for name in names)
    commands: Any = get_command(cli.app)
    keys = commands.commands.pop("keys").commands
    for name, command in {**commands.commands, **{f"keys {name}": one for name, one in keys.items()}}.items():
        assert f"belated {name}" in documents, name
        for option in command.params:
            if option.opts[0].startswith("--"):
                assert f"`{option.opts[0]}" in documents or f" {option.opts[0]} " in documents, (name, option.opts)


def test_every_route_and_metric_is_documented(tmp_path: Path) -> None:
    document = (ROOT / "docs" / "service.md").read_text()
    for route in ROUTES:
        last = route.path.removeprefix("/v1/experiments/{name}")
        assert f"{route.path}`" in document or f"`{last}`" in document, route.path
    service = Service.open(tmp_path / "belated.db")
    text = Metrics(service).text()[0].decode()
    service.close()
    for name in re.findall(r"^# TYPE (\w+) \w+$", text, re.MULTILINE):
        if not name.endswith("_created"):
            assert f"`{name}`" in document, name


def test_every_claim_is_in_its_document() -> None:
    document = (ROOT / "docs" / "paper.md").read_text()
    for number, claim in enumerate(paper.CLAIMS, 1):
        assert f"| {number} | `{claim.name}` | {claim.kind} |" in document, claim.name
    for name in paper.__all__:
        assert re.search(rf"`(paper\.)?{name}\b|paper\.{name}\b", document), name


def test_every_name_of_replay_is_in_its_document() -> None:
    document = (ROOT / "docs" / "replay.md").read_text()
    for name in replay.__all__:
        assert re.search(rf"`(replay\.)?{name}\b", document), name


def test_replay_is_light() -> None:
    heavy = run_python("import belated.replay, sys; print({'polars', 'matplotlib', 'rich'} & set(sys.modules))")
    assert heavy == "set()"


def test_every_method_of_the_learner_is_in_the_documents() -> None:
    documents = (ROOT / "README.md").read_text() + (ROOT / "docs" / "learner.md").read_text()
    for name in vars(belated.FTRL):
        if not name.startswith("_"):
            assert f"`{name}" in documents, name


def test_every_method_of_the_client_is_in_its_document() -> None:
    document = (ROOT / "docs" / "service.md").read_text()
    for name in vars(belated.Client):
        if not name.startswith("_"):
            assert f"`{name}(" in document, name


def test_the_exception_tree_is_the_drawn_one() -> None:
    drawn = [line.split()[1] for line in (errors.__doc__ or "").splitlines() if line.startswith(("├", "└"))]
    assert sorted(drawn) == sorted(cls.__name__ for cls in errors.BelatedError.__subclasses__())
    assert set(drawn) | {"BelatedError"} <= set(belated.__all__)


def test_the_version_is_in_the_changelog() -> None:
    assert f"## {belated.__version__}" in (ROOT / "CHANGELOG.md").read_text()
