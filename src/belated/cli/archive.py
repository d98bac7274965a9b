"""The command `belated archive`."""

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from belated.cli.application import app, console
from belated.cli.durations import DAY, seconds
from belated.cli.store_option import STORE, Store, existing
from belated.cli.stores import plural
from belated.errors import InvalidInput
from belated.progress import Progress

if TYPE_CHECKING:
    from belated.serve.archive.archiving import Wanted

GRACE = 5.0  # seconds
Grace = Annotated[
    float,
    typer.Option(min=0.0, help="Seconds that running servers get to notice. One that takes longer must be restarted."),
]


def say(text: str) -> None:
    """Print a sentence."""
    console.print(text, soft_wrap=True, highlight=False, markup=False)


@app.command()
def archive(
    to: Annotated[Path, typer.Option(help="The folder for the files. It is created if it is missing.")],
    experiment: Annotated[
        list[str] | None, typer.Option(help="A closed experiment. Repeat it for more. Without it, all closed ones.")
    ] = None,
    older_than: Annotated[
        str | None,
        typer.Option(help="Archive decisions of all experiments that are older, such as 90d, instead of closed ones."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be archived.")] = False,
    grace: Grace = GRACE,
    store: Store = STORE,
) -> None:
    """Move closed experiments, or old decisions, from a store in use into Parquet files that `belated replay` reads."""
    wanted = _wanted(experiment or [], older_than)
    with closing(existing(store)) as journal:
        from belated.serve.archive import archiving  # noqa: PLC0415
        from belated.serve.store.removal import loaded  # noqa: PLC0415

        if wanted.before is not None:
            wanted = wanted._replace(before=archiving.by_clock_of(journal, wanted.before))
        fold = loaded(journal)
        try:
            choice = archiving.choose(journal, fold, wanted)
        except archiving.NothingToArchive as nothing:
            say(f"{str(nothing)[0].upper()}{str(nothing)[1:]}.")
            return
        for note in choice.notes:
            say(note[0].upper() + note[1:])
        counts = archiving.counted(journal, choice)
        total = sum(entries for _, _, entries in counts)
        if dry_run:
            for name, n_decisions, n_entries in counts:
                say(
                    f"{name}: {plural(n_decisions, 'decision')} would be archived, "
                    f"with {plural(n_entries, 'entry')} in all"
                )
            return
        with Progress("archiving", 2 * total) as progress:

            def advance(step: str, done: int) -> None:
                progress.reach(done + (total if step == "removing" else 0))

            written, removed = archiving.archive(journal, fold, choice, to, grace, advance)
    for files in written:
        for file in files.files:
            say(f"wrote {file}")
    n_decisions = sum(one.decisions for one in written)
    gone = f"archived {plural(n_decisions, 'decision')} and removed {plural(removed, 'entry')}"
    say(f"{gone}. Reports of these decisions are refused from now on, so none counts as open any more.")


def _wanted(names: list[str], older_than: str | None) -> "Wanted":
    """Read the options. Decisions keep their Idempotency-Keys for a day at least."""
    from belated.serve.archive.archiving import Wanted  # noqa: PLC0415
    from belated.serve.domain.timestamps import MICROSECONDS, now  # noqa: PLC0415

    if older_than is None:
        return Wanted(names)
    if names:
        raise InvalidInput("--older-than takes decisions of all experiments. Leave out --experiment, or --older-than")
    return Wanted(before=now() - seconds("--older-than", older_than, DAY) * MICROSECONDS)
