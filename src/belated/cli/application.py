"""The application that all commands belong to, its console, and its errors."""

import sys
from typing import Annotated, NoReturn

from belated.extras import missing

try:
    import typer
    from rich.console import Console
    from rich.text import Text
except ModuleNotFoundError as error:
    raise SystemExit(
        f"{missing(error.name, 'lab')} For the service alone, `pip install '.[serve]'` is enough."
    ) from None

import belated as package
from belated.errors import BelatedError

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)
console = Console()


def show_version(wanted: bool) -> None:
    """Print the version and stop."""
    if wanted:
        console.print(package.__version__)
        raise typer.Exit


@app.callback()
def belated(
    version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Choose between options when the feedback comes late, out of order, or never."""


def run() -> None:
    """Run the command line. An error is one line, without a traceback."""
    try:
        app()
    except ModuleNotFoundError as error:
        stop(missing(error.name, "dask" if error.name in ("dask", "distributed") else "lab"))
    except BelatedError as error:
        stop(str(error))


def stop(message: str) -> NoReturn:
    """Print an error and exit with 2."""
    Console(stderr=True).print(Text.assemble(("error: ", "red"), message), soft_wrap=True)
    sys.exit(2)
