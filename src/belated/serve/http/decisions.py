"""Handlers for decisions and outcomes."""

from typing import Final

import msgspec
from msgspec import UNSET
from starlette.concurrency import run_in_threadpool

from belated.serve.domain import aliases
from belated.serve.domain.messages import OutcomeReport, ReportStatus, SubjectStatus
from belated.serve.domain.refusals import Refusal
from belated.serve.http.calls import Answer, Call, experiment_of
from belated.serve.http.documents import (
    BatchOfDecisions,
    BatchOfFeedback,
    DecisionHistory,
    DecisionPage,
    Feedback,
    FeedbackOf,
    FeedbackResult,
    FeedbackResults,
    FeedbackStatus,
    NewDecision,
    NewDecisions,
    OutcomePage,
    SubjectFeedback,
    of_decided,
    of_found,
    of_outcome,
    of_reported,
)
from belated.serve.http.problem_documents import problem_of

SUBJECT: Final = msgspec.json.Decoder(NewDecision)
SIZE: Final = msgspec.json.Decoder(NewDecisions)
FEEDBACK: Final = msgspec.json.Decoder(Feedback)
SUBJECT_FEEDBACK: Final = msgspec.json.Decoder(SubjectFeedback)
BATCH: Final = msgspec.json.Decoder(BatchOfFeedback)
REPLAYED: Final = {"Idempotent-Replayed": "true"}


async def ask(call: Call) -> Answer:
    """Choose an arm. The decision is on disk when it is answered.

    The same subject gets the same decision, while its arm takes part.
    """
    subject = (await call.read(SUBJECT)).subject
    call.service.spend(call.grant, 1, call.name)
    if subject is UNSET:
        got = await call.service.ask(call.name, 1, call.idempotency_key(), call.grant.limit)
        return Answer(201, of_decided(got.decisions[0]), REPLAYED if got.replayed else {})
    got = await call.service.ask(call.name, limit=call.grant.limit, subject=subject)
    return Answer(201, of_decided(got.decisions[0], got.replayed))


async def ask_batch(call: Call) -> Answer:
    """Choose many times from one distribution, or once for each subject."""
    wanted = await call.read(SIZE)
    size, subjects = wanted.size, wanted.subjects
    if size is not UNSET and subjects is UNSET:
        call.service.spend(call.grant, size, call.name)
        got = await call.service.ask(call.name, size, call.idempotency_key(), call.grant.limit)
        documents = [of_decided(one) for one in got.decisions]
        return Answer(201, BatchOfDecisions(documents), REPLAYED if got.replayed else {})
    if subjects is not UNSET and size is UNSET:
        call.service.spend(call.grant, len(subjects), call.name)
        answers = await call.service.ask_for(call.name, subjects, call.grant.limit)
        return Answer(201, BatchOfDecisions([of_decided(one.decisions[0], one.replayed) for one in answers]))
    raise Refusal("invalid", "give either a size or subjects")


def report_of(
    feedback: Feedback, decision_id: str = "", experiment: str | None = None, subject: str | None = None
) -> OutcomeReport:
    """Turn a document into a report on a decision, or on that of a subject."""
    report_id = None if feedback.report_id is UNSET else aliases.checked("report_id", feedback.report_id)
    if subject is not None:
        aliases.checked("subject", subject)
    reward, loss = feedback.reward, feedback.loss
    if (reward is UNSET) == (loss is UNSET):
        raise Refusal("invalid", "give either a reward or a loss, as the experiment declares")
    if feedback.revision is not UNSET and not feedback.amend:
        raise Refusal("invalid", f'the revision {feedback.revision} is that of an amendment. Send "amend": true too.')
    revision = None if feedback.revision is UNSET else feedback.revision
    word, value = ("loss", loss) if reward is UNSET else ("reward", reward)
    value = float(value)  # type: ignore[arg-type]  # it is set
    return OutcomeReport(decision_id, word, value, feedback.amend, revision, report_id, experiment, subject)


async def tell(call: Call) -> Answer:
    """Report the outcome of a decision, whenever it is known."""
    return await _told(call, report_of(await call.read(FEEDBACK), call.path["decision_id"]))


async def tell_subject(call: Call) -> Answer:
    """Report the outcome of a subject's newest decision, whenever it is known."""
    feedback = await call.read(SUBJECT_FEEDBACK)
    return await _told(call, report_of(feedback, experiment=call.name, subject=feedback.subject))


async def _told(call: Call, one: OutcomeReport) -> Answer:
    call.service.spend(call.grant, 1)
    [status] = await call.service.tell([one], call.grant.experiment, call.caller)
    if isinstance(status, Refusal):
        raise problem_of(status)
    return Answer(200, FeedbackStatus(decision_of(one, status), status.status, status.revision))  # type: ignore[arg-type]


def decision_of(one: OutcomeReport, status: ReportStatus | SubjectStatus) -> str:
    """Return the id of the decision that a report was about."""
    return status.decision_id if isinstance(status, SubjectStatus) else one.decision_id


async def tell_batch(call: Call) -> Answer:
    """Report many outcomes. Each gets its own status or problem."""
    reports = [report_in_batch(one) for one in (await call.read(BATCH)).reports]
    call.service.spend(call.grant, len(reports))
    statuses = await call.service.tell(reports, call.grant.experiment, call.caller)
    return Answer(200, FeedbackResults([result(one, status) for one, status in zip(reports, statuses, strict=True)]))


def report_in_batch(one: FeedbackOf) -> OutcomeReport:
    """Turn a document of a batch into a report."""
    if one.decision_id is not UNSET and one.experiment is UNSET and one.subject is UNSET:
        return report_of(one, one.decision_id)
    if one.decision_id is UNSET and one.experiment is not UNSET and one.subject is not UNSET:
        return report_of(one, experiment=one.experiment, subject=one.subject)
    raise Refusal("invalid", "give each report either a decision_id, or an experiment and a subject")


def result(one: OutcomeReport, status: ReportStatus | SubjectStatus | Refusal) -> FeedbackResult:
    """Describe what became of one report in a batch."""
    if isinstance(status, Refusal):
        return FeedbackResult("problem", one.decision_id or None, problem_of(status).document())
    return FeedbackResult(status.status, decision_of(one, status), revision=status.revision)  # type: ignore[arg-type]


async def read_decision(call: Call) -> Answer:
    """Read one decision with its outcomes, oldest first."""
    first, limit = call.page()

    def read_history() -> DecisionHistory:
        record = call.service.decision(call.path["decision_id"], first, limit, call.grant.experiment, call.caller)
        document = of_found(record.experiment, record.found)
        outcomes = [one for entry in record.outcomes if (one := of_outcome(entry)) is not None]
        return DecisionHistory(**msgspec.structs.asdict(document), outcomes=outcomes, next=record.next)

    return Answer(200, await run_in_threadpool(read_history))


async def list_decisions(call: Call) -> Answer:
    """List decisions, oldest first."""
    experiment, (after, limit) = await experiment_of(call), call.page()

    def read_page() -> DecisionPage:
        page = call.service.lists.decisions(experiment, after, limit)
        return DecisionPage([of_found(experiment, found) for found in page.items], page.next, page.resume)

    return Answer(200, await run_in_threadpool(read_page))


async def list_outcomes(call: Call) -> Answer:
    """List outcomes, oldest first."""
    experiment, (after, limit) = await experiment_of(call), call.page()

    def read_page() -> OutcomePage:
        page = call.service.lists.outcomes(experiment, after, limit)
        return OutcomePage([of_reported(experiment, entry) for entry in page.items], page.next, page.resume)

    return Answer(200, await run_in_threadpool(read_page))
