"""With named arms, decisions carry the name, and everything else is as with numbers."""

from typing import Any, assert_type

import numpy as np
import pytest

from belated import FTRL, Decision
from belated.errors import InvalidInput
from tests.support.catalogue import TUNINGS


def test_bare_names_of_types_mean_numbered_arms() -> None:
    """mypy checks these claims."""
    assert_type(FTRL(2, seed=1), FTRL[int])
    assert_type(FTRL(2, seed=1).ask(), Decision[int])
    assert_type(FTRL(["a", "b"], seed=1), FTRL[str])
    assert_type(FTRL(["a", "b"], seed=1).ask(), Decision[str])
    assert_type(FTRL(("a", "b"), seed=1).ask(2), list[Decision[str]])
    plain: Decision = FTRL(2, seed=1).ask()
    assert_type(plain.arm, int)


@pytest.mark.parametrize("name", TUNINGS)
def test_a_named_learner_decides_as_a_numbered_one(name: str) -> None:
    arms = ["red", "green", "blue", "black"]
    named, numbered = FTRL(arms, TUNINGS[name], seed=4), FTRL(4, TUNINGS[name], seed=4)
    for turn in range(60):
        if turn % 7 == 0:
            made, twins = named.ask(5), numbered.ask(5)
        else:
            made, twins = [named.ask()], [numbered.ask()]
        assert made == [Decision(twin.round, arms[twin.arm], twin.probability) for twin in twins]
        named.tell(made[0], 0.3)
        numbered.tell(twins[0], 0.3)
    assert named.record("blue", 0.25) == (numbered.record(2, 0.25).round, "blue", 0.25)
    if not named.status.tuning.discard:
        named.amend(made[0], 0.3, 0.9)
        numbered.amend(twins[0], 0.3, 0.9)
    drop = {"arms"}
    assert {k: v for k, v in named.snapshot().items() if k not in drop} == {
        k: v for k, v in numbered.snapshot().items() if k not in drop
    }
    assert named.n_arms == 4
    assert named.status.arms == tuple(arms)
    assert numbered.status.arms == (0, 1, 2, 3)


@pytest.mark.parametrize(
    ("arms", "reason"),
    [
        ([], "arms must be a number or a list of names"),
        ("abc", "arms must be a number or a list of names"),
        (b"abc", "arms must be a number or a list of names"),
        (["a", "b", "a"], "arms must have different names, got 'a' twice"),
        (["a", ""], "the name of an arm must be a string that is not empty, got ''"),
        (["a", 3], "the name of an arm must be a string that is not empty, got 3"),
        ([1, 2, 3], "not empty, got 1. Write '1' for a name, or pass 3 for 3 arms that have numbers"),
    ],
)
def test_bad_names_are_refused(arms: Any, reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        FTRL(arms)


def test_an_arm_that_is_not_there_is_refused_and_nothing_changes() -> None:
    learner = FTRL(["a", "b"], seed=1)
    learner.tell(learner.ask(), 0.5)
    before = learner.snapshot()
    wrong: list[Any] = ["c", 0, ["a"], None]
    for arm in wrong:
        with pytest.raises(InvalidInput, match=r"the arm of a decision must be one of \['a', 'b'\], got"):
            learner.record(arm, 0.5)
        with pytest.raises(InvalidInput, match=r"the arm of a decision must be one of \['a', 'b'\], got"):
            learner.amend(Decision(1, arm, 0.5), 0.5, 0.2)
    assert learner.snapshot() == before


def test_its_repr_shows_the_names() -> None:
    assert repr(FTRL(["a", "b"], seed=1)).startswith("FTRL(arms=['a', 'b'], tuning=Means(")


@pytest.mark.parametrize("arms", [{"a", "b"}, (name for name in "ab"), np.array(["a", "b"]), []])
def test_names_come_as_a_list(arms: Any) -> None:
    with pytest.raises(InvalidInput, match="arms must be a number or a list of names"):
        FTRL(arms)


def test_an_amendment_of_another_arm_names_the_arm() -> None:
    learner: Any = FTRL(["a", "b"], seed=0)
    decision = learner.ask()
    learner.tell(decision, 0.5)
    other = "b" if decision.arm == "a" else "a"
    with pytest.raises(InvalidInput, match=f"did not draw arm '{other}'"):
        learner.amend(iter((decision.round, other, decision.probability)), 0.5, 0.6)
