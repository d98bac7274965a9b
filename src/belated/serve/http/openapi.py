"""Builds the OpenAPI 3.1 description from the table of routes and the document types."""

import re
from typing import Any

import msgspec

import belated
from belated.serve.http.calls import MAX_BODY, MAX_KEY
from belated.serve.http.documents import MAX_BATCH, MAX_PAGE
from belated.serve.http.problem_documents import PROBLEM_MEDIA, TITLES, ProblemDocument
from belated.serve.http.routes import Route

REFERENCE = "#/components/schemas/{name}"
ABOUT = f"""Ask for a decision now, and report its outcome later.

Decisions are on disk when they are answered. A report counts once. A batch has at most {MAX_BATCH:,} items, and a body
has at most {MAX_BODY:,} bytes. Errors are problem documents (RFC 9457). To retry a decision safely, send the same
`Idempotency-Key`. A report is always safe to retry, because its decision identifies it. So is an amendment that names
the revision it replaces, and a report with a `report_id`. A request with a `subject` needs no `Idempotency-Key`. Never
use that as the id of a user."""


def document(routes: tuple[Route, ...]) -> dict[str, Any]:
    """Return the whole description."""
    types = [
        one
        for route in routes
        for one in (route.takes, *route.gives.values(), *route.fails.values())
        if isinstance(one, type)
    ]
    _, components = msgspec.json.schema_components([*types, ProblemDocument], ref_template=REFERENCE)
    paths: dict[str, dict[str, Any]] = {}
    for route in sorted(
        routes, key=lambda one: one.summary != "Create an experiment"
    ):  # which is where a reader begins
        paths.setdefault(route.path, {})[route.method.lower()] = operation(route)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Belated", "version": belated.__version__, "description": ABOUT},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer", "description": "belated keys create"}},
        },
    }


def operation(route: Route) -> dict[str, Any]:
    """Describe one route."""
    described: dict[str, Any] = {
        "summary": route.summary,
        "description": route.handler.__doc__,
        "operationId": route.handler.__name__,
        "parameters": parameters(route),
        "responses": responses(route),
    }
    if route.takes is not None:
        content = {"schema": reference(route.takes), "examples": {"usual": {"value": route.example}}}
        described["requestBody"] = {"required": bool(route.example), "content": {"application/json": content}}
    if route.scope is not None:
        described["security"] = [{}, {"key": []}]  # a service without keys needs none
        described["description"] += f" Needs the scope `{route.scope}` if the service has keys."
    return described


def reference(type_: Any) -> dict[str, Any]:
    """Return a reference to a document's schema."""
    return {"$ref": REFERENCE.format(name=type_.__name__)}


def parameters(route: Route) -> list[dict[str, Any]]:
    """Describe the parameters in the path, the query and the headers."""
    found = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in re.findall(r"{(\w+)}", route.path)
    ]
    if route.is_paged:
        limit = {"type": "integer", "minimum": 1, "maximum": MAX_PAGE, "default": 100}
        cursor = {"type": "string", "pattern": "^[0-9]{1,18}$"}
        found.append({"name": "limit", "in": "query", "schema": limit})
        found.append({"name": "cursor", "in": "query", "schema": cursor, "description": "`next` of the previous page."})
    found += route.query
    if route.is_idempotent:
        key = {"type": "string", "minLength": 1, "maxLength": MAX_KEY}
        said = "Sending the same key again returns the same decision."
        found.append({"name": "Idempotency-Key", "in": "header", "schema": key, "description": said})
    return found


def responses(route: Route) -> dict[str, Any]:
    """Describe every possible answer."""
    answers: dict[str, Any] = {}
    for status, failure in route.fails.items():
        content = {"application/json": {"schema": reference(failure)}}
        answers[str(status)] = {"description": TITLES[status], "content": content}
    for status, given in route.gives.items():
        if given is None:
            answers[str(status)] = {"description": "Nothing has changed."}
            continue
        is_text = isinstance(given, str)
        schema = {"type": "string"} if is_text else reference(given)
        media = given if is_text else "application/json"
        answers[str(status)] = {"description": "Success.", "content": {media: {"schema": schema}}}
    guarded = (401, 403) if route.scope is not None else (403,)
    for status in sorted({*route.problems, *guarded}):
        content = {PROBLEM_MEDIA: {"schema": reference(ProblemDocument)}}
        answers[str(status)] = {"description": TITLES[status], "content": content}
        if status in (429, 503):
            seconds = {"schema": {"type": "integer"}, "description": "Seconds, if the same request may succeed later."}
            answers[str(status)]["headers"] = {"Retry-After": seconds}
    return answers
