"""The documents that callers send and get."""

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from belated.serve.domain import aliases, ids
from belated.serve.domain.entries import Entry, EntryKind, Found
from belated.serve.domain.experiment import Experiment
from belated.serve.domain.messages import Decided
from belated.serve.domain.operating import Policy, noted
from belated.serve.domain.settings import MAX_NAME, ArmName
from belated.serve.domain.timestamps import iso, iso_or_none
from belated.serve.http.problem_documents import ProblemDocument
from belated.serve.service.descriptions import ArmDetails, Event, ExperimentSummary

MAX_BATCH: Final = 10_000
MAX_PAGE: Final = 1_000

DecisionIdText = Annotated[str, Meta(description="A UUID.", max_length=100)]
Subject = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=aliases.LONGEST,
        description="A user, session or device. The same one gets the same decision.",
    ),
]
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

    policy: Annotated[
        Literal["learner", "holdout", "frozen", "winner"],
        Meta(description="Who chose. Decisions with `frozen` or `winner` teach nothing."),
    ]
    outcome: OutcomeDocument | None


class DecisionHistory(KnownDecision):
    """A decision with a page of its outcomes, oldest first."""

    outcomes: list[OutcomeDocument]
    next: Annotated[str, Meta(description="The cursor of the next page. null on the last page.")] | None


class AnsweredDecision(DecisionDocument):
    """A decision, and of a subject whether it had the decision before."""

    repeated: Annotated[bool, Meta(description="Only with a subject.")] | UnsetType = UNSET


class BatchOfDecisions(msgspec.Struct):
    """Decisions drawn together, or in the order of the subjects."""

    decisions: list[AnsweredDecision]


class Nothing(msgspec.Struct, forbid_unknown_fields=True):
    """An empty body."""


class Freeze(msgspec.Struct, forbid_unknown_fields=True):
    """The arm to show to all."""

    arm: Annotated[ArmName, Meta(description="null means the best one so far.")] | None = None


class End(msgspec.Struct, forbid_unknown_fields=True):
    """The arm to show from now on."""

    winner: Annotated[ArmName, Meta(description="null means the best one so far.")] | None = None


class NewDecision(msgspec.Struct, forbid_unknown_fields=True):
    """Whom a decision is for. Without a subject it is for nobody in particular."""

    subject: Subject | UnsetType = UNSET


class NewDecisions(msgspec.Struct, forbid_unknown_fields=True):
    """How many decisions, or whom they are for."""

    size: Annotated[int, Meta(ge=1, le=MAX_BATCH)] | UnsetType = UNSET
    subjects: (
        Annotated[list[Subject], Meta(min_length=1, max_length=MAX_BATCH, description="One decision for each.")]
        | UnsetType
    ) = UNSET


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
    report_id: (
        Annotated[
            str,
            Meta(
                min_length=1,
                max_length=aliases.LONGEST,
                description="Your own id of this outcome, such as the number of an order. The same one counts once in "
                "an experiment. Needed where several outcomes add up.",
            ),
        ]
        | UnsetType
    ) = UNSET


class SubjectFeedback(Feedback, kw_only=True):
    """The outcome of a subject's decision."""

    subject: Subject


class FeedbackOf(Feedback, kw_only=True):
    """The outcome of one decision in a batch. Name the decision, or an experiment and a subject."""

    decision_id: DecisionIdText | UnsetType = UNSET
    experiment: Annotated[str, Meta(max_length=MAX_NAME)] | UnsetType = UNSET
    subject: Subject | UnsetType = UNSET


class BatchOfFeedback(msgspec.Struct, forbid_unknown_fields=True):
    """Outcomes of many decisions."""

    reports: Annotated[list[FeedbackOf], Meta(min_length=1, max_length=MAX_BATCH)]


class FeedbackStatus(msgspec.Struct):
    """What became of a report. It is on disk."""

    decision_id: str
    status: Annotated[
        Literal["applied", "duplicate", "amended", "superseded", "late", "added", "ignored"],
        Meta(
            description="applied means it counts. duplicate means it was reported before. amended means it replaced an "
            "earlier report. superseded means that a later amendment was made already, so it changed nothing. late "
            "means it came after the wait and replaced the default. added means it joined earlier outcomes of the "
            "decision. ignored means that only the first one counts."
        ),
    ]
    revision: Annotated[int, Meta(description="The revision of the outcome that is in force.")]


class FeedbackResult(msgspec.Struct, omit_defaults=True):
    """What became of one report in a batch, a status or a problem."""

    status: Literal["applied", "duplicate", "amended", "superseded", "late", "added", "ignored", "problem"]
    decision_id: str | None = None  # of a subject only if it has one
    problem: ProblemDocument | None = None
    revision: int | None = None


class FeedbackResults(msgspec.Struct):
    """The results in the order of the reports."""

    results: list[FeedbackResult]


class ReportedOutcome(OutcomeDocument):
    """An outcome in an experiment's list of outcomes."""

    decision_id: DecisionIdText
    arm: str


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
POLICIES: Final[dict[int | None, str]] = {
    None: "learner",
    Policy.HOLDOUT: "holdout",
    Policy.FROZEN: "frozen",
    Policy.WINNER: "winner",
}


def of_decided(one: Decided, repeated: bool | UnsetType = UNSET) -> AnsweredDecision:
    """Describe a new decision."""
    expires, at = iso_or_none(one.experiment.expires_at(one.at)), iso(one.at)
    return AnsweredDecision(one.id, one.experiment.name, one.arm, one.probability, one.round, at, expires, repeated)


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
    told: Any = POLICIES[one.policy], of_outcome(found.outcome)
    return KnownDecision(id_of(one), experiment.name, arm, *drawn, expires, *told)


def of_reported(experiment: Experiment, entry: Entry) -> ReportedOutcome:
    """Describe an outcome together with its decision."""
    id = ids.encode(entry.decided_at or 0, entry.decision or 0, entry.nonce or 0)
    return ReportedOutcome(*_outcome(entry), id, experiment.arms[entry.arm or 0])


def of_event(entry: Entry) -> Event:
    """Describe something that happened to an experiment."""
    one = noted(entry)
    return Event(one.event, iso(entry.at), one.by or None, msgspec.json.decode(entry.body or b"{}"))
