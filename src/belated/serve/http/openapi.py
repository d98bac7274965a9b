"""OpenAPI 3.1, from the table of routes and the types of its documents."""

import re
from typing import Any

import msgspec

import belated
from belated.serve.http.calls import MAX_BODY, MAX_KEY
from belated.serve.http.documents import MAX_BATCH, MAX_PAGE
from belated.serve.http.problems import PROBLEM_MEDIA, TITLES, ProblemDocument
from belated.serve.http.routes import Route

REFERENCE = "#/components/schemas/{name}"
ABOUT = f"""Choose now, report whenever: decisions are on disk when they are answered, and feedback counts once.

A batch has at most {MAX_BATCH:,} items, a body {MAX_BODY:,} bytes. Errors are problem documents (RFC 9457). Retry a
decision with the same `Idempotency-Key` and it has one effect; a report is named by its decision and has one anyway."""


def document(routes: tuple[Route, ...]) -> dict[str, Any]:
    """The whole description."""
    types = [one for route in routes for one in (route.takes, *route.gives.values()) if isinstance(one, type)]
    _, components = msgspec.json.schema_components([*types, ProblemDocument], ref_template=REFERENCE)
    paths: dict[str, dict[str, Any]] = {}
    for route in sorted(routes, key=lambda one: one.summary != "Begin an experiment"):  # where a reader begins
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
    """One route."""
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
        described["security"] = [{}, {"key": []}]  # a service without keys asks for none
        described["description"] += f" Needs the scope `{route.scope}` if the service has keys."
    return described


def reference(type_: Any) -> dict[str, Any]:
    """Where a document is described."""
    return {"$ref": REFERENCE.format(name=type_.__name__)}


def parameters(route: Route) -> list[dict[str, Any]]:
    """In the path, the query and the headers."""
    found = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in re.findall(r"{(\w+)}", route.path)
    ]
    if route.is_paged:
        limit = {"type": "integer", "minimum": 1, "maximum": MAX_PAGE, "default": 100}
        cursor = {"type": "string", "pattern": "^[0-9]{1,18}$"}
        found.append({"name": "limit", "in": "query", "schema": limit})
        found.append({"name": "cursor", "in": "query", "schema": cursor, "description": "`next` of the page before."})
    if route.is_idempotent:
        key = {"type": "string", "minLength": 1, "maxLength": MAX_KEY}
        said = "The same key again gets the same decision."
        found.append({"name": "Idempotency-Key", "in": "header", "schema": key, "description": said})
    return found


def responses(route: Route) -> dict[str, Any]:
    """Every answer it may give."""
    answers: dict[str, Any] = {}
    for status, given in route.gives.items():
        is_text = isinstance(given, str)
        schema = {"type": "string"} if is_text else reference(given)
        media = given if is_text else "application/json"
        answers[str(status)] = {"description": "As asked.", "content": {media: {"schema": schema}}}
    guarded = (401, 403) if route.scope is not None else (403,)
    for status in sorted({*route.problems, *guarded}):
        content = {PROBLEM_MEDIA: {"schema": reference(ProblemDocument)}}
        answers[str(status)] = {"description": TITLES[status], "content": content}
    return answers
