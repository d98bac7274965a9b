"""The size of an installation, without Python itself, pip and setuptools."""

import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from benchmarks.judging import judge

ROOT = Path(__file__).parents[1]


def size_of(requirement: str | Path) -> float:
    """Megabytes in the files of a fresh installation, also those that Python compiles. Blocks of a disk are larger."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, symlinks=True)
        command = "-m", "pip", "--python", f"{folder}/bin/python", "install", "--quiet", "--disable-pip-version-check"
        subprocess.run([sys.executable, *command, str(requirement)], check=True)
        [packages] = Path(folder).glob("lib/python*/site-packages")
        return sum(path.stat().st_size for path in packages.rglob("*") if path.is_file()) / 1e6


def sizes() -> None:
    """The client alone, and the learner without Numba. For comparison, the learner with Numba."""
    print("\nsize of an installation")
    judge("the client alone", size_of(ROOT / "client"), 15, "MB", at_most=True)
    judge("the learner without Numba", size_of(ROOT), 80, "MB", at_most=True)
    print(f"  with Numba: {size_of(f'{ROOT}[fast]'):.0f} MB")
