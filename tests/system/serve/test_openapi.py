"""Every answer matches the OpenAPI document, for generated requests that are valid or invalid."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import msgspec
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.config import SchemathesisConfig
from schemathesis.specs.openapi import checks

from belated.serve.http import openapi
from belated.serve.http.documents import BatchOfFeedback
from belated.serve.http.problem_documents import TITLES
from belated.serve.http.routes import ROUTES, Route
from tests.support.service import NO_TLS, Served

CHECKS = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
    checks.response_headers_conformance,
    checks.negative_data_rejection,
]
FINITE = [route for route in ROUTES if not route.path.endswith("/live")]  # test_live.py tests the streams
NEGATABLE = [route for route in FINITE if route.takes is not None or route.is_paged]  # others take any text
BY_NAME = {route.handler.__name__: route for route in FINITE}
OFTEN = hypothesis_settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)

TOO_LARGE = 413
SUBJECT = "user-17"


class World:
    """A service with an experiment, decisions and its own description."""

    def __init__(self, served: Served) -> None:
        self.served = served
        made = served.post(
            "/v1/keys", {"scopes": ["admin"]}
        ).json()  # some requests create keys, after which all need one
        self.by = {"Authorization": f"Bearer {made['key']}"}
        wish = {"scopes": ["read"]}
        self.kept, self.ending = (served.post("/v1/keys", wish, **self.by).json()["id"] for _ in range(2))
        for name in ("seeded", "closing", "ending"):
            settings = {"name": name, "arms": ["blue", "green", "red"], "reward_wait": 3600}
            assert served.post("/v1/experiments", settings, **self.by).status_code == 201
        made = served.post("/v1/experiments/seeded/decisions/batch", {"size": 500}, **self.by).json()["decisions"]
        self.decisions = [one["decision_id"] for one in made]
        served.post("/v1/experiments/seeded/decisions", {"subject": SUBJECT}, **self.by).raise_for_status()
        ending = served.post("/v1/experiments/ending/decisions", **self.by).json()["decision_id"]
        assert served.post(f"/v1/decisions/{ending}/feedback", {"reward": 1}, **self.by).status_code == 200
        config = SchemathesisConfig.from_dict({"seed": 1})
        self.schema = schemathesis.openapi.from_url(f"{served.url}/openapi.json", config=config)

    def use_existing(self, case: Any, decision: int) -> None:
        """Replace generated names and ids by existing ones."""
        ends = {"close": "closing", "end": "ending"}  # others need it open
        name = ends.get(case.operation.path.rpartition("/")[2], "seeded")
        key = self.ending if case.operation.path.endswith("/revoke") else self.kept
        known = {"name": name, "decision_id": self.decisions[decision], "key_id": key}
        for parameter in case.path_parameters or {}:
            case.path_parameters[parameter] = known[parameter]
        if isinstance(case.body, dict) and isinstance(case.body.get("subject"), str):
            case.body["subject"] = SUBJECT
        if isinstance(case.body, dict) and isinstance(case.body.get("reports"), list):
            for number, one in enumerate(case.body["reports"]):
                if isinstance(one, dict) and isinstance(one.get("decision_id"), str):
                    one["decision_id"] = self.decisions[(decision + number) % len(self.decisions)]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with Served(tmp_path_factory.mktemp("service")) as served:
        yield World(served)
        assert "unexpected" not in (served.folder / "service.log").read_text()


@pytest.mark.parametrize("name", BY_NAME)
def test_every_answer_to_a_sensible_request_is_as_described(world: World, name: str) -> None:
    statuses = answers(world, BY_NAME[name], GenerationMode.POSITIVE)
    assert statuses & set(BY_NAME[name].gives), f"never succeeded: {statuses}"


@pytest.mark.parametrize("name", [route.handler.__name__ for route in NEGATABLE])
def test_every_answer_to_a_senseless_request_is_as_described(world: World, name: str) -> None:
    assert answers(world, BY_NAME[name], GenerationMode.NEGATIVE) & {400, 404, 422}


def answers(world: World, route: Route, mode: GenerationMode) -> set[int]:
    """Send many generated requests and check each answer. Half of them name existing things. Returns the statuses."""
    operation = world.schema[route.path][route.method]
    statuses: set[int] = set()

    @OFTEN
    @given(case=operation.as_strategy(generation_mode=mode), is_placed=st.booleans(), decision=st.integers(0, 499))
    def run(case: Any, is_placed: bool, decision: int) -> None:
        if is_placed:
            world.use_existing(case, decision)
        answer = case.call(timeout=30, headers=world.by)
        is_any = is_placed or answer.status_code == TOO_LARGE  # 10,001 long reports are refused for their size
        applied = [check for check in CHECKS if not (is_any and check is checks.negative_data_rejection)]
        case.validate_response(answer, checks=applied, headers=world.by)
        statuses.add(answer.status_code)

    run()
    return statuses


def test_every_example_works(world: World) -> None:
    """Each example runs unchanged, after the things that it names are created."""
    described = world.served.get("/openapi.json").json()
    sent = 0
    for route in ROUTES:
        body = described["paths"][route.path][route.method.lower()].get("requestBody")
        if body is None:
            continue
        for example in body["content"]["application/json"]["examples"].values():
            key = world.served.post("/v1/keys", {"scopes": ["read"]}, **world.by).json()["id"]
            path = route.path.format(name="example", decision_id=world.decisions[-1], key_id=key)
            if "{name}" in route.path:
                world.served.post("/v1/experiments", {"name": "example", "arms": ["blue", "red"]}, **world.by)
            if path.endswith("example/feedback"):
                who = {"subject": example["value"]["subject"]}
                world.served.post("/v1/experiments/example/decisions", who, **world.by)
            answer = world.served.post(path, example["value"], **world.by)
            assert answer.status_code in route.gives, answer.text
            msgspec.convert(answer.json(), route.gives[answer.status_code])
            sent += 1
    assert sent == sum(route.takes is not None for route in ROUTES) > 5


def test_the_description_names_every_route_and_only_what_is_there() -> None:
    described = openapi.document(ROUTES)
    found = {(method.upper(), path) for path, methods in described["paths"].items() for method in methods}
    assert found == {(route.method, route.path) for route in ROUTES}
    names = [operation["operationId"] for methods in described["paths"].values() for operation in methods.values()]
    assert len(set(names)) == len(names)
    assert {"ask", "ask_batch", "tell", "tell_batch"} <= set(names)
    references = set(find_references(described))
    assert references == {f"#/components/schemas/{name}" for name in described["components"]["schemas"]}


def find_references(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        for key, value in part.items():
            if key == "$ref":
                yield value
            yield from find_references(value)
    elif isinstance(part, list):
        for value in part:
            yield from find_references(value)


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_every_problem_of_a_route_has_a_title(route: Route) -> None:
    assert set(route.problems) <= set(TITLES)
    assert route.handler.__doc__
    if route.takes is not None:
        msgspec.json.decode(json.dumps(route.example), type=route.takes)


def test_the_document_is_valid_and_served_to_anyone(world: World) -> None:
    answer = httpx.get(f"{world.served.url}/openapi.json", verify=NO_TLS)
    assert answer.headers["content-type"] == "application/json"
    assert answer.json() == json.loads(msgspec.json.encode(openapi.document(ROUTES)))
    world.schema.validate()
    assert BatchOfFeedback.__name__ in answer.json()["components"]["schemas"]
