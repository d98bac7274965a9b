"""Handlers for decisions and outcomes."""

from typing import Final

import msgspec
from msgspec import UNSET
from starlette.concurrency import run_in_threadpool

from belated.serve.domain.messages import OutcomeReport, ReportStatus
from belated.serve.domain.refusals import Refusal
from belated.serve.http.calls import NOTHING, Answer, Call, experiment_of
from belated.serve.http.documents import (
    BatchOfDecisions,
    BatchOfFeedback,
    DecisionHistory,
    DecisionPage,
    Feedback,
    FeedbackResult,
    FeedbackResults,
    FeedbackStatus,
    NewDecisions,
    OutcomePage,
    of_decided,
    of_found,
    of_outcome,
    of_reported,
)
from belated.serve.http.problem_documents import problem_of

SIZE: Final = msgspec.json.Decoder(NewDecisions)
FEEDBACK: Final = msgspec.json.Decoder(Feedback)
BATCH: Final = msgspec.json.Decoder(BatchOfFeedback)
REPLAYED: Final = {"Idempotent-Replayed": "true"}


async def ask(call: Call) -> Answer:
    """Choose an arm. The decision is on disk when it is answered."""
    await call.read(NOTHING)
    call.service.spend(call.grant, 1, call.name)
    got = await call.service.ask(call.name, 1, call.idempotency_key(), call.grant.max_open)
    return Answer(201, of_decided(got.decisions[0]), REPLAYED if got.replayed else {})


async def ask_batch(call: Call) -> Answer:
    """Choose many times from one distribution."""
    size = (await call.read(SIZE)).size
    call.service.spend(call.grant, size, call.name)
    got = await call.service.ask(call.name, size, call.idempotency_key(), call.grant.max_open)
    return Answer(201, BatchOfDecisions([of_decided(one) for one in got.decisions]), REPLAYED if got.replayed else {})


def report_of(decision_id: str, feedback: Feedback) -> OutcomeReport:
    """Turn a document into a report."""
    reward, loss = feedback.reward, feedback.loss
    if (reward is UNSET) == (loss is UNSET):
        raise Refusal("invalid", "give either a reward or a loss, as the experiment declares")
    if feedback.revision is not UNSET and not feedback.amend:
        raise Refusal("invalid", f'the revision {feedback.revision} is that of an amendment. Send "amend": true too.')
    revision = None if feedback.revision is UNSET else feedback.revision
    word, value = ("loss", loss) if reward is UNSET else ("reward", reward)
    return OutcomeReport(decision_id, word, float(value), feedback.amend, revision)  # type: ignore[arg-type]  # it is set


async def tell(call: Call) -> Answer:
    """Report the outcome of a decision, whenever it is known."""
    one = report_of(call.path["decision_id"], await call.read(FEEDBACK))
    call.service.spend(call.grant, 1)
    [status] = await call.service.tell([one], call.grant.experiment, call.caller)
    if isinstance(status, Refusal):
        raise problem_of(status)
    return Answer(200, FeedbackStatus(one.decision_id, *status))  # type: ignore[arg-type]


async def tell_batch(call: Call) -> Answer:
    """Report many outcomes. Each gets its own status or problem."""
    reports = [report_of(one.decision_id, one) for one in (await call.read(BATCH)).reports]
    call.service.spend(call.grant, len(reports))
    statuses = await call.service.tell(reports, call.grant.experiment, call.caller)
    return Answer(200, FeedbackResults([result(one, status) for one, status in zip(reports, statuses, strict=True)]))


def result(one: OutcomeReport, status: ReportStatus | Refusal) -> FeedbackResult:
    """Describe what became of one report in a batch."""
    if isinstance(status, Refusal):
        return FeedbackResult(one.decision_id, "problem", problem_of(status).document())
    return FeedbackResult(one.decision_id, status.status, revision=status.revision)  # type: ignore[arg-type]


async def read_decision(call: Call) -> Answer:
    """Read one decision with all its outcomes."""
    call.query()

    def read_history() -> DecisionHistory:
        record = call.service.decision(call.path["decision_id"], call.grant.experiment, call.caller)
        document = of_found(record.experiment, record.found)
        outcomes = [one for entry in record.outcomes if (one := of_outcome(entry)) is not None]
        return DecisionHistory(**msgspec.structs.asdict(document), outcomes=outcomes)

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
