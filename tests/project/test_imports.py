"""Importing a part loads only what the part needs.

These tests start plain interpreters, which the quick check allows.
"""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from belated.cli.application import LIBRARIES, said_of
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


def test_a_command_names_the_extra_of_a_missing_library_and_no_extra_for_a_stranger() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    own = [
        re.match(r"[\w-]+", line)
        for extra in LIBRARIES
        for line in [*extras[extra], *extras["client"], *extras["fast"]]
    ]
    names = {found[0].replace("-", "_") for found in own if found} - {"belated"}
    assert {name for libraries in LIBRARIES.values() for name in libraries} == {*names, "dask"}
    for name, extra in {"jinja2": "lab", "matplotlib.pyplot": "lab", "distributed": "dask", "apsw": "serve"}.items():
        said = said_of(ModuleNotFoundError(f"No module named {name!r}", name=name))
        assert said == f"{name.partition('.')[0]} is missing. Install it with `pip install -e '{ROOT}[{extra}]'`."
    stranger = ModuleNotFoundError("No module named 'helpers'", name="helpers")
    assert said_of(stranger) == "No module named 'helpers'"
    assert said_of(ModuleNotFoundError("river is missing. Install it")) == "river is missing. Install it"


def test_a_wrong_variable_is_told_in_one_line() -> None:
    command, wrong = [sys.executable, "-m", "belated", "warm"], {**os.environ, "BELATED_KERNELS": "fast"}
    done = subprocess.run(command, env=wrong, capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 2
    assert done.stderr == "error: BELATED_KERNELS must be auto, compiled or interpreted, got 'fast'\n"


NEED = {  # what needs a library of an extra, and the library and the extra that the error names
    "import belated.reports": ("jinja2", "lab"),
    "import belated.replay": ("jinja2", "lab"),
    "import belated.testing.learner_contract": ("hypothesis", "testing"),
    "from belated.figure_style import canvas; canvas().__enter__()": ("matplotlib", "lab"),
    "from belated.lab.problems.given_losses import LossesFile; LossesFile('losses.csv').loaded()": ("polars", "lab"),
    "from belated.lab.comparisons.frames import polars_frame; polars_frame({})": ("polars", "lab"),
    "from belated.replay.log_files import _open_parquet; _open_parquet('log.parquet')": ("polars", "lab"),
    "from belated.lab.comparisons.dask_games import connect; connect('local', 1)": ("distributed", "dask"),
}


def test_in_python_too_a_missing_library_is_told_with_its_command() -> None:
    lines = ["import sys", *(f"sys.modules[{library!r}] = None" for library, _ in NEED.values())]
    for work in NEED:
        lines += ["try:", f"    {work}", "except ModuleNotFoundError as error: print(error)"]
    told = run_python("\n".join(lines)).splitlines()
    assert told == [
        f"{library} is missing. Install it with `pip install -e '{ROOT}[{extra}]'`." for library, extra in NEED.values()
    ]


def test_commands_of_the_service_do_not_complain_about_the_lab() -> None:
    hide = "import sys; sys.modules['jinja2'] = sys.modules['matplotlib'] = None"
    for name in ("warm", "restore", "serve"):
        code = f"{hide}; sys.argv = ['belated', {name!r}, '--help']; from belated.cli import main; main()"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
        assert done.stderr == "", name
