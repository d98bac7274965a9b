"""The command `belated erase`."""

from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from belated.cli.application import app
from belated.cli.archive import GRACE, Grace, say
from belated.cli.store_option import STORE, Store, existing
from belated.cli.stores import plural
from belated.errors import InvalidInput
from belated.progress import Progress


@app.command()
def erase(
    ids: Annotated[list[str] | None, typer.Argument(help="The ids of the decisions.", show_default=False)] = None,
    from_file: Annotated[Path | None, typer.Option("--from", help="A file with one id in each line.")] = None,
    subject: Annotated[list[str] | None, typer.Option(help="Erase all decisions of this subject. Repeatable.")] = None,
    archive: Annotated[Path | None, typer.Option(help="Erase them from the files in this archive, too.")] = None,
    grace: Grace = GRACE,
    no_scrub: Annotated[
        bool, typer.Option("--no-scrub", help="Leave traces in unused parts of a SQLite file, so that nobody waits.")
    ] = False,
    store: Store = STORE,
) -> None:
    """Erase decisions and all that was said about them, from a store in use. The state of experiments stays."""
    given = [*(ids or ()), *_lines(from_file)]
    if not given and not subject:
        raise InvalidInput("name the ids of decisions to erase, a file that has them with --from, or a --subject")
    with closing(existing(store)) as journal:
        from belated.serve.archive import erasing  # noqa: PLC0415
        from belated.serve.store.removal import loaded  # noqa: PLC0415

        if archive is not None:
            erasing.check_files(archive)  # before anything is erased
        own = erasing.of_subjects(journal, loaded(journal), subject, archive) if subject else []
        wanted = erasing.decoded([*given, *own])
        before = erasing.known(journal, wanted)
        with Progress("erasing", len(before.seqs)) as progress:
            removed = erasing.erase(journal, wanted, grace, progress.reach)
        rows = erasing.erase_from_files(archive, wanted) if archive is not None else {}
        if not no_scrub:
            journal.scrub()
        again = erasing.of_subjects(journal, loaded(journal), subject) if subject else []
    say(f"erased {plural(len(before.seqs), 'decision')} with {plural(removed, 'entry')} from the store")
    for path, count in rows.items():
        say(f"erased {plural(count, 'row')} from {path}")
    if before.open:
        say(f"{before.open:,} of them had no outcome. They no longer count as open.")
    if before.unknown and not rows:
        where = "nor in the archive" if archive is not None else "but may be in an archive, which --archive names"
        say(f"{plural(len(before.unknown), 'id')} not in the store, {where}: {', '.join(before.unknown)}")
    if subject and not own:
        say("There is no decision of this subject. Was it spelled as in the requests?")
    if again:
        say(f"{plural(len(again), 'decision')} of these subjects came meanwhile. Run the command again.")
    if no_scrub:
        say("Traces may be left in the files of the store. Run the command again without --no-scrub.")


def _lines(path: Path | None) -> list[str]:
    """Read the ids in a file."""
    if path is None:
        return []
    try:
        return path.read_text().split()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"the ids in {path} cannot be read: {error}") from None
