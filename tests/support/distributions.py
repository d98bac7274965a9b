"""Our wheels and sdists, and fresh environments to install them in."""

import os
import subprocess
import sys
import venv
from importlib.metadata import Distribution, PathDistribution, distribution
from pathlib import Path
from zipfile import Path as PathInZip
from zipfile import ZipFile

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
FOLDERS = {"belated": ROOT, "belated-client": ROOT / "client"}
PLAIN = {name: value for name, value in os.environ.items() if not name.startswith(("BELATED_", "PIP_", "PYTHON"))}
OFFLINE = {**PLAIN, "PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull}
QUICK = {"PIP_COMPILE": "0", "PIP_NO_BUILD_ISOLATION": "0"}  # 0 is on


def build(source: Path, folder: Path, kind: str) -> Path:
    """Build an "sdist" or a "wheel" in a new folder, as `pip install` does."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(folder)]
    subprocess.run(command, cwd=source, env=PLAIN, check=True, capture_output=True)  # noqa: S603
    [made] = folder.iterdir()
    return made


def metadata_of(wheel: Path) -> Distribution:
    """What a wheel says about itself."""
    name, version, *_ = wheel.name.split("-")
    return PathDistribution(PathInZip(wheel, f"{name}-{version}.dist-info/"))


def needed_by(package: Distribution, *extras: str) -> dict[str, Distribution]:
    """What a package needs with these extras, and what that needs, from the environment of this process."""
    found: dict[str, Distribution] = {}
    todo = [(package, extra) for extra in ("", *extras)]
    for of, extra in todo:  # grows
        for line in of.requires or ():
            requirement = Requirement(line)
            if requirement.marker is not None and not requirement.marker.evaluate({"extra": extra}):
                continue
            name = canonicalize_name(requirement.name)
            needed = package if name == package.name else found.setdefault(name, distribution(name))
            todo += [one for wanted in ("", *requirement.extras) if (one := (needed, wanted)) not in todo]
    return found


def repacked(package: Distribution, folder: Path) -> Path:
    """A wheel of a package that is installed here, without its commands."""
    made = folder / f"{package.name}-{package.version}-py3-none-any.whl"
    with ZipFile(made, "w") as wheel:
        for path in package.files or ():
            if ".." not in path.parts and "__pycache__" not in path.parts:
                wheel.write(str(path.locate()), str(path))
    return made


class Environment:
    """A fresh virtual environment with some packages of this process.

    They are links, because real installations of them all take minutes. pip cannot tell the difference.
    """

    def __init__(self, folder: Path, packages: dict[str, Distribution]) -> None:
        venv.create(folder, symlinks=True)
        self.folder, self.python = folder, folder / "bin" / "python"
        [self.site_packages] = folder.glob("lib/python*/site-packages")
        for package in packages.values():
            for top in {path.parts[0] for path in package.files or ()} - {"..", "__pycache__"}:
                (self.site_packages / top).symlink_to(Path(str(package.locate_file(top))))

    def pip(self, *arguments: str) -> str:
        """Run pip, without any index."""
        return self._run(sys.executable, "-m", "pip", "--python", str(self.python), *arguments)

    def run(self, *arguments: str) -> str:
        """Run Python and return its output."""
        return self._run(str(self.python), *arguments)

    def _run(self, *command: str) -> str:
        done = subprocess.run(  # noqa: S603
            command, cwd=self.folder, env=OFFLINE | QUICK, check=False, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.strip()


def installed(folder: Path, wheel: Path, *extras: str) -> Environment:
    """An environment in which pip has installed a wheel, with nothing but what the wheel says that it needs."""
    made = Environment(folder, needed_by(metadata_of(wheel), *extras))
    made.pip("install", "--quiet", f"{wheel}[{','.join(extras)}]" if extras else str(wheel))
    assert made.pip("check") == "No broken requirements found."
    return made
