"""Numba is installed, but cannot be imported. Here in real processes, with a package that fails in its place."""

import os
from pathlib import Path

import pytest

from tests.system.kernels.test_background import WAIT, run

BEGIN = (
    WAIT
    + """
import warnings
warnings.showwarning = lambda message, *_: print("warned:", str(message).replace(" ", "_"))
from belated import FTRL, kernels
"""
)
REASON = "Numba_is_installed_but_cannot_be_loaded:_ImportError('NumPy_is_too_new')"


def run_with_broken_numba(code: str, folder: Path, tier: str = "auto") -> list[str]:
    package = folder / "numba"
    package.mkdir()
    (package / "__init__.py").write_text("raise ImportError('NumPy is too new')\n")
    path = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))
    return run(BEGIN + code, folder / "cache", PYTHONPATH=path, BELATED_KERNELS=tier)


@pytest.mark.parametrize("first", ["pass", "kernels.load_compiled()"])
def test_large_learners_stay_interpreted_and_it_says_so_once(first: str, tmp_path: Path) -> None:
    code = f"""
FTRL(2, seed=0).ask()
{first}
for _ in range(2):
    learner = FTRL(20_000, seed=0)
    learner.tell(learner.ask(), 0.5)
kernels.compile_soon()
print("played", kernels.is_compiling())
"""
    warned = ["warned:", f"the_kernels_stay_interpreted._{REASON}"]
    assert run_with_broken_numba(code, tmp_path) == [*warned, "played", "False"]


def test_after_the_background_has_failed_nobody_tries_again(tmp_path: Path) -> None:
    code = """
learner = FTRL(2, seed=0)
learner.tell(learner.ask(), 0.5)
kernels.compile_soon()
wait_for(lambda: not kernels.is_compiling())
learner = FTRL(20_000, seed=0)
learner.tell(learner.ask(), 0.5)
kernels.load_compiled()
print("played")
"""
    warned = ["warned:", "the_kernels_stay_interpreted._Numba_failed:_ImportError('NumPy_is_too_new')"]
    assert run_with_broken_numba(code, tmp_path) == [*warned, "played"]


def test_who_demands_compiled_kernels_is_told_why_there_are_none(tmp_path: Path) -> None:
    code = """
from belated.errors import InvalidInput
for demand in (lambda: FTRL(2), lambda: FTRL(2), kernels.folder):
    try: demand()
    except InvalidInput as error: print(str(error).replace(" ", "_"))
"""
    assert run_with_broken_numba(code, tmp_path, tier="compiled") == [REASON] * 3
