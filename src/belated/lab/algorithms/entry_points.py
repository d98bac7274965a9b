"""Algorithms of other installed packages, found by the entry points of the group `belated.algorithms`."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any, final

from belated.errors import ClusterError, InvalidInput

GROUP = "belated.algorithms"


@final
@dataclass(frozen=True)
class FromPackage:
    """An entry point of an installed package, with its version and a digest of its module."""

    name: str
    value: str
    package: str
    version: str
    digest: str

    @property
    def fingerprint(self) -> str:
        return f"{self.package} {self.version} {self.value} {self.digest}"

    def load(self) -> Any:
        """The object behind the entry point. Here it must be the same that was found where the game was planned."""
        point = metadata.EntryPoint(self.name, self.value, GROUP)
        try:
            digest = _digest(point.module)
            loaded = point.load()
        except (Exception, SystemExit) as error:  # a package may raise anything
            raise InvalidInput(
                f"{self.name} of {self.package} {self.version} cannot be loaded. {type(error).__name__}: {error}"
            ) from error
        if digest != self.digest:
            raise ClusterError(
                f"{self.name} of {self.package} {self.version} has another source here. Install the same on all workers"
            )
        return loaded


def installed() -> Mapping[str, FromPackage]:
    """The entry points of all installed packages, by name. Loads none of them."""
    return {point.name: _found(point) for point in metadata.entry_points(group=GROUP)}


def find_point(name: str) -> FromPackage:
    """The entry point of this name, which must be in one package only."""
    points = metadata.entry_points(group=GROUP, name=name)
    if len(points) > 1:
        packages = ", ".join(sorted(point.dist.name for point in points if point.dist))
        raise InvalidInput(f"{name} is in more than one package ({packages}). Uninstall all but one")
    (point,) = points
    return _found(point)


def _found(point: metadata.EntryPoint) -> FromPackage:
    package = ("?", "?") if point.dist is None else (point.dist.name, point.dist.version)
    try:
        digest = _digest(point.module)
    except (Exception, SystemExit):  # noqa: BLE001  (loading will say what is wrong)
        digest = ""
    return FromPackage(point.name, point.value, *package, digest)


def _digest(module: str) -> str:
    """A digest of the file of a module."""
    spec = find_spec(module)
    if spec is None:
        raise ModuleNotFoundError(f"No module named {module!r}", name=module)
    content = Path(spec.origin).read_bytes() if spec.has_location and spec.origin else b""
    return hashlib.sha256(content).hexdigest()
