"""OpenFeature over OFREP 0.3: an experiment is a flag, its arms are the variants, and the targeting key is the subject.

An evaluation is a decision. It is on disk when it is answered, and the same subject gets the same one again.
"""

import asyncio
import hashlib
from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from belated.serve.domain.refusals import Refusal, RefusalKind
from belated.serve.domain.values import value_of
from belated.serve.http.calls import Answer, Call
from belated.serve.http.problem_documents import HTTPProblem, problem_of
from belated.serve.service.keys import check_experiment
from belated.serve.service.service import Service

MOST_FLAGS: Final = 100
ErrorCode = Literal["TARGETING_KEY_MISSING", "INVALID_CONTEXT", "PARSE_ERROR", "FLAG_NOT_FOUND", "GENERAL"]
CODES: Final[dict[RefusalKind, ErrorCode]] = {
    "not_found": "FLAG_NOT_FOUND",
    "invalid": "INVALID_CONTEXT",
    "failed": "GENERAL",
}  # of refusals that concern one flag. The others concern the whole request
NO_SUBJECT: Final = "context.targetingKey is missing. It says whom the decision is for, such as a user or a session."
WHICH_FLAGS: Final = (
    'name the experiments in context.flags, such as {"flags": ["checkout"]}. Each of them makes a decision, so they '
    "must be those that this app shows. Only a key for one experiment needs no names."
)


class Context(msgspec.Struct):
    """Whom a decision is for. Other attributes are not read."""

    targeting_key: Annotated[str, Meta(description="The subject, such as a user or session.")] | UnsetType = (
        msgspec.field(default=UNSET, name="targetingKey")
    )


class BulkContext(Context):
    """Whom decisions are for, and of which experiments."""

    flags: (
        Annotated[list[str], Meta(max_length=MOST_FLAGS, description="The experiments that the bulk form decides.")]
        | UnsetType
    ) = UNSET


class EvaluationRequest(msgspec.Struct):
    """What an OpenFeature provider sends."""

    context: Context | UnsetType = UNSET


class BulkEvaluationRequest(msgspec.Struct):
    """What an OpenFeature provider sends that evaluates all flags at once."""

    context: BulkContext | UnsetType = UNSET


class Metadata(msgspec.Struct):
    """What is known of an evaluation besides its value."""

    decision_id: Annotated[str, Meta(description="Report the outcome of this decision.")] | UnsetType = UNSET
    probability: Annotated[float, Meta(description="The probability with which it was drawn.")] | UnsetType = UNSET
    detail: Annotated[str, Meta(description="Why there is no value.")] | UnsetType = UNSET


class Evaluation(msgspec.Struct, omit_defaults=True):
    """The value of a flag. Without a value the provider shows the app's default."""

    key: str
    reason: Annotated[
        Literal["SPLIT", "STATIC", "DISABLED"],
        Meta(description="SPLIT if it was drawn, STATIC if there was no choice, DISABLED if there is no decision."),
    ]
    variant: Annotated[str, Meta(description="The arm. Empty if there is no decision.")]
    metadata: Metadata
    value: Annotated[Any, Meta(description="A string, number, boolean or object.")] = UNSET


class EvaluationFailure(msgspec.Struct, rename="camel"):
    """Why a flag has no value."""

    key: str
    error_code: ErrorCode
    error_details: str


EITHER: Final = {
    "items": {"anyOf": [{"$ref": f"#/components/schemas/{one.__name__}"} for one in (Evaluation, EvaluationFailure)]}
}  # msgspec knows no union of two objects without tags


class Evaluations(msgspec.Struct):
    """The flags of an app."""

    flags: Annotated[list[Any], Meta(description="Evaluations and failures.", extra_json_schema=EITHER)]


class EvaluationsFailure(msgspec.Struct, rename="camel"):
    """Why nothing was evaluated."""

    error_code: ErrorCode
    error_details: str


REQUEST: Final = msgspec.json.Decoder(EvaluationRequest)
BULK_REQUEST: Final = msgspec.json.Decoder(BulkEvaluationRequest)
C = TypeVar("C", bound=Context)
R = TypeVar("R", EvaluationRequest, BulkEvaluationRequest)


