"""What the engine is asked to do and what it answers, as plain data."""

from typing import NamedTuple, final

import msgspec

from belated.serve.domain.messages import Decided, OutcomeReport
from belated.serve.domain.refusals import Refusal
from belated.serve.domain.settings import ArmChange, Settings


class Answers(NamedTuple):
    """The decisions for one request. `replayed` if an earlier request with the same key got them first."""

    decisions: list[Decided]
    replayed: bool


class Create(msgspec.Struct):
    """Create an experiment. The answer is (experiment, whether anything has changed)."""

    settings: Settings


class ChangeArms(msgspec.Struct):
    """Add and retire arms. The answer is as for Create."""

    name: str
    change: ArmChange


class Close(msgspec.Struct):
    """Make no more decisions. The answer is as for Create."""

    name: str


class Ask(msgspec.Struct):
    """Draw `size` decisions. The answer is Answers. `max_open` is the limit of the caller's key, if it has one.

    With a subject the size is 1, and the answer is the decision that the subject has already, if its arm still takes
    part. The key then has no effect.
    """

    name: str
    size: int = 1
    key: str | None = None
    max_open: int | None = None
    subject: str | None = None


class Tell(msgspec.Struct):
    """Record outcomes. The answer has a status or a Refusal for each.

    `only` is the one experiment that the caller's key is for.
    """

    reports: list[OutcomeReport]
    only: str | None = None


@final
class Hidden(Exception):
    """A request needs an entry that is written, but that an open transaction of somebody else hides from `read`.

    `changed` names the experiment if the request itself has written the entry. Then only its answer has to wait.
    """

    def __init__(self, seq: int, changed: str | None = None) -> None:
        super().__init__(seq)
        self.seq, self.changed = seq, changed


Request = Create | ChangeArms | Close | Ask | Tell
Result = object | Refusal | Hidden
