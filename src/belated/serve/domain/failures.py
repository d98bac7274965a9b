"""Experiments that have failed, because an entry of theirs cannot be applied.

A failure is the experiment's own. It is frozen and refuses requests, and all others go on. The mark depends only on the
journal and the release, not on how the journal was split into pages. So all servers agree on it.
"""

from collections.abc import Sequence

import msgspec

from belated import __version__
from belated.errors import SnapshotError, StoreError
from belated.serve.domain.entries import Entry, EntryKind
from belated.serve.domain.refusals import Refusal
from belated.serve.domain.settings import Settings, stored_settings


class OtherRelease(SnapshotError):
    """A snapshot that may be sound, but that only the release which made it can use."""


class Failure(msgspec.Struct, frozen=True):
    """What could not be applied. It names no single decision, because decisions are entered in batches."""

    what: str
    entry: int
    release: str = __version__  # another release may be able to apply it

    def __str__(self) -> str:
        return f"{self.what} entry {self.entry} cannot be applied"

    def check_release(self) -> None:
        """Raise OtherRelease if another release has failed. Only the journal says whether this one does too."""
        if self.release != __version__:
            raise OtherRelease(f"an experiment has failed in release {self.release}")


def failure_of(entries: Sequence[Entry]) -> Failure:
    """Return the mark of an experiment to which these entries of one kind cannot be applied."""
    first = entries[0]
    match first.kind:
        case EntryKind.DECIDED:  # all decisions of a batch have the same `seen`, wherever a page ends
            return Failure("the decisions drawn after", first.seen or 0)
        case EntryKind.CREATED:
            return Failure("its creation at", first.seq)
        case EntryKind.ARMS:
            return Failure("the change of arms at", first.seq)
        case EntryKind.OPERATED:
            return Failure("the operation at", first.seq)
        case EntryKind.CLOSED:
            return Failure("its end at", first.seq)
        case _:
            return Failure("the outcome at", first.seq)


def failed(name: str, failure: Failure, hint: str = "") -> Refusal:
    """Return the refusal of a request to an experiment that has failed."""
    state = f"the experiment {name!r} has failed, because {failure}"
    return Refusal("failed", f"{state}. Only another release of Belated can repair it.{hint}")


def undecided(name: str) -> Refusal:
    """Return the refusal of decisions by a learner that fails, although all entries were applied."""
    return Refusal("failed", f"the experiment {name!r} cannot decide, because its learner fails. The log has more.")


class _Named(msgspec.Struct):
    name: str
    arms: list[str]


def readable_settings(created: Entry) -> Settings:
    """Return what can be read of an experiment's settings. A StoreError if not even its name can be read."""
    try:
        return stored_settings(created.body or b"")
    except (msgspec.MsgspecError, AttributeError, TypeError):
        try:
            named = msgspec.json.decode(created.body or b"", type=_Named)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise StoreError(f"entry {created.seq} creates an experiment without a name: {error}") from error
        return Settings(named.name, named.arms)
