"""`belated migrate` and `belated copy`: where the journal is kept."""

from contextlib import closing
from typing import Annotated

import typer

from belated.cli.application import app, console
from belated.cli.serve import STORE, Store, existing, extra, progress_bar


@app.command()
def migrate(store: Store = STORE) -> None:
    """Make the tables of a store, or bring them to this release. It may be interrupted and run again."""
    extra()
    from belated.serve.store import opening as stores  # noqa: PLC0415

    steps = 0
    for steps, step in enumerate(stores.migrate(store), 1):  # noqa: B007
        console.print(f"{stores.shown(store)}: {step}", soft_wrap=True, highlight=False)
    if not steps:
        console.print(f"{stores.shown(store)}: nothing to do", soft_wrap=True, highlight=False)


@app.command()
def copy(
    source: Annotated[str, typer.Argument(help="The store to copy: a file, or a postgresql:// URL; it may be in use.")],
    destination: Annotated[
        str, typer.Argument(help="An empty one: a new file, or a database after `belated migrate`.")
    ],
) -> None:
    """Copy a store into an empty one: entries with their places, snapshots and keys, all or nothing."""
    extra()
    from belated.serve.store import opening as stores  # noqa: PLC0415
    from belated.serve.store.copy import copy as copy_store  # noqa: PLC0415

    with (
        closing(existing(source)) as one,
        closing(stores.open_journal(destination)) as other,
        progress_bar("copying", one.last()) as progress,
    ):
        copied = copy_store(one, other, progress)
    console.print(
        f"{copied.entries:,} entries, {copied.snapshots} snapshots and {copied.keys} keys are in "
        f"{stores.shown(destination)} now; `belated verify --store ...` compares them with what they fold to",
        soft_wrap=True,
        highlight=False,
    )
