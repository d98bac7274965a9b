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


def nested(levels: int) -> dict[str, Any]:
    """An object with so many levels, half of them lists."""
    value: Any = {}
    for level in range(levels - 1, 0, -1):
        value = {"x": value} if level % 2 else [value]
    return value  # type: ignore[no-any-return]


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


def test_the_largest_values_can_be_kept(driven: Driven) -> None:
    """What cannot be saved in a snapshot would end all snapshots and archives, and what is too deep all servers."""
    driven.create("deep", ("a",), values={"a": nested(20)})
    driven.create(values={"a": 2**64 - 1, "b": -(2**63), "c": 0})
    before = state(driven)
    driven.restart(snapshot=True)
    assert driven.engine.fold.restored == 2
    assert state(driven) == before


def test_an_arm_that_joins_brings_no_value_that_cannot_be_kept(driven: Driven) -> None:
    driven.create(values={"a": 1, "b": 2, "c": 3})
    refused = change(driven, {"d": 2**64}, "d")
    assert "more than 64 bits" in refused.detail
    assert driven.engine.journal.last() == 1


def test_a_snapshot_of_an_older_release_has_no_values(driven: Driven) -> None:
    driven.create()
    assert "values" not in driven["layout"].state()
    driven.restart(snapshot=True)
    assert driven["layout"].values == {}


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
        ({"a": 2**64, "b": 1}, "the value of 'a' has a whole number of more than 64 bits. Send it as a string"),
        ({"a": {}, "b": {"x": [1, -(2**63) - 1]}}, "the value of 'b' has a whole number of more than 64 bits"),
        ({"a": nested(21), "b": {}}, "the value of 'a' has more than 20 lists and objects inside each other"),
        ({"a": nested(900), "b": {}}, "the value of 'a' has more than 20 lists and objects inside each other"),
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
