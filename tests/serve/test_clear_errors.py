"""What is refused says how to do it right."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from belated.serve.domain.messages import OutcomeReport
from belated.serve.domain.refusals import Refusal
from belated.serve.domain.settings import OutcomeChoice, Settings, TuningChoice
from belated.serve.engine.requests import Create, Tell
from tests.support.engines import Driven

LAYOUT = Settings("layout", ["a", "b"], reward_wait=60.0, default_outcome=0.0)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"arms": ["a", "c"]}, 'its arms is ["a","b"], not ["a","c"]'),
        ({"reward_wait": 30.0}, "its reward_wait is 60.0, not 30.0"),
        (
            {"reward_wait": None, "default_outcome": None},
            "its reward_wait is 60.0, not null and its default_outcome is",
        ),
        ({"provisional": False}, "its provisional is left out, not false"),
        ({"tuning": TuningChoice("exp3", eta=0.1)}, 'not {"name":"exp3","eta":0.1}'),
        ({"outcome": OutcomeChoice(0, 5)}, '"highest":5'),
        ({"arms": [f"arm number {n}" for n in range(1000)]}, "..."),
    ],
)
def test_another_experiment_of_a_name_says_which_setting_differs(
    tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    driven = Driven(tmp_path)
    driven.do(Create(LAYOUT))
    refused = driven.do(Create(msgspec.structs.replace(LAYOUT, **change)))
    assert isinstance(refused, Refusal)
    assert refused.kind == "conflict"
    assert said in refused.detail
    assert len(refused.detail) < 400
    same = set(Settings.__struct_fields__) - set(change)
    assert not any(f"its {name} is" in refused.detail for name in same)


@pytest.mark.parametrize(
    ("declared", "value", "wanted"),
    [
        (OutcomeChoice(), 49.5, {"lowest": 0, "highest": 49.5, "better": "higher"}),
        (OutcomeChoice(-1, 5, "lower"), -3.0, {"lowest": -3, "highest": 5, "better": "lower"}),
    ],
)
def test_an_outcome_out_of_range_says_how_to_declare_it(
    tmp_path: Path, declared: OutcomeChoice, value: float, wanted: dict[str, Any]
) -> None:
    driven, word = Driven(tmp_path), "reward" if declared.better == "higher" else "loss"
    driven.create("layout", ("a", "b"), outcome=declared)
    [one] = driven.decide()
    [told] = driven.do(Tell([OutcomeReport(one.id, word, value)]))
    assert isinstance(told, Refusal)
    assert f"{word} must lie between" in told.detail
    fix = told.detail.partition('"outcome": ')[2].rstrip(".")
    assert msgspec.json.decode(fix) == wanted
    driven.create("wider", ("a", "b"), outcome=msgspec.json.decode(fix, type=OutcomeChoice))
    [one] = driven.decide("wider")
    assert driven.tell(one, value, word=word) == "applied"


def test_a_default_out_of_range_says_how_to_declare_it(tmp_path: Path) -> None:
    driven = Driven(tmp_path)
    refused = driven.do(Create(msgspec.structs.replace(LAYOUT, default_outcome=-5.0)))
    assert isinstance(refused, Refusal)
    fix = refused.detail.partition('"outcome": ')[2].rstrip(".")
    driven.create(outcome=msgspec.json.decode(fix, type=OutcomeChoice), reward_wait=60.0, default_outcome=-5.0)


def test_what_is_not_finite_gets_no_range(tmp_path: Path) -> None:
    driven = Driven(tmp_path)
    driven.create()
    [one] = driven.decide()
    [told] = driven.do(Tell([OutcomeReport(one.id, "reward", float("inf"))]))
    assert "Send a finite number" in told.detail