async def evaluate(call: Call) -> Answer:
    """Evaluate one flag. The same targeting key gets the same decision, which is on disk when it is answered."""
    name = call.name
    asked = await read(call, REQUEST)
    context = asked if isinstance(asked, EvaluationsFailure) else with_subject(asked.context)
    if isinstance(context, EvaluationsFailure):
        return Answer(400, EvaluationFailure(name, context.error_code, context.error_details))
    call.service.spend(call.grant, 1, name)
    evaluation = await evaluated(call, name, str(context.targeting_key))
    if isinstance(evaluation, Evaluation):
        return Answer(200, evaluation)
    return Answer(404 if evaluation.error_code == "FLAG_NOT_FOUND" else 400, evaluation)


async def evaluate_all(call: Call) -> Answer:
    """Evaluate the flags that the context names, once for all. If nothing has changed, the answer is 304."""
    asked = await read(call, BULK_REQUEST)
    context = asked if isinstance(asked, EvaluationsFailure) else with_subject(asked.context)
    if isinstance(context, EvaluationsFailure):
        return Answer(400, context)
    if context.flags is UNSET and call.grant.experiment is None:
        return Answer(400, EvaluationsFailure("INVALID_CONTEXT", WHICH_FLAGS))
    names = [call.grant.experiment or ""] if context.flags is UNSET else list(dict.fromkeys(context.flags))
    for name in names:
        check_experiment(call.grant, name)
    subject = str(context.targeting_key)
    tag = tag_of(call.service, names, subject)
    if tag in (call.header(b"if-none-match") or ""):
        return Answer(304, b"", {"ETag": tag})
    call.service.spend(call.grant, len(names), *names)  # at once, as a batch is admitted whole
    flags = await asyncio.gather(*(evaluated(call, name, subject) for name in names))
    return Answer(200, Evaluations(flags), {"ETag": tag})


async def read(call: Call, decode: "msgspec.json.Decoder[R]") -> R | EvaluationsFailure:
    """Read a request, or say what is wrong with it."""
    try:
        return await call.read(decode)
    except HTTPProblem as problem:
        if problem.status not in (400, 415):
            raise
        return EvaluationsFailure("PARSE_ERROR", problem.detail)
    except Refusal as refusal:
        return EvaluationsFailure("INVALID_CONTEXT", refusal.detail)


def with_subject(context: C | UnsetType) -> C | EvaluationsFailure:
    """Return a context that has a targeting key, or say that it has none."""
    if context is UNSET or not context.targeting_key:
        return EvaluationsFailure("TARGETING_KEY_MISSING", NO_SUBJECT)
    return context


async def evaluated(call: Call, name: str, subject: str) -> Evaluation | EvaluationFailure:
    """Return the value of a flag for a subject. Raises a Refusal if the whole request cannot be carried out."""
    try:
        answers = await call.service.ask(name, limit=call.grant.limit, subject=subject)
    except Refusal as refusal:
        if refusal.kind == "conflict":  # it makes no decisions now
            return Evaluation(name, "DISABLED", "", Metadata(detail=refusal.detail))
        if refusal.kind not in CODES:
            raise
        return EvaluationFailure(name, CODES[refusal.kind], problem_of(refusal).detail)
    [decision] = answers.decisions
    value = value_of(decision.experiment.values, decision.arm)
    reason = "STATIC" if decision.probability >= 1.0 else "SPLIT"
    return Evaluation(name, reason, decision.arm, Metadata(decision.id, decision.probability), value)  # type: ignore[arg-type]


def tag_of(service: Service, names: Sequence[str], subject: str) -> str:
    """Return an entity tag for the decisions of a subject. It costs no look at the store.

    A decision stays until its experiment is changed, and every change has a revision, or until some are archived or
    erased. That takes a while, so for an hour after it no tag lives for long. The tag is given only with the decisions.
    It is computed before them, so a change meanwhile makes it old.
    """
    revisions = [service.revision(name) for name in names]
    text = msgspec.json.encode([subject, names, revisions, service.removal_mark()])
    return f'"{hashlib.sha256(text).hexdigest()[:32]}"'
