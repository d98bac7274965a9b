"""The command line: `belated paper`, `belated replay`, `belated compare`, `belated list`; one file for each."""

from belated.cli import lab, paper, replay  # importing a command adds it to the application
from belated.cli.app import app, main

__all__ = ["app", "lab", "main", "paper", "replay"]
