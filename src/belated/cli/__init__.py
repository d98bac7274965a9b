"""The command line, one file for each part of it: the lab, the paper, replay, the service, its stores."""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from belated.cli import application
from belated.extras import missing

if TYPE_CHECKING:
    from belated.cli.application import app

__all__ = ["app", "main"]
PARTS = ("lab", "paper", "replay", "serve", "stores")
SERVICE = (
    "serve",
    "keys",
    "verify",
    "migrate",
    "copy",
)  # a service starts at once: nothing of the lab is loaded for it


def load(*parts: str) -> None:
    """Importing a part adds its commands to the application; one whose libraries are missing is left out, and told."""
    absent = set()
    for part in parts:
        try:
            import_module(f"belated.cli.{part}")
        except ModuleNotFoundError as error:
            absent.add(str(error.name))
    if absent:
        sys.stderr.write(f"Some commands are not available. {missing(', '.join(sorted(absent)), 'lab')}\n")


def main() -> None:
    """Run the command that was asked for."""
    load(*(PARTS[-2:] if sys.argv[1:2] and sys.argv[1] in SERVICE else PARTS))
    application.run()


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """The application with all its commands."""
        if name != "app":
            raise AttributeError(f"module 'belated.cli' has no attribute {name!r}")
        load(*PARTS)
        return application.app
