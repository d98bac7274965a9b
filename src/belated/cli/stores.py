"""The commands `belated migrate`, `belated copy`, `belated restore` and `belated verify`."""

from contextlib import closing
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from belated.cli.application import app, console
from belated.cli.store_option import STORE, Store, StoreFile, existing, is_missing, require_extra
from belated.progress import Progress, while_busy

if TYPE_CHECKING:
    from belated.serve.store.journal import Base
    from belated.serve.store.verify import VerifyResult

NEW_FILE = "there was no such file. This is a new and empty store"


@app.command()
def migrate(store: Store = STORE) -> None:
    """Create the tables of a store, or update them to this release. Safe to interrupt and run again."""
    require_extra()
    from belated.serve.store import opening as stores  # noqa: PLC0415

    steps, is_new = 0, is_missing(store)
    for steps, step in enumerate(stores.migrate(store), 1):
        if steps == 1 and is_new:
            console.print(f"{stores.shown(store)}: {NEW_FILE}", soft_wrap=True, highlight=False)
        console.print(f"{stores.shown(store)}: {step}", soft_wrap=True, highlight=False)
    if not steps:
        console.print(f"{stores.shown(store)}: nothing to do", soft_wrap=True, highlight=False)


@app.command()
def copy(
    source: Annotated[str, typer.Argument(help="The store to copy. A file, or a postgresql:// URL. It may be in use.")],
    destination: Annotated[
        str, typer.Argument(help="An empty store. A new file, or a database after `belated migrate`.")
    ],
) -> None:
    """Copy entries, snapshots and keys into an empty store, in one transaction. Entries keep their numbers."""
    require_extra()
    from belated.serve.store import opening as stores  # noqa: PLC0415
    from belated.serve.store.copy import copy as copy_store  # noqa: PLC0415

    with (
        closing(existing(source)) as one,
        closing(stores.open_journal(destination)) as other,
        Progress("copying", one.last()) as progress,
    ):
        copied = copy_store(one, other, progress.reach)
    console.print(
        f"copied {copied.entries:,} entries, {copied.snapshots} snapshots and {copied.keys} keys to "
        f"{stores.shown(destination)}. Check them with `belated verify --store ...`",
        soft_wrap=True,
        highlight=False,
    )


@app.command()
def restore(
    backup: Annotated[str, typer.Argument(help="A copy of a SQLite store, made with `belated copy` or `.backup`.")],
    store: StoreFile = STORE,
) -> None:
    """Put a backup in the place of a SQLite store. The store that was there keeps its data under another name."""
    require_extra()
    from belated.serve.store import opening as stores  # noqa: PLC0415

    with while_busy("restoring"):
        kept = stores.restore(backup, store)
    before = "" if kept is None else f" The store that was there is now {kept}."
    console.print(
        f"restored {store} from {backup}.{before} Check it with `belated verify --store {store}`",
        soft_wrap=True,
        highlight=False,
    )


def plural(count: int, word: str) -> str:
    """Say how many there are of something."""
    words = word if count == 1 else f"{word[:-1]}ies" if word.endswith("y") else f"{word}s"
    return f"{count:,} {words}"


def found(verdict: "VerifyResult") -> str:
    """Say what the comparison with the snapshots has shown."""
    n = verdict.snapshots
    if n:
        what = "DIFFERENT" if verdict.problems else "the same, bit for bit"
        return f"{plural(n, 'snapshot')} compared: {what}"
    what = "DAMAGED" if verdict.problems else "no damage found"
    return f"no snapshot of this release to compare: {what}"


def said_of_base(base: "Base", left: int) -> str:
    """Say what was not folded again."""
    from belated.serve.domain.timestamps import shown  # noqa: PLC0415

    return (
        f"The state after entry {base.seq:,} was written on {shown(base.at)} by Belated {base.release}, and is whole. "
        f"Entries before it were archived or erased, so they were not folded again. {left:,} of them are left."
    )


@app.command()
def verify(store: Store = STORE) -> None:
    """Rebuild the state from the journal and compare it bit for bit with what was saved. Exit code 1 if they differ."""
    require_extra()
    from belated.serve.store import verify as verification  # noqa: PLC0415

    with closing(existing(store)) as journal, Progress("folding", journal.last()) as progress:
        verdict = verification.verify(journal, progress.reach)
    for problem in verdict.problems:
        console.print(Text(problem, "bold red"), soft_wrap=True)
    since = "" if verdict.base is None else f" after the saved state of entry {verdict.base.seq:,}"
    console.print(
        f"{plural(verdict.entries, 'entry')}{since}, {plural(verdict.decisions, 'decision')}, {found(verdict)}",
        soft_wrap=True,
        highlight=False,
    )
    if verdict.base is not None:
        console.print(said_of_base(verdict.base, verdict.left), soft_wrap=True, highlight=False)
    if verdict.unchecked:
        note = f"{verdict.unchecked:,} decisions were drawn from states that are too old to check their probabilities"
        console.print(note, soft_wrap=True, highlight=False)
    if verdict.problems:
        raise typer.Exit(1)
