"""Decisions and feedback."""

from collections.abc import Callable
from typing import Final, TypeVar

import msgspec
from msgspec import UNSET
from starlette.concurrency import run_in_threadpool

from belated.serve.domain import ids
from belated.serve.domain.entries import Entry, Found
from belated.serve.domain.experiment import Experiment
from belated.serve.domain.refusals import Refusal
from belated.serve.engine.feedback import is_of, look_up
from belated.serve.engine.requests import Answers, Decide, Item, Report
from belated.serve.http.calls import Answer, Call
from belated.serve.http.documents import (
    STATUSES,
    BatchOfDecisions,
    BatchOfFeedback,
    DecisionHistory,
    DecisionPage,
    Feedback,
    FeedbackResult,
    FeedbackResults,
    FeedbackStatus,
    KnownDecision,
    NewDecision,
    NewDecisions,
    OutcomePage,
    ReportedOutcome,
    of_decided,
    of_found,
    of_outcome,
)
from belated.serve.http.problems import problem_of
from belated.serve.service.service import Service
from belated.serve.service.views import iso
from belated.serve.store.journal import Journal

T = TypeVar("T")
NOTHING: Final = msgspec.json.Decoder(NewDecision)
SIZE: Final = msgspec.json.Decoder(NewDecisions)
FEEDBACK: Final = msgspec.json.Decoder(Feedback)
BATCH: Final = msgspec.json.Decoder(BatchOfFeedback)
REPLAYED: Final = {"Idempotent-Replayed": "true"}


async def decide(call: Call) -> Answer:
    """Choose an arm. On disk when answered."""
    await call.read(NOTHING)
    got: Answers = await call.service.writer.submit(Decide(call.name, 1, call.idempotency_key()))
    return Answer(201, of_decided(got.decisions[0]), REPLAYED if got.replayed else {})


async def decide_batch(call: Call) -> Answer:
    """Choose many times from one distribution."""
    size = (await call.read(SIZE)).size
    got: Answers = await call.service.writer.submit(Decide(call.name, size, call.idempotency_key()))
    return Answer(201, BatchOfDecisions([of_decided(one) for one in got.decisions]), REPLAYED if got.replayed else {})


def item(decision_id: str, feedback: Feedback) -> Item:
    """A report from its document."""
    reward, loss = feedback.reward, feedback.loss
    if (reward is UNSET) == (loss is UNSET):
        raise Refusal("invalid", "give a reward or a loss, whichever the experiment declares")
    if reward is not UNSET:
        return Item(decision_id, "reward", float(reward), feedback.amend)
    return Item(decision_id, "loss", float(loss), feedback.amend)  # type: ignore[arg-type]  # one of them is set


async def report(call: Call) -> Answer:
    """Tell the outcome of a decision, whenever it is known."""
    one = item(call.path["decision_id"], await call.read(FEEDBACK))
    [status] = await call.service.writer.submit(Report([one], call.grant.experiment))
    if isinstance(status, Refusal):
        raise status
    return Answer(200, FeedbackStatus(one.decision_id, status))


async def report_batch(call: Call) -> Answer:
    """Tell many outcomes; each gets a status or a problem of its own."""
    items = [item(one.decision_id, one) for one in (await call.read(BATCH)).reports]
    statuses = await call.service.writer.submit(Report(items, call.grant.experiment))
    return Answer(200, FeedbackResults([result(one, status) for one, status in zip(items, statuses, strict=True)]))


def result(one: Item, status: "str | Refusal") -> FeedbackResult:
    """What became of one report of a batch."""
    if isinstance(status, Refusal):
        return FeedbackResult(one.decision_id, "problem", problem_of(status).document())
    return FeedbackResult(one.decision_id, status)  # type: ignore[arg-type]


def known(experiment: Experiment, found: Found) -> KnownDecision:
    """A decision from the journal as a document."""
    arm = experiment.arms[found.decision.arm or 0]
    return of_found(found, experiment.name, arm, experiment.expires_at(found.decision.at))


async def read_decision(call: Call) -> Answer:
    """One decision and all that was said about its outcome."""
    call.query()

    def find() -> DecisionHistory:
        service, id = call.service, call.path["decision_id"]
        found, outcomes = service.ask(lambda reader: told_of(id, reader))
        if found is not None:
            service.require_decision(found.decision)
        if found is None or not is_of(call.grant.experiment, found.decision, service.engine.fold):
            raise Refusal("not_found", f"there is no decision {id!r}")
        document = known(service.engine.fold.experiments[found.decision.experiment], found)
        said = [one for entry in outcomes if (one := of_outcome(entry)) is not None]
        return DecisionHistory(**msgspec.structs.asdict(document), outcomes=said)

    return Answer(200, await run_in_threadpool(find))


def told_of(decision_id: str, journal: Journal) -> tuple[Found | None, list[Entry]]:
    """A decision and its outcomes."""
    [found] = look_up([decision_id], journal)
    return found, [] if found is None else journal.history(found.decision.seq)


async def experiment_of(service: Service, name: str) -> Experiment:
    """By name; the event loop does not wait for the store."""
    return service.find(name) if service.knows(name) else await run_in_threadpool(service.find, name)


def folded(page: list[T], service: Service, seq: Callable[[T], int]) -> list[T]:
    """What this server has folded: beyond that an entry may still appear before another, and a page would miss it."""
    return [one for one in page if seq(one) <= service.engine.fold.seq]


async def list_decisions(call: Call) -> Answer:
    """A page of decisions, oldest first."""
    experiment, (after, limit) = await experiment_of(call.service, call.name), call.page()

    def find() -> DecisionPage:
        page = call.service.ask(lambda reader: reader.decisions(experiment.seq, after, limit + 1))
        page = folded(page, call.service, lambda found: found.decision.seq)
        more = str(page[limit - 1].decision.seq) if len(page) > limit else None
        return DecisionPage([known(experiment, found) for found in page[:limit]], more)

    return Answer(200, await run_in_threadpool(find))


async def list_outcomes(call: Call) -> Answer:
    """A page of outcomes, oldest first."""
    experiment, (after, limit) = await experiment_of(call.service, call.name), call.page()

    def find() -> OutcomePage:
        page = call.service.ask(lambda reader: reader.outcomes(experiment.seq, after, limit + 1))
        page = folded(page, call.service, lambda entry: entry.seq)
        more = str(page[limit - 1].seq) if len(page) > limit else None
        outcomes = []
        for entry in page[:limit]:
            id = ids.encode(entry.decided_at or 0, entry.decision or 0, entry.nonce or 0)
            said = STATUSES[entry.kind], entry.value, iso(entry.at)
            outcomes.append(ReportedOutcome(*said, id, experiment.arms[entry.arm or 0]))  # type: ignore[arg-type]
        return OutcomePage(outcomes, more)

    return Answer(200, await run_in_threadpool(find))
