"""The names that errors suggest can be used."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from belated import cli, lab
from belated.errors import InvalidInput

SOURCE = '''
import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Optional, TypeVar

import numpy as np
from numpy import exp

from belated import FTRL, lab
from belated.adapters.policies import Maker, PolicyLearner
from belated.tunings import Shadow, Simple

T = TypeVar("T")
Numbers = list[int]
LEVELS = (1, 2)
number = 3
_hidden = Shadow()


@dataclass
class Helper:
    """Neither a tuning nor a learner."""

    size: int = 2


class MyLearner:
    n_arms = 3

    def __init__(self, n_arms, seed=0):
        self.inner = FTRL(n_arms, seed=seed)

    def ask(self):
        return self.inner.ask()

    def tell(self, decision, loss):
        self.inner.tell(decision, loss)


def made(n_arms, seed):
    return FTRL(n_arms, seed=seed)


def adapted(n_arms, seed):
    return PolicyLearner("first", n_arms, lambda: 0, lambda arm, reward: None)


ucb = Maker("first arm", adapted)
bold = Shadow(scale=2)
partial = functools.partial(made)
ready = FTRL(3)
whole = lab.Algorithm("whole", "", "-", "-", "-", lambda _: Simple())
'''
NAMES = ["MyLearner", "made", "adapted", "ucb", "bold", "partial", "ready", "whole"]


@pytest.fixture
def mine(tmp_path: Path) -> str:
    path = tmp_path / "mine.py"
    path.write_text(SOURCE)
    return str(path)


def test_all_that_can_play_is_suggested_and_nothing_else(mine: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        lab.find(f"{mine}:Nope")
    assert str(caught.value) == f"unknown name in {mine} 'Nope'. The names are {', '.join(NAMES)}."
    with pytest.raises(InvalidInput, match=rf"The names are {', '.join(NAMES)}\. Write .*mine\.py:NAME"):
        lab.find(f"{mine}:")


@pytest.mark.parametrize("name", NAMES)
def test_what_is_suggested_plays(mine: str, name: str) -> None:
    problem = lab.Problem(lab.Bernoulli(), lab.NoDelay(), n_arms=3, n_rounds=20)
    assert lab.play(f"{mine}:{name}", problem, [0]).is_whole


def test_a_file_without_players_says_so(tmp_path: Path) -> None:
    path = tmp_path / "empty.py"
    path.write_text("from math import sqrt\n\nnumber = 3\n")
    with pytest.raises(InvalidInput, match=r"empty\.py has no class, function or tuning that can play"):
        lab.find(f"{path}:Nope")


def test_against_suggests_what_is_compared() -> None:
    options = ["compare", "--algorithms", "means,uniform", "--rounds", "100", "--seeds", "2", "--against"]
    for name, hint in (("foo", "The names are means, uniform. --against takes one of these."), ("unifrm", "Did you")):
        error = CliRunner().invoke(cli.app, [*options, name]).exception
        assert str(error).startswith(f"unknown algorithm of this comparison {name!r}. {hint}")
