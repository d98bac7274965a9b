"""The command line: `belated paper`, `belated compare`, `belated list`; one file for each command."""

from belated.cli import lab, paper  # importing a command adds it to the application
from belated.cli.app import app, main

__all__ = ["app", "lab", "main", "paper"]
