"""Values of arms are part of an experiment. They come with its creation and with arms that join."""

from pathlib import Path
from typing import Any

import pytest

from belated.errors import InvalidInput
from belated.serve.domain.experiment import Experiment
from belated.serve.domain.refusals import Refusal
from belated.serve.domain.settings import ArmChange, Settings
from belated.serve.domain.values import MOST_BYTES, value_of
from belated.serve.engine.requests import ChangeArms, Create
from belated.serve.store.verify import verify
from tests.support.engines import Driven, state


def change(driven: Driven, values: Any, *add: str, retire: tuple[str, ...] = ()) -> Any:
    return driven.do(ChangeArms("layout", ArmChange(list(add), list(retire), values)))


def nested(depth: int) -> Any:
    """Objects inside each other, with a number in the innermost one."""
    value: Any = 1
    for _ in range(depth):
        value = {"a": value}
    return value


@pytest.mark.parametrize("snapshot", [False, True])
def test_values_survive_a_restart(driven: Driven, snapshot: bool) -> None:
    driven.create(values={"a": 1, "b": 2, "c": 3})
    change(driven, {"d": 4}, "d")
    change(driven, {"a": 5}, "a", retire=("b",))  # it is there already, so nothing about it changes
    change(driven, {"b": 6}, "b")  # one that comes back may bring another value
    change(driven, {}, "e", retire=("b",))  # refused as a whole
    expected = {"a": 1, "b": 6, "c": 3, "d": 4}
    assert driven["layout"].values == expected
    before = state(driven)
    driven.restart(snapshot=snapshot)
    assert state(driven) == before
    assert driven["layout"].values == expected
    assert verify(driven.engine.journal).problems == []


def test_a_snapshot_of_an_older_release_has_no_values(driven: Driven) -> None:
    driven.create()
    assert "values" not in driven["layout"].state()
    driven.restart(snapshot=True)
    assert driven["layout"].values == {}


@pytest.mark.parametrize("value", [2**64, -(2**63) - 1, {"b": [{"c": 2**64}]}, nested(51)])
def test_a_value_that_a_snapshot_cannot_hold_is_refused(driven: Driven, value: Any) -> None:
    """Otherwise no server could save a snapshot any more, of any experiment, and nothing could be archived."""
    arms = ["a", "b", "c"]
    made = driven.do(Create(Settings("layout", arms, values=dict.fromkeys(arms, value))))
    assert isinstance(made, Refusal)
    assert made.kind == "invalid"
    first = nested(50) if isinstance(value, dict) else 2**64 - 1
    driven.create(values=dict.fromkeys(arms, first))
    changed = change(driven, {"d": value}, "d")
    assert isinstance(changed, Refusal)
    assert changed.kind == "invalid"
    driven.restart(snapshot=True)
    assert driven["layout"].values == dict.fromkeys(arms, first)


def test_an_arm_that_comes_back_keeps_its_value(driven: Driven) -> None:
    driven.create(values={"a": True, "b": False, "c": True})
    driven.change(retire=("b",))
    driven.change(add=("b",))
    assert driven["layout"].values == {"a": True, "b": False, "c": True}


def test_a_failed_experiment_keeps_its_values(driven: Driven, monkeypatch: pytest.MonkeyPatch) -> None:
    driven.create(values={"a": 1, "b": 2, "c": 3})

    def broken(*_: object) -> None:
        raise ArithmeticError("a bug")

    with monkeypatch.context() as patched:
        patched.setattr(Experiment, "apply_decisions", broken)
        driven.decide()
    assert driven["layout"].failure is not None
    assert driven["layout"].values == {"a": 1, "b": 2, "c": 3}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"a": 1}, "values has none for 'b'. Give one for each arm that takes part, or none at all"),
        ({"a": 1, "b": 2, "x": 3}, "values has 'x', which is no arm that takes part"),
        ({"a": 1, "b": True}, "one kind. That of 'a' is a number, that of 'b' is true or false"),
        ({"a": "1", "b": {}}, "one kind. That of 'a' is a string, that of 'b' is an object"),
        ({"a": "x" * MOST_BYTES, "b": "y"}, "values may have at most 65,536 bytes as JSON, got 65,"),
    ],
)
def test_values_that_do_not_fit_are_refused(driven: Driven, values: dict[str, Any], message: str) -> None:
    refused = driven.do(Create(Settings("layout", ["a", "b"], values=values)))
    assert isinstance(refused, Refusal)
    assert message in refused.detail


def test_values_of_arms_that_join_must_fit(driven: Driven) -> None:
    driven.create(values={"a": 1, "b": 2, "c": 3})
    before = state(driven)
    for values in ({}, {"d": "x"}, {"d": 4, "e": 5}, {"a": 4}):
        assert isinstance(change(driven, values, "d"), Refusal)
    assert state(driven) == before


def test_experiments_with_and_without_values_are_different(driven: Driven) -> None:
    driven.create(values={"a": 1, "b": 2, "c": 3})
    assert isinstance(driven.do(Create(Settings("layout", ["a", "b", "c"]))), Refusal)
    assert not isinstance(
        driven.do(Create(Settings("layout", ["a", "b", "c"], values={"c": 3, "a": 1, "b": 2}))), Refusal
    )


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, "'a'"),
        ({"a": 1, "b": 2}, "1"),
        ({"a": 1, "b": 2.5}, "1.0"),
        ({"a": {"x": 1}, "b": {"x": 2.5}}, "{'x': 1}"),
        ({"a": False, "b": True}, "False"),
    ],
)
def test_numbers_of_an_experiment_have_one_form(values: dict[str, Any], expected: str) -> None:
    assert repr(value_of(values, "a")) == expected


def test_an_old_store_has_no_values(tmp_path: Path) -> None:
    driven = Driven(tmp_path)
    assert driven.create().settings.declared_values == {}
    with pytest.raises(InvalidInput):
        Settings("layout", ["a"], values={}).check()
