"""Opens stores by name: the path of a SQLite file, or the URL of a PostgreSQL database."""

import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from belated.errors import InvalidInput, StoreError
from belated.extras import missing
from belated.serve.store.journal import Journal
from belated.serve.store.sqlite import restoring
from belated.serve.store.sqlite import schema as sqlite_schema
from belated.serve.store.sqlite.journal import SQLiteJournal

SCHEMES: Final = ("postgresql://", "postgres://")


def is_url(store: str | Path) -> bool:
    """Whether the store is a database, not a file. Raises InvalidInput if its driver is missing."""
    if not str(store).startswith(SCHEMES):
        if scheme := re.match(r"[\w+.-]{2,}:/", str(store)):  # leave out the rest, which may hold a password
            raise InvalidInput(f"unknown kind of store {scheme[0]!r}. Give a postgresql:// URL or the path of a file.")
        return False
    if find_spec("psycopg") is None:
        raise InvalidInput(missing("psycopg", "serve", "postgres"))
    return True


def shown(store: str | Path) -> str:
    """Return the store's name without its password."""
    if not is_url(store):
        return str(store)
    from belated.serve.store.postgres.connection import shown as shown_url  # noqa: PLC0415

    return shown_url(str(store))


def open_journal(store: str | Path, *, silence_timeout: float | None = None, may_create: bool = True) -> Journal:
    """Open the journal in a store. A database gets its tables from `belated migrate`.

    Creates a file that is missing if it `may_create` one. A store that was there before must not be begun anew.
    Raises StoreUnreachable if a database sends nothing for `silence_timeout` seconds. None waits for ever.
    """
    if not is_url(store):
        return SQLiteJournal(check_folder(store), may_create=may_create)
    from belated.serve.store.postgres.journal import PostgresJournal  # noqa: PLC0415

    return PostgresJournal(str(store), silence_timeout=silence_timeout)


def open_to_serve(store: str | Path, *, silence_timeout: float | None = None, may_create: bool = True) -> Journal:
    """Open a journal for a server, which promises that what it acknowledges survives a crash."""
    journal = open_journal(store, silence_timeout=silence_timeout, may_create=may_create)
    try:
        journal.require_durability()
    except BaseException:
        journal.close()
        raise
    return journal


def migrate(store: str | Path) -> Iterator[str]:
    """Create the tables, or update them to this release. Yields a line for each step."""
    if not is_url(store):
        return sqlite_schema.migrate(check_folder(store))
    from belated.serve.store.postgres.schema import migrate as migrate_database  # noqa: PLC0415

    return migrate_database(str(store))


def restore(backup: str | Path, store: str | Path) -> Path | None:
    """Put a copy of a SQLite file in the place of another. Returns the new name of the one that was there, if any."""
    if is_url(store) or is_url(backup):
        raise InvalidInput("restore is for SQLite files. For PostgreSQL use pg_restore, as docs/deployment.md says")
    if not Path(backup).is_file():
        raise InvalidInput(f"there is no backup {backup}. Name the file that `belated copy` has made")
    return restoring.restore(Path(backup), check_folder(store))


def check_folder(store: str | Path) -> Path:
    """Check that a file can be created here."""
    path = Path(store)
    if path.is_dir():
        raise InvalidInput(f"the store {store} is a folder. Name a file in it, or a postgresql:// URL.")
    if not path.parent.is_dir():
        raise StoreError(f"there is no folder {path.parent} for the store. Create it, or choose another --store.")
    return path
