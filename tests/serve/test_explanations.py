"""What is wrong with a body is said in JSON's words."""

import re
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from belated.errors import InvalidInput
from belated.serve.domain.settings import ArmChange, Settings
from belated.serve.http import explanations
from belated.serve.http.documents import BatchOfFeedback, Feedback, NewDecision, NewDecisions
from belated.serve.http.explanations import explained
from belated.serve.http.routes import ROUTES

TYPES = [route.takes for route in ROUTES if route.takes is not None]
PYTHON = re.compile(r"`|\b(None|True|False|str|int|float|bool|dict|list|regex|\$)\b|\[A-Z")
GOOD: dict[str, Any] = {"name": "layout", "arms": ["a"]}


def said_of(type_: Any, body: Any) -> str | None:
    content = msgspec.json.encode(body)
    try:
        msgspec.json.decode(content, type=type_)
    except msgspec.ValidationError as error:
        return explained(str(error), content, type_)
    return None


@pytest.mark.parametrize(
    ("type_", "body", "expected"),
    [
        (Settings, {"arms": ["a"]}, "name is missing"),
        (Settings, {**GOOD, "name": 1}, "name must be a string with at most 100 characters, got 1"),
        (
            *(Settings, {**GOOD, "name": "my page!"}),
            "name must be up to 100 letters, digits, dots, dashes and underscores, and begin with a letter or digit, "
            'such as my-page, got "my page!"',
        ),
        (Settings, {**GOOD, "arms": "ab"}, 'arms must be an array with 1 to 1,000 items, got "ab"'),
        (Settings, {**GOOD, "arms": []}, "arms must be an array with 1 to 1,000 items, got []"),
        (Settings, {**GOOD, "arms": ["a", None]}, "arms[1] must be a string with 1 to 100 characters, got null"),
        (
            *(Settings, {**GOOD, "reward_wait": "1"}),
            'reward_wait must be a number from 0.001 to 316,224,000 or null, got "1"',
        ),
        (Settings, {**GOOD, "provisional": 1}, "provisional must be true or false, got 1"),
        (Settings, {**GOOD, "outcome": True}, "outcome must be an object, got true"),
        (
            *(Settings, {**GOOD, "tuning": {"name": "bold"}}),
            "tuning.name must be one of adaptive_exp3, advanced, exp3, means, shadow, simple, tsallis, "
            'got "bold"',
        ),
        (
            *(Settings, {**GOOD, "tuning": {"scale": 0}}),
            "tuning.scale must be a number above 0 and of at most 1,000,000, got 0",
        ),
        (Settings, {**GOOD, "tuning": {"scal": 1}}, "unknown field tuning.scal. Did you mean scale?"),
        (
            *(Settings, {**GOOD, "values": {"a": True, "b": [1], "c": False}}),
            "values.b must be a string or true or false or a number or an object, got [1]",
        ),
        (Settings, {**GOOD, "tuning": "means"}, 'tuning must be an object such as {"name":"means"}, got "means"'),
        (
            *(Settings, {**GOOD, "tuning": "bold"}),
            'tuning must be an object such as {"name":"means"}, where the name is one of adaptive_exp3, advanced, '
            'exp3, means, shadow, simple, tsallis, got "bold"',
        ),
        (Feedback, {"outcome": 1}, "unknown field outcome. Did you mean reward, or loss if lower is better?"),
        (
            *(BatchOfFeedback, {"reports": [{"decision_id": "x", "value": 1}]}),
            "unknown field reports[0].value. Did you mean reward, or loss if lower is better?",
        ),
        (Settings, {**GOOD, "value": 1}, "unknown field value. Did you mean values?"),
        (Settings, {**GOOD, "values": [1]}, "values must be an object, got [1]"),
        (
            *(Settings, {**GOOD, "parts": {"a": {}, "b": {}, "c": {"lowest": "0"}}}),
            'parts.c.lowest must be a number, got "0"',
        ),
        (
            *(Settings, {**GOOD, "parts": {"cost": {"wight": 2}, "speed": {}}}),
            "unknown field parts.cost.wight. Did you mean weight?",
        ),
        (Settings, {**GOOD, "parts": {"a": {}, "b": 3}}, "parts.b must be an object, got 3"),
        (Settings, {**GOOD, "parts": {}}, "parts must be an object with 1 to 20 fields, got {}"),
        (Feedback, {"parts": {"a": 1, "b": "x"}}, 'parts.b must be a number, got "x"'),
        (ArmChange, {"x": ["a"]}, "unknown field x. Known are add, retire, values"),
        (NewDecisions, {"size": 1.5}, "size must be a whole number from 1 to 10,000, got 1.5"),
        (Feedback, {"reward": {"a": None}}, 'reward must be a number, got {"a":null}'),
        (Feedback, {"reward": "x" * 99}, 'reward must be a number, got "' + "x" * 79 + "..."),
        (
            *(BatchOfFeedback, {"reports": [{"decision_id": "x", "amend": 0}]}),
            "reports[0].amend must be true or false, got 0",
        ),
        (NewDecision, [], "the body must be an object, got []"),
    ],
)  # fmt: skip
def test_what_is_said(type_: Any, body: Any, expected: str) -> None:
    end = "" if expected.endswith(("?", "...")) else "."
    assert said_of(type_, body) == f"{expected}{end} See /docs for what is allowed."


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False, allow_infinity=False) | st.just("x"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(sorted(
        {"name", "arms", "outcome", "lowest", "better", "tuning", "scale", "reward_wait", "provisional", "add", "size",
         "reward", "loss", "amend", "revision", "reports", "decision_id", "other", "values", "parts", "weight",
         "default", "context", "targetingKey", "flags", "subject", "subjects", "floor", "holdout", "several", "x" * 101}
    )), inner, max_size=5),
    max_leaves=12,
)  # fmt: skip


@given(st.sampled_from(TYPES), JSON)
def test_nothing_of_python_is_said(type_: Any, body: Any) -> None:
    said = said_of(type_, body)
    assert said is None or (not PYTHON.search(said) and said.endswith("See /docs for what is allowed."))


def test_a_final_line_break_is_no_letter() -> None:
    with pytest.raises(InvalidInput, match=r"such as my-page, got 'my-page\\n'"):
        Settings("my-page\n", ["a"]).check()


@pytest.mark.parametrize(
    ("type_", "body"), [(NewDecision, {"subject" * 30_000: 1}), (Settings, {**GOOD, "name": "a " * 100_000})]
)
def test_long_text_of_a_caller_costs_no_time(type_: Any, body: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The event loop makes the explanation. To look for a similar name took half a second for the longest body."""
    for name in ("closest", "well_formed_name"):
        kept = getattr(explanations, name)

        def short(text: str, *arguments: Any, kept: Any = kept, **options: Any) -> Any:
            assert len(text) < 100
            return kept(text, *arguments, **options)

        monkeypatch.setattr(explanations, name, short)
    assert len(said_of(type_, body) or "") < 500
