"""What callers of the service send and get, as plain data: reports and decisions."""

from typing import NamedTuple

import msgspec

from belated.serve.domain.experiment import Experiment


class Decided(NamedTuple):
    """A decision that is on disk."""

    id: str
    experiment: Experiment
    arm: str
    probability: float
    round: int
    at: int


class ReportStatus(NamedTuple):
    """What became of a report, and the revision of its decision's outcome that is in force now."""

    status: str
    revision: int


class SubjectStatus(NamedTuple):
    """The same of a report by subject. It also says the decision."""

    status: str
    revision: int
    decision_id: str


class OutcomeReport(msgspec.Struct, frozen=True):
    """The outcome of one decision. `word` is what its sender called it: reward, loss or parts.

    An amendment may say which `revision` of the outcome it replaces. With a `subject`, the decision is the newest one
    of this subject in `experiment`, and `decision_id` is empty. A `report_id` says what is the same report again.
    """

    decision_id: str
    word: str
    value: float
    amend: bool = False
    revision: int | None = None
    report_id: str | None = None
    experiment: str | None = None
    subject: str | None = None
    parts: dict[str, float] | None = None  # in place of the value
