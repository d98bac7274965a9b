"""The table of routes: method, path, handler, scope and documentation."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from belated.serve.domain import ids
from belated.serve.domain.operating import Edit
from belated.serve.domain.refusals import Refusal
from belated.serve.domain.settings import ArmChange, Settings
from belated.serve.http import auditing, decisions, experiments, exports, key_routes, live, ofrep
from belated.serve.http import documents as d
from belated.serve.http.calls import Answer, Call, Handler
from belated.serve.service.descriptions import ExperimentView, StoreView
from belated.serve.service.keys import Scope, check_unrestricted

EXPERIMENT: Final = "/v1/experiments/{name}"
FLAGS: Final = "/ofrep/v1/evaluate/flags"
DECISION: Final = "/v1/decisions/{decision_id}"
WRITING: Final = (413, 415, 503)
COUNTED: Final = (*WRITING, 429)  # by the quotas


class Route(NamedTuple):
    """One operation of the API."""

    method: str
    path: str
    handler: Handler
    scope: Scope | None  # None if it needs no key
    summary: str
    gives: dict[int, Any]  # by status, a document's type or a media type
    takes: Any = None
    example: Any = None  # of the body it takes
    problems: tuple[int, ...] = ()
    fails: Mapping[int, Any] = MappingProxyType({})  # by status, documents of failures
    is_paged: bool = False
    is_idempotent: bool = False  # takes an Idempotency-Key
    query: tuple[dict[str, Any], ...] = ()  # its other parameters, as OpenAPI describes them


async def healthy(call: Call) -> Answer:
    """Check that the process runs. After 503 only a restart helps."""
    if call.service.is_hopeless():
        raise Refusal("unavailable", "the store has failed, and this process ends soon")
    return Answer(200, d.Health("ok"))


async def ready(call: Call) -> Answer:
    """Check that decisions and reports are accepted."""
    if call.service.is_stopping:
        raise Refusal("unavailable", "the service is stopping")
    if (refusal := call.service.refusal()) is not None:  # don't expose the cause to unauthenticated callers
        raise Refusal("unavailable", "the store cannot be written", refusal.retry_after)
    return Answer(200, d.Health("ok"))


async def store(call: Call) -> Answer:
    """Read the health of the store."""
    call.query()
    check_unrestricted(call.grant)
    return Answer(200, call.service.store_view())


EVALUATE: Final = {"context": {"targetingKey": "user-17"}}
EVALUATE_ALL: Final = {"context": {"targetingKey": "user-17", "flags": ["example"]}}
LAYOUT: Final = {
    "name": "layout",
    "arms": ["blue", "green", "red"],
    "outcome": {"lowest": 0, "highest": 1, "better": "higher"},
    "reward_wait": 86400,
    "default_outcome": 0,
}
AFTER: Final = {
    "name": "after", "in": "query", "schema": {"type": "string", "pattern": f"^{ids.FORM.pattern}$"},
    "description": "The decision_id of the last row that you have. Goes on after it, in CSV without a header.",
}  # fmt: skip
LIMIT: Final = {
    "name": "limit", "in": "query", "schema": {"type": "integer", "minimum": 1, "maximum": exports.MOST_ROWS},
    "description": "At most so many decisions. Without it you get all.",
}  # fmt: skip
CURSOR: Final = {
    "name": "cursor", "in": "query", "schema": {"type": "string", "pattern": "^[0-9]{1,18}$"},
    "description": "The header Belated-Cursor of an earlier export. Gives decisions that were made or got an outcome "
    "after it. Not together with after or limit.",
}  # fmt: skip
FROM, TO = (
    {
        "name": name, "in": "query", "schema": {"type": "string", "format": "date-time"},
        "description": f"Only decisions made {said} this time, such as 2026-01-31T12:00:00Z.",
    }
    for name, said in (("from", "at or after"), ("to", "before"))
)  # fmt: skip
EXPORTED: Final = (AFTER, LIMIT, CURSOR, FROM, TO)
DIFFERENCES: Final = {
    "name": "differences", "in": "query", "schema": {"type": "string", "enum": ["true", "false"], "default": "false"},
    "description": "Whether events after the first are JSON Patches (RFC 6902) instead of whole documents.",
}  # fmt: skip
CSV, PARQUET, STREAM = "text/csv", "application/vnd.apache.parquet", live.STREAM
ROUTES: Final = (  # the busiest first, because they are tried in order
    Route(
        *("POST", f"{EXPERIMENT}/decisions", decisions.ask, "decide", "Choose an arm"),
        {201: d.AnsweredDecision}, d.NewDecision, {}, (400, 404, 409, 422, *COUNTED), is_idempotent=True,
    ),
    Route(
        *("POST", f"{DECISION}/feedback", decisions.tell, "report", "Report the outcome of a decision"),
        {200: d.FeedbackStatus}, d.Feedback, {"reward": 1}, (400, 404, 409, 422, *COUNTED),
    ),
    Route(
        *("POST", f"{EXPERIMENT}/decisions/batch", decisions.ask_batch, "decide", "Choose many times at once"),
        {201: d.BatchOfDecisions}, d.NewDecisions, {"size": 100}, (400, 404, 409, 422, *COUNTED), is_idempotent=True,
    ),
    Route(
        *("POST", "/v1/feedback", decisions.tell_batch, "report", "Report the outcomes of many decisions"),
        {200: d.FeedbackResults}, d.BatchOfFeedback,
        {"reports": [{"decision_id": "00000000-0000-8a12-9f3b-0c5be2bdf86b", "reward": 1}]}, (400, 422, *COUNTED),
    ),
    Route(
        *("POST", f"{EXPERIMENT}/feedback", decisions.tell_subject, "report", "Report the outcome of a subject"),
        {200: d.FeedbackStatus}, d.SubjectFeedback, {"subject": "user-17", "reward": 1}, (400, 404, 409, 422, *COUNTED),
    ),
    Route(
        *("POST", f"{FLAGS}/{{name}}", ofrep.evaluate, "decide", "Evaluate a flag of OpenFeature"),
        {200: ofrep.Evaluation}, ofrep.EvaluationRequest, EVALUATE, COUNTED,
        fails={400: ofrep.EvaluationFailure, 404: ofrep.EvaluationFailure},
    ),
    Route(
        *("POST", FLAGS, ofrep.evaluate_all, "decide", "Evaluate flags of OpenFeature for an app"),
        {200: ofrep.Evaluations, 304: None}, ofrep.BulkEvaluationRequest, EVALUATE_ALL, COUNTED,
        fails={400: ofrep.EvaluationsFailure},
    ),
    Route("GET", "/healthz", healthy, None, "Check that the process runs", {200: d.Health}, problems=(503,)),
    Route("GET", "/readyz", ready, None, "Check that decisions are accepted", {200: d.Health}, problems=(503,)),
    Route(
        *("POST", "/v1/experiments", experiments.create, "admin", "Create an experiment"),
        {201: ExperimentView, 200: ExperimentView}, Settings, LAYOUT, (400, 409, 422, *COUNTED),
    ),
    Route(
        *("GET", "/v1/experiments", experiments.list_all, "read", "List experiments"),
        {200: d.ExperimentPage}, problems=(422,), is_paged=True,
    ),
    Route(
        *("GET", EXPERIMENT, experiments.read, "read", "Read an experiment"),
        {200: ExperimentView}, problems=(404, 422),
    ),
    Route(
        *("POST", f"{EXPERIMENT}/arms", experiments.change_arms, "admin", "Add and retire arms"),
        {200: ExperimentView}, ArmChange, {"add": ["violet"], "retire": ["red"]}, (400, 404, 409, 422, *COUNTED),
    ),
    Route(
        *("GET", f"{EXPERIMENT}/arms", experiments.list_arms, "read", "List all arms"),
        {200: d.ArmPage}, problems=(404, 422), is_paged=True,
    ),
    Route(
        *("POST", f"{EXPERIMENT}/pause", experiments.pause, "admin", "Make no decisions for a while"),
        {200: ExperimentView}, d.NewDecision, {}, (400, 404, 409, 422, *WRITING),
    ),
    Route(
        *("POST", f"{EXPERIMENT}/resume", experiments.resume, "admin", "Go on after a pause"),
        {200: ExperimentView}, d.NewDecision, {}, (400, 404, 409, 422, *WRITING),
    ),
    Route(
        *("POST", f"{EXPERIMENT}/freeze", experiments.freeze, "admin", "Show one arm to all, without learning"),
        {200: ExperimentView}, d.Freeze, {"arm": "blue"}, (400, 404, 409, 422, *WRITING),
    ),
    Route(
        *("POST", f"{EXPERIMENT}/unfreeze", experiments.unfreeze, "admin", "Go on with learning"),
        {200: ExperimentView}, d.NewDecision, {}, (400, 404, 409, 422, *WRITING),
    ),
    Route(
        *("POST", f"{EXPERIMENT}/edit", experiments.edit_settings, "admin", "Change settings while it runs"),
        {200: ExperimentView}, Edit, {"floor": 0.05}, (400, 404, 409, 422, *WRITING),
    ),
    Route(
        *("POST", f"{EXPERIMENT}/end", experiments.end, "admin", "End with a winner that is shown from then on"),
        {200: ExperimentView}, d.End, {"winner": "blue"}, (400, 404, 409, 422, *WRITING),
    ),
    Route(
        *("POST", f"{EXPERIMENT}/close", experiments.close, "admin", "Make no more decisions"),
        {200: ExperimentView}, d.Nothing, {}, (400, 404, 422, *WRITING),
    ),
    Route(
        *("GET", f"{EXPERIMENT}/decisions", decisions.list_decisions, "read", "List decisions"),
        {200: d.DecisionPage}, problems=(404, 410, 422), is_paged=True,
    ),
    Route(
        *("GET", f"{EXPERIMENT}/feedback", decisions.list_outcomes, "read", "List outcomes"),
        {200: d.OutcomePage}, problems=(404, 410, 422), is_paged=True,
    ),
    Route(
        *("GET", f"{EXPERIMENT}/events", experiments.list_events, "read", "List what happened to the experiment"),
        {200: d.EventPage}, problems=(404, 422), is_paged=True,
    ),
    Route(
        *("GET", f"{EXPERIMENT}/export.csv", exports.to_csv, "read", "Download all decisions as CSV"),
        {200: CSV}, problems=(404, 410, 422, 429), query=EXPORTED,
    ),
    Route(
        *("GET", f"{EXPERIMENT}/export.parquet", exports.to_parquet, "read", "Download all decisions as Parquet"),
        {200: PARQUET}, problems=(404, 410, 422, 429), query=EXPORTED,
    ),
    Route(
        *("GET", f"{EXPERIMENT}/live", live.watch, "read", "Stream an experiment"),
        {200: STREAM}, problems=(404, 422, 429), query=(DIFFERENCES,),
    ),
    Route(
        *("GET", "/v1/live", live.watch_all, "read", "Stream the list of experiments"),
        {200: STREAM}, problems=(422, 429), query=(DIFFERENCES,),
    ),
    Route(
        *("GET", DECISION, decisions.read_decision, "read", "Read a decision and its outcomes"),
        {200: d.DecisionHistory}, problems=(404, 422, 429), is_paged=True,
    ),
    Route(
        *("POST", key_routes.KEYS, key_routes.create_key, "admin", "Create a key"),
        {201: key_routes.CreatedKey}, key_routes.NewKey,
        {"label": "checkout web", "scopes": ["decide", "report"], "experiment": "layout"}, (400, 422, *COUNTED),
    ),
    Route("GET", key_routes.KEYS, key_routes.list_keys, "admin", "List keys", {200: key_routes.KeyList}, problems=(422,)),  # noqa: E501
    Route(
        *("POST", f"{key_routes.KEY}/rotate", key_routes.rotate_key, "admin", "Replace a key"),
        {201: key_routes.CreatedKey}, key_routes.Rotation, {"overlap": 86400}, (400, 404, 409, 422, *COUNTED),
    ),
    Route(
        *("POST", f"{key_routes.KEY}/revoke", key_routes.revoke_key, "admin", "Revoke a key"),
        {200: key_routes.KeyDocument}, d.NewDecision, {}, (400, 404, 422, *WRITING),
    ),
    Route(
        *("GET", "/v1/audit", auditing.audit, "admin", "Read who changed what, and who was refused"),
        {200: auditing.AuditPage}, problems=(422, 503), is_paged=True,
    ),
    Route("GET", "/v1/store", store, "read", "Read the health of the store", {200: StoreView}, problems=(422,)),
)  # fmt: skip
