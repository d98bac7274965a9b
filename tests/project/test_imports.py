"""Importing a part loads only what the part needs.

These tests start plain interpreters, which the quick check allows.
"""

import subprocess
import sys
from pathlib import Path

from tests.support.processes import run_python

ROOT = Path(__file__).parents[2]


def test_import_is_light() -> None:
    unwanted = {"numpy", "numba", "httpx", "belated.kernels", "belated.lab", "belated.serve"}
    assert run_python(f"import belated, sys; dir(belated); print({unwanted} & set(sys.modules))") == "set()"
    assert run_python("import belated, sys; belated.errors.InvalidInput; print('numba' in sys.modules)") == "False"


def test_the_client_loads_neither_numpy_nor_the_learner() -> None:
    unwanted = {"numpy", "numba", "belated.kernels", "belated.learner", "belated.lab", "belated.serve"}
    for work in ("import belated.client", "import belated; belated.Client; belated.AsyncClient"):
        assert run_python(f"import sys; {work}\nprint({unwanted} & set(sys.modules))") == "set()", work


def test_replay_is_light() -> None:
    heavy = run_python("import belated.replay, sys; print({'polars', 'matplotlib', 'rich'} & set(sys.modules))")
    assert heavy == "set()"


def test_the_service_does_not_load_the_lab() -> None:
    loaded = "import belated.serve.process.run, sys; print({'belated.lab', 'matplotlib', 'polars'} & set(sys.modules))"
    assert run_python(loaded) == "set()"


def test_without_typer_the_command_names_both_extras_that_bring_it() -> None:
    code = "import sys; sys.modules['typer'] = None; import belated.cli"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)  # noqa: S603
    assert result.returncode == 1
    assert "typer is missing" in result.stderr
    assert f"'{ROOT}[lab]'" in result.stderr
    assert f"'{ROOT}[serve]'" in result.stderr
