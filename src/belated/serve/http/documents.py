"""The documents that callers send and get."""

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from belated.serve.domain import ids
from belated.serve.domain.entries import Entry, EntryKind, Found
from belated.serve.domain.experiment import Experiment
from belated.serve.domain.messages import Decided
from belated.serve.domain.timestamps import iso, iso_or_none
from belated.serve.http.problem_documents import ProblemDocument
from belated.serve.service.descriptions import ArmDetails, ExperimentSummary

MAX_BATCH: Final = 10_000
MAX_PAGE: Final = 1_000

DecisionIdText = Annotated[str, Meta(description="A UUID.", max_length=100)]
Probability = Annotated[float, Meta(gt=0, le=1, description="The probability of drawing this arm. Log it.")]


class DecisionDocument(msgspec.Struct):
    """A decision."""

    decision_id: DecisionIdText
    experiment: str
    arm: str
    probability: Probability
    round: int
    decided_at: str
    expires_at: Annotated[str, Meta(description="When the wait for its outcome ends.")] | None


class OutcomeDocument(msgspec.Struct):
    """The outcome of a decision."""

    status: Literal["reported", "expired", "late", "amended", "removed"]
    value: (
        Annotated[float, Meta(description="In the experiment's units. null if the wait ended without a default.")]
        | None
    )
    at: str
    revision: Annotated[int, Meta(description="0 for the first outcome, then 1, 2, ...")]


class KnownDecision(DecisionDocument):
    """A decision and its newest outcome."""

    outcome: OutcomeDocument | None


class DecisionHistory(KnownDecision):
    """A decision with all its outcomes, oldest first."""

    outcomes: list[OutcomeDocument]


class BatchOfDecisions(msgspec.Struct):
    """Decisions drawn together."""

    decisions: list[DecisionDocument]


class NewDecision(msgspec.Struct, forbid_unknown_fields=True):
    """An empty body."""


class NewDecisions(msgspec.Struct, forbid_unknown_fields=True):
    """How many decisions."""

    size: Annotated[int, Meta(ge=1, le=MAX_BATCH)]


class Feedback(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """An outcome as a reward or a loss, as the experiment declares, in its units."""

    reward: float | UnsetType = UNSET
    loss: float | UnsetType = UNSET
    amend: Annotated[bool, Meta(description="Replace an outcome that was reported before.")] = False
    revision: (
        Annotated[
            int,
            Meta(
                ge=0,
                description="The revision of the outcome that an amendment replaces, as the last answer said. A "
                "delayed copy of the amendment then changes nothing. Needed to amend an outcome a second time.",
            ),
        ]
        | UnsetType
    ) = UNSET


class FeedbackOf(Feedback, kw_only=True):
    """The outcome of one decision in a batch."""

    decision_id: DecisionIdText


class BatchOfFeedback(msgspec.Struct, forbid_unknown_fields=True):
    """Outcomes of many decisions."""

    reports: Annotated[list[FeedbackOf], Meta(min_length=1, max_length=MAX_BATCH)]


class FeedbackStatus(msgspec.Struct):
    """What became of a report. It is on disk."""

    decision_id: str
    status: Annotated[
        Literal["applied", "duplicate", "amended", "superseded", "late"],
        Meta(
            description="applied means it counts. duplicate means it was reported before. amended means it replaced an "
            "earlier report. superseded means that a later amendment was made already, so it changed nothing. late "
            "means it came after the wait and replaced the default."
        ),
    ]
    revision: Annotated[int, Meta(description="The revision of the outcome that is in force.")]


class FeedbackResult(msgspec.Struct, omit_defaults=True):
    """What became of one report in a batch, a status or a problem."""

    decision_id: str
    status: Literal["applied", "duplicate", "amended", "superseded", "late", "problem"]
    problem: ProblemDocument | None = None
    revision: int | None = None


class FeedbackResults(msgspec.Struct):
    """The results in the order of the reports."""

    results: list[FeedbackResult]


class ReportedOutcome(OutcomeDocument):
    """An outcome in an experiment's list of outcomes."""

    decision_id: DecisionIdText
    arm: str


class Event(msgspec.Struct):
    """Something that happened to the experiment itself."""

    event: Literal["created", "arms", "closed"]
    at: str
    details: msgspec.Raw


class ExperimentPage(msgspec.Struct):
    """A page of experiments."""

    experiments: list[ExperimentSummary]
    next: Annotated[str, Meta(description="The cursor of the next page. null on the last page.")] | None


class ArmPage(msgspec.Struct):
    """A page of arms, in the order in which they came."""

    arms: list[ArmDetails]
    next: str | None


Resume = Annotated[
    str, Meta(description="A cursor to keep. A later request goes on from here, also after the last page.")
]


class DecisionPage(msgspec.Struct):
    """A page of decisions, oldest first."""

    decisions: list[KnownDecision]
    next: str | None
    resume: Resume


class OutcomePage(msgspec.Struct):
    """A page of outcomes, oldest first."""

    outcomes: list[ReportedOutcome]
    next: str | None
    resume: Resume


class EventPage(msgspec.Struct):
    """A page of events, oldest first."""

    events: list[Event]
    next: str | None
    resume: Resume


class Health(msgspec.Struct):
    """The health of the service."""

    status: Literal["ok"]


OUTCOME_STATUSES: Final = {
    EntryKind.REPORTED: "reported",
    EntryKind.EXPIRED: "expired",
    EntryKind.LATE: "late",
    EntryKind.AMENDED: "amended",
    EntryKind.REMOVED: "removed",
}
EVENTS: Final = {EntryKind.CREATED: "created", EntryKind.ARMS: "arms", EntryKind.CLOSED: "closed"}


def of_decided(one: Decided) -> DecisionDocument:
    """Describe a new decision."""
    expires = iso_or_none(one.experiment.expires_at(one.at))
    return DecisionDocument(one.id, one.experiment.name, one.arm, one.probability, one.round, iso(one.at), expires)


def id_of(decision: Entry) -> str:
    """Return the id of a decision in the journal."""
    return ids.encode(decision.at, decision.seq, decision.nonce or 0)


def of_outcome(entry: Entry | None) -> OutcomeDocument | None:
    """Describe an outcome."""
    return None if entry is None else OutcomeDocument(*_outcome(entry))


def _outcome(entry: Entry) -> tuple[Any, float | None, str, int]:
    return OUTCOME_STATUSES[entry.kind], entry.value, iso(entry.at), entry.revision or 0


def of_found(experiment: Experiment, found: Found) -> KnownDecision:
    """Describe a decision from the journal."""
    one = found.decision
    arm, expires = experiment.arms[one.arm or 0], iso_or_none(experiment.expires_at(one.at))
    drawn = one.probability or 0.0, one.round or 0, iso(one.at)
    return KnownDecision(id_of(one), experiment.name, arm, *drawn, expires, of_outcome(found.outcome))


def of_reported(experiment: Experiment, entry: Entry) -> ReportedOutcome:
    """Describe an outcome together with its decision."""
    id = ids.encode(entry.decided_at or 0, entry.decision or 0, entry.nonce or 0)
    return ReportedOutcome(*_outcome(entry), id, experiment.arms[entry.arm or 0])


def of_event(entry: Entry) -> Event:
    """Describe something that happened to an experiment."""
    return Event(EVENTS[entry.kind], iso(entry.at), msgspec.Raw(entry.body or b"{}"))  # type: ignore[arg-type]
