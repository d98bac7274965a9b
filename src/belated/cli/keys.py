"""The commands `belated keys create`, `list`, `rotate` and `revoke`."""

from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from belated.cells import Table
from belated.cli.application import app, console
from belated.cli.durations import seconds
from belated.cli.store_option import STORE, Store, existing, is_missing, require_extra
from belated.cli.tables import print_cells
from belated.errors import InvalidInput

if TYPE_CHECKING:
    from belated.serve.store.journal import Record

keys = typer.Typer(no_args_is_help=True, help="Manage the keys of the service.")
app.add_typer(keys, name="keys")


SCOPES = "read, metrics, decide, report or admin, which may do everything. Give it again for another one."
EXPIRES = typer.Option("--expires-in", help="How long the key works, such as 90d. Without it, until it is revoked.")


@keys.command("create")
def create_key(
    scope: Annotated[list[str], typer.Option(help=SCOPES)],
    experiment: Annotated[str | None, typer.Option(help="Only for this experiment.")] = None,
    label: Annotated[str, typer.Option(help="Whose key it is. Events and the audit trail name it.")] = "",
    expires_in: Annotated[str | None, EXPIRES] = None,
    max_open: Annotated[
        int | None,
        typer.Option(min=1, help="No more decisions while so many that it asked for are open, in all experiments."),
    ] = None,
    rate: Annotated[float | None, typer.Option(min=0.001, help="Decisions and reports a second. More get 429.")] = None,
    store: Store = STORE,
) -> None:
    """Make a key and show it once. The store keeps only its hash."""
    require_extra()
    from belated.serve.domain.refusals import Refusal  # noqa: PLC0415
    from belated.serve.service import managing  # noqa: PLC0415
    from belated.serve.store.opening import open_journal, shown  # noqa: PLC0415

    notes = " The store is new. `belated serve --store` must name the same." if is_missing(store) else ""
    wish = managing.KeyWish(scope, label, experiment, lifetime(expires_in), max_open, rate)
    with closing(open_journal(store)) as journal:
        at = journal.now()
        try:
            made = managing.create(journal, wish, at, note(at, "belated keys create", experiment or ""))
        except Refusal as refusal:
            raise InvalidInput(refusal.detail) from None
        if experiment is not None and not journal.named([experiment]):
            notes += f" There is no experiment {experiment!r} yet."
    show(made.text, f"A key for the store {shown(store)}.{notes}")


def lifetime(text: str | None) -> float | None:
    """Read how long a key works, in seconds."""
    return None if text is None else seconds("--expires-in", text, 1)


def note(at: int, command: str, experiment: str = "") -> "Record":
    """Return the record of a command in the audit trail."""
    from belated.serve.service.trail import Kind, change  # noqa: PLC0415

    return change(Kind(command, 0, "(command line)", "", experiment), at, "")


def show(text: str, hint: str) -> None:
    """Print a new key alone on the standard output, so that a script can take it."""
    Console(stderr=True).print(f"{hint} It is shown only once.", soft_wrap=True, highlight=False)
    console.print(text, soft_wrap=True, highlight=False)


@keys.command("rotate")
def rotate_key(
    id: Annotated[str, typer.Argument(help="The id of the key, which is its part between the underscores.")],
    overlap: Annotated[str, typer.Option(help="How long the old key still works, such as 1d. 0s ends it now.")] = "1d",
    expires_in: Annotated[str | None, EXPIRES] = None,
    store: Store = STORE,
) -> None:
    """Make a key that may do the same as another one, and show it once. The other one ends after the overlap."""
    from belated.serve.domain.refusals import Refusal  # noqa: PLC0415
    from belated.serve.service import managing  # noqa: PLC0415

    pause, length = seconds("--overlap", overlap, 0), lifetime(expires_in)
    with closing(existing(store)) as journal:
        try:
            at = journal.now()
            made = managing.rotate(journal, id, pause, length, at, note(at, f"belated keys rotate {id}"))
        except Refusal as refusal:
            raise InvalidInput(refusal.detail) from None
    show(made.text, f"A key in place of {id}, which works for {overlap} more.")


@keys.command("list")
def list_keys(store: Store = STORE) -> None:
    """Show the keys, without their secrets."""
    from belated.serve.domain.timestamps import MICROSECONDS  # noqa: PLC0415
    from belated.serve.service.keys import grant_of, limits_of  # noqa: PLC0415

    header = ("id", "label", "scope", "experiment", "created", "expires", "last use", "revoked")
    rows = []
    with closing(existing(store)) as journal:
        known = journal.keys()
    for key in known:
        times = [
            "" if at is None else datetime.fromtimestamp(at / MICROSECONDS, UTC).strftime("%Y-%m-%d %H:%M")
            for at in (key.created_at, key.expires_at, key.used_at, key.revoked_at)
        ]
        limits = [f"{name}={value}" for name, value in limits_of(key).items() if name not in ("lifetime", "first")]
        scope = " ".join([grant_of(key).scope, *limits])
        rows.append((key.id, key.label, scope, key.experiment or "all", *times))
    print_cells(Table("", header, rows), console, texts=(1, 2, 3))


@keys.command("revoke")
def revoke_key(
    id: Annotated[str, typer.Argument(help="The id of the key, which is its part between the underscores.")],
    store: Store = STORE,
) -> None:
    """Refuse a key from now on."""
    with closing(existing(store)) as journal:
        at, known = journal.now(), journal.keys()
        experiment = next((key.experiment for key in known if key.id == id), None)
        is_revoked = journal.revoke_key(id, at, note(at, f"belated keys revoke {id}", experiment or ""))
    if not is_revoked:
        raise InvalidInput(f"there is no key {id!r}, or it is revoked already. `belated keys list` shows all")
    console.print(f"revoked {id}. A running service refuses it within a second", highlight=False)
