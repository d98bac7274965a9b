"""What the engine is asked to do and what it answers, as plain data."""

from contextvars import Context
from typing import NamedTuple, final

import msgspec

from belated.serve.domain.messages import Decided, OutcomeReport
from belated.serve.domain.operating import Operation
from belated.serve.domain.quotas import OpenLimit
from belated.serve.domain.refusals import Refusal
from belated.serve.domain.settings import ArmChange, Settings


class Answers(NamedTuple):
    """The decisions for one request. `replayed` if an earlier request with the same key or subject got them first."""

    decisions: list[Decided]
    replayed: bool


class Create(msgspec.Struct):
    """Create an experiment. The answer is (experiment, whether anything has changed)."""

    settings: Settings
    by: str = ""  # the key of the caller, if it has one
    context: Context = msgspec.field(default_factory=Context)  # of the caller, so that the log names its request


class ChangeArms(msgspec.Struct):
    """Add and retire arms. The answer is as for Create."""

    name: str
    change: ArmChange
    by: str = ""
    context: Context = msgspec.field(default_factory=Context)


class Close(msgspec.Struct):
    """Make no more decisions. The answer is as for Create."""

    name: str
    by: str = ""
    context: Context = msgspec.field(default_factory=Context)


class Operate(msgspec.Struct):
    """Pause, resume, freeze, unfreeze, end or edit an experiment. The answer is as for Create.

    Without an arm, a freeze and an end take the best one.
    """

    name: str
    operation: Operation
    by: str = ""
    context: Context = msgspec.field(default_factory=Context)


class Ask(msgspec.Struct):
    """Draw `size` decisions. The answer is Answers. `limit` is that of the caller's key, if it has one.

    With a subject the size is 1 and there is no key. The answer is the decision that the subject has already, if its
    arm still takes part.
    """

    name: str
    size: int = 1
    key: str | None = None
    limit: OpenLimit | None = None
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


Change = Create | ChangeArms | Close | Operate
Request = Change | Ask | Tell
Result = object | Refusal | Hidden
