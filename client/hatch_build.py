"""Adds the modules of the client to the package. They are Belated's own, so they exist once."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

MODULES = ("client", "deadlines", "errors", "extras", "scalars")


class SharedModules(BuildHookInterface[Any]):
    """Takes the modules from the clone. An sdist has them already."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Say which files to add."""
        if version == "editable":
            raise RuntimeError("belated-client copies its modules, so it cannot be edited in place. Install without -e")
        package, belated = Path(self.root, "belated_client"), Path(self.root).parent / "src" / "belated"
        found = {str(belated / f"{name}.py"): f"belated_client/{name}.py" for name in MODULES}
        if not (package / "client.py").exists():
            build_data["force_include"] |= found
