"""Importing a part loads only what the part needs.

These tests start plain interpreters, which the quick check allows.
"""

import subprocess
import sys

from tests.support.processes import run_python


def test_import_is_light() -> None:
    heavy = run_python("import belated, sys; print({'numpy', 'numba', 'belated.kernels'} & set(sys.modules))")
    assert heavy == "set()"
    assert run_python("import belated, sys; belated.errors.InvalidInput; print('numba' in sys.modules)") == "False"


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
    assert "'.[lab]'" in result.stderr
    assert "'.[serve]'" in result.stderr
