"""The application that all commands belong to, its console, and its errors."""

import shutil
import sys
from typing import Annotated, NoReturn, final

from belated.extras import command, missing

try:
    import typer
    from rich.console import Console, ConsoleDimensions
    from rich.text import Text
except ModuleNotFoundError as error:
    raise SystemExit(f"{missing(error.name, 'lab')} For the service alone, `{command('serve')}` is enough.") from None

import belated as package
from belated.errors import BelatedError

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)
LIBRARIES = {  # by extra, what commands import
    "lab": {"jinja2", "matplotlib", "numba", "polars", "rich", "typer"},
    "dask": {"dask", "distributed"},
    "serve": {"apsw", "httptools", "httpx", "msgspec", "prometheus_client", "starlette", "uvicorn", "uvloop"},
}
FULL = 10_000  # columns of a pipe or a file, wider than any table


@final
class Output(Console):
    """A console that asks for its width whenever it prints. A pipe or a file gets full width.

    `COLUMNS` in the environment decides first. Rich would read it only once, when a console is made.
    """

    @property  # type: ignore[misc]  # nobody sets it
    def size(self) -> ConsoleDimensions:
        """The columns and lines of the terminal, or full width where there is none."""
        return ConsoleDimensions(*shutil.get_terminal_size((FULL, 25)))


console = Output()


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
        stop(said_of(error))
    except BelatedError as error:
        stop(str(error))


def said_of(error: ModuleNotFoundError) -> str:
    """Name the command that installs a library of ours. What else is missing belongs to somebody's own file."""
    package = (error.name or "").partition(".")[0]
    found = [extra for extra, libraries in LIBRARIES.items() if package in libraries]
    return missing(package, found[0]) if found else str(error)


def stop(message: str) -> NoReturn:
    """Print an error and exit with 2."""
    Console(stderr=True).print(Text.assemble(("error: ", "red"), message), soft_wrap=True)
    sys.exit(2)
