"""The commands `belated keys create`, `list` and `revoke`."""

from contextlib import closing
from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from belated.cli.application import app, console
from belated.cli.store_option import STORE, Store, existing, is_missing, require_extra
from belated.errors import InvalidInput

keys = typer.Typer(no_args_is_help=True, help="Manage the keys of the service.")
app.add_typer(keys, name="keys")


@keys.command("create")
def create_key(
    scope: Annotated[str, typer.Option(help="decide, report or admin. admin may do everything.")],
    experiment: Annotated[str | None, typer.Option(help="Only for this experiment.")] = None,
    max_open: Annotated[
        int | None,
        typer.Option(min=1, help="No more decisions while their experiment has so many open ones, whoever asked."),
    ] = None,
    rate: Annotated[float | None, typer.Option(min=0.001, help="Decisions and reports a second. More get 429.")] = None,
    store: Store = STORE,
) -> None:
    """Make a key and show it once. The store keeps only its hash."""
    require_extra()
    from belated.serve.service import keys as service_keys  # noqa: PLC0415
    from belated.serve.store.opening import open_journal, shown  # noqa: PLC0415

    notes = " The store is new. `belated serve --store` must name the same." if is_missing(store) else ""
    with closing(open_journal(store)) as journal:
        key = service_keys.create(journal, scope, experiment, max_open=max_open, rate=rate)
        if experiment is not None and not journal.named([experiment]):
            notes += f" There is no experiment {experiment!r} yet."
    hint = f"A key for the store {shown(store)}.{notes} It is shown only once."
    Console(stderr=True).print(hint, soft_wrap=True, highlight=False)
    console.print(key, soft_wrap=True, highlight=False)


@keys.command("list")
def list_keys(store: Store = STORE) -> None:
    """Show the keys, without their secrets."""
    from belated.serve.domain.timestamps import MICROSECONDS  # noqa: PLC0415

    table = Table("id", "scope", "experiment", "created", "revoked")
    with closing(existing(store)) as journal:
        known = journal.keys()
    for key in known:
        times = [
            "" if at is None else datetime.fromtimestamp(at / MICROSECONDS, UTC).strftime("%Y-%m-%d %H:%M")
            for at in (key.created_at, key.revoked_at)
        ]
        table.add_row(key.id, key.scope, Text(key.experiment or "all"), *times)
    console.print(table)


@keys.command("revoke")
def revoke_key(
    id: Annotated[str, typer.Argument(help="The id of the key, which is its part between the underscores.")],
    store: Store = STORE,
) -> None:
    """Refuse a key from now on."""
    from belated.serve.domain.timestamps import now  # noqa: PLC0415

    with closing(existing(store)) as journal:
        is_revoked = journal.revoke_key(id, now())
    if not is_revoked:
        raise InvalidInput(f"there is no key {id!r}, or it is revoked already. `belated keys list` shows all")
    console.print(f"revoked {id}. A running service refuses it within a second", highlight=False)
