"""The option `--store`, and what every command that opens a store needs."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from belated.errors import InvalidInput
from belated.extras import missing

if TYPE_CHECKING:
    from belated.serve.store.journal import Journal

STORE = "belated.db"


def checked_name(context: typer.Context, store: str) -> str:
    """Refuse an empty name. It is a mistake, and must not create a new file beside the right one."""
    source = context.get_parameter_source("store")
    is_default = source is not None and source.name == "DEFAULT"  # Typer says so for an empty variable, too
    if not store or (is_default and "BELATED_STORE" in os.environ):
        raise InvalidInput("the store has an empty name. Set --store or BELATED_STORE, or unset the variable")
    return store


def _option(help: str) -> Any:
    return typer.Option(envvar="BELATED_STORE", help=help, show_default=STORE, callback=checked_name)


Store = Annotated[str, _option("The journal. A SQLite file, or a postgresql:// URL.")]
StoreFile = Annotated[str, _option("The SQLite file to replace. For PostgreSQL use pg_restore.")]


def require_extra() -> None:
    """Say what to install if the service's libraries are missing."""
    try:
        import apsw  # noqa: F401, PLC0415
        import uvicorn  # noqa: F401, PLC0415
    except ModuleNotFoundError as error:
        raise InvalidInput(missing(error.name, "serve")) from None


def is_missing(store: str) -> bool:
    """Whether the store is a file that does not exist. A missing database shows when it is opened."""
    from belated.serve.store.opening import is_url  # noqa: PLC0415

    return not is_url(store) and not Path(store).exists()


def existing(store: str) -> "Journal":
    """Open the journal of a store that must exist."""
    require_extra()
    from belated.serve.store.opening import open_journal  # noqa: PLC0415

    if is_missing(store):
        raise InvalidInput(f"there is no store {store}. `belated serve` makes one, or name another with --store")
    return open_journal(store)
