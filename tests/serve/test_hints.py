"""What the service refuses says how to fix it over HTTP. Only http/ knows these hints."""

from types import SimpleNamespace
from typing import Any

import pytest

from belated.serve.domain.refusals import Refusal
from belated.serve.http.calls import Call
from belated.serve.http.problem_documents import problem_of


def call_with(*headers: tuple[bytes, bytes]) -> Call:
    scope: dict[str, Any] = {"path_params": {}, "headers": list(headers)}
    return Call(SimpleNamespace(), scope, None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("header", "key"),
    [
        (b"Bearer blt_1_2", "blt_1_2"),
        (b"bearer blt_1_2", "blt_1_2"),
        (b"BEARER   blt_1_2", "blt_1_2"),
        (b"Basic blt_1_2", None),
        (b"Bearerblt_1_2", None),
        (b"Bearer", None),
        (b"Bearer ", None),
        (b"Bearer   ", None),
        (b"blt_1_2", None),
        (b"", None),
    ],
)
def test_a_key_is_read_from_its_header(header: bytes, key: str | None) -> None:
    assert call_with((b"authorization", header)).key() == key


def test_without_the_header_there_is_no_key() -> None:
    assert call_with().key() is None


def test_a_refused_key_says_how_to_send_one() -> None:
    problem = problem_of(Refusal("unauthenticated", "the key is unknown"))
    hint = "Send Authorization: Bearer KEY. Create a key with `belated keys create`."
    assert (problem.status, problem.detail) == (401, f"the key is unknown. {hint}")
    assert problem.headers == {"WWW-Authenticate": "Bearer"}


def test_another_outcome_says_which_revision_it_contradicts() -> None:
    problem = problem_of(Refusal("conflict", "decision 1 was reported with 0.0, now 1.0.", None, 0))
    assert (problem.status, problem.document().revision) == (409, 0)
    assert problem_of(Refusal("not_found", "no such decision")).document().revision is None
