"""What the engine is asked to do, and what it answers: plain data, without HTTP."""

from typing import NamedTuple

import msgspec

from belated.serve.domain.experiment import Experiment
from belated.serve.domain.refusals import Refusal
from belated.serve.domain.settings import ArmChange, Settings


class Decided(NamedTuple):
    """A decision that is on disk."""

    id: str
    experiment: Experiment
    arm: str
    probability: float
    round: int
    at: int


class Answers(NamedTuple):
    """What one request for decisions got; `replayed` if an earlier one with the same key had got it."""

    decisions: list[Decided]
    replayed: bool


class Create(msgspec.Struct):
    """Begin an experiment; the answer is (experiment, whether anything has changed)."""

    settings: Settings


class ChangeArms(msgspec.Struct):
    """Add and retire arms; the answer is as for Create."""

    name: str
    change: ArmChange


class Close(msgspec.Struct):
    """No more decisions; the answer is as for Create."""

    name: str


class Decide(msgspec.Struct):
    """Draw `size` decisions; the answer is Answers."""

    name: str
    size: int = 1
    key: str | None = None


class Item(msgspec.Struct, frozen=True):
    """One report; `word` is what its sender called the outcome, reward or loss."""

    decision_id: str
    word: str
    value: float
    amend: bool = False


class Report(msgspec.Struct):
    """Outcomes of decisions; the answer is a status or a Refusal for each. `only`: the experiment the key is for."""

    items: list[Item]
    only: str | None = None


Request = Create | ChangeArms | Close | Decide | Report
Result = object | Refusal
