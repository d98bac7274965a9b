"""The command line, with one file for each part."""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from belated.cli import application
from belated.errors import BelatedError
from belated.extras import missing

if TYPE_CHECKING:
    from belated.cli.application import app

__all__ = ["app", "main"]
STUDIES = ("lab", "sweep", "plan", "paper", "replay", "reproduce")
SERVICE = ("serve", "keys", "stores", "archive", "erase", "warm")
# these do not load the lab, so they start fast
SERVICE_COMMANDS = ("serve", "keys", "verify", "migrate", "copy", "restore", "archive", "erase", "warm")


def load(*parts: str) -> None:
    """Import parts, which adds their commands. A part whose libraries are missing is left out with a message."""
    absent = set()
    for part in parts:
        try:
            import_module(f"belated.cli.{part}")
        except ModuleNotFoundError as error:
            absent.add(str(error.name))
    if absent:
        sys.stderr.write(f"Some commands are not available. {missing(', '.join(sorted(absent)), 'lab')}\n")


def main() -> None:
    """Run the command in sys.argv."""
    try:
        load(*(SERVICE if sys.argv[1:2] and sys.argv[1] in SERVICE_COMMANDS else STUDIES + SERVICE))
    except BelatedError as error:  # BELATED_KERNELS may have a wrong value
        application.stop(str(error))
    application.run()


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """The application with all its commands."""
        if name != "app":
            raise AttributeError(f"module 'belated.cli' has no attribute {name!r}")
        load(*STUDIES, *SERVICE)
        return application.app
