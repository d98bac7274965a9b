"""Moves decisions from a store in use into files."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from belated.errors import InvalidInput
from belated.serve.archive import choosing, files
from belated.serve.archive.choosing import Choice
from belated.serve.archive.files import Archived
from belated.serve.archive.settling import settle
from belated.serve.domain.fold import Fold
from belated.serve.domain.timestamps import now, shown
from belated.serve.store.journal import Journal
from belated.serve.store.removal import begin, put_base, remove

Progress = Callable[[str, int], object]  # called with what is done, and how many entries so far


class Wanted(NamedTuple):
    """What a caller wants to archive: closed experiments, all or by name, or decisions made before a time."""

    names: Sequence[str] = ()
    before: int | None = None  # microseconds since 1970


class NothingToArchive(InvalidInput):
    """There is nothing that could be archived now."""


def by_clock_of(journal: Journal, at: int) -> int:
    """Return a time that this machine's clock gave, but earlier if that is ahead of the store's clock, if it has one.

    So a wrong clock on this machine does not make decisions look old.
    """
    clock = journal.clock()
    return at if clock is None else at - max(0, now() - clock)


def choose(journal: Journal, fold: Fold, wanted: Wanted) -> Choice:
    """Choose what to archive. Raises NothingToArchive."""
    if wanted.before is None:
        choice = choosing.closed(journal, fold, wanted.names)
        missing = "no closed experiment has decisions in the store that could go"
    else:
        choice = choosing.older_than(journal, fold, wanted.before)
        missing = f"no decision that could go was made before {shown(wanted.before)}"
    if not choice.experiments:
        notes = [note[0].upper() + note[1:] for note in choice.notes]
        raise NothingToArchive(" ".join((f"there is nothing to archive: {missing}.", *notes)).rstrip("."))
    return choice


def counted(journal: Journal, choice: Choice) -> list[tuple[str, int, int]]:
    """Return how many decisions and entries of each experiment would go."""
    found = []
    for experiment in choice.experiments:
        made, told = files.chosen(journal, experiment, choice.what)
        decisions = sum(1 for _ in made)
        found.append((experiment.name, decisions, decisions + sum(1 for _ in told)))
    return found


def archive(
    journal: Journal, fold: Fold, choice: Choice, folder: Path, grace: float, progress: Progress
) -> tuple[list[Archived], int]:
    """Write the files, then remove what they hold. Returns the files, and how many entries were removed.

    Decisions without an outcome are settled before they go. That is noted after the base, so the next archive has it.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"the folder {folder} cannot be made: {error.strerror}. Nothing was archived") from None
    written = []
    for experiment in choice.experiments:
        written.append(files.write(folder, journal, experiment, choice.what))
        progress("writing", sum(one.entries for one in written))
    at = journal.now()
    base = put_base(journal, fold, at)
    for experiment in choice.experiments:  # after the files, so that a full disk costs no report
        made, _ = files.chosen(journal, experiment, choice.what)
        settle(journal, made, fold.tail.short_mark(), at)
    begin(journal, base, grace)
    return written, remove(journal, choice.what, lambda count: progress("removing", count))
