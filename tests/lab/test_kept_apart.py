"""Players and rules of one name and one fingerprint, which were made with different settings, keep their own games."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import cloudpickle
import numpy as np
import pytest

from belated import FTRL, baselines, lab
from belated.errors import InvalidInput
from belated.tunings import Simple, Tuning


def play(player: Any, folder: Path, losses: Any = "wave") -> str:
    """What is said of games that were kept."""
    messages: list[str] = []
    comparison = lab.Comparison([lab.named("mine", player)], losses, "fixed:d=2", arms=2, rounds=20, seeds=1)
    lab.compare(comparison, folder=folder, tell=messages.append)
    return " ".join(messages)


def scaled(n_arms: int, seed: int, scale: float) -> FTRL:
    return FTRL(n_arms, Simple(scale), seed=seed)


@dataclass
class Settings:
    """Settings of my own."""

    scale: float


@dataclass(frozen=True, slots=True)
class Slots:
    """The same in slots."""

    scale: float


class Pair(NamedTuple):
    """The same."""

    scale: float


class MyTuning(Tuning):
    """A tuning of my own."""

    def __init__(self, scale: float) -> None:
        self.scale = scale

    def rates(self, n_arms: int, round: int, outstanding: int, backlog: int, sqrt: Any = np.sqrt) -> Any:
        return 1.0, self.scale


class Maker:
    """An object with a method that makes learners, or plays a setting."""

    fingerprint = "1"

    def __init__(self, scale: float) -> None:
        self.scale = scale

    def make(self, n_arms: int, seed: int) -> FTRL:
        return scaled(n_arms, seed, self.scale)

    def __call__(self, _: lab.Setting) -> Tuning:
        return Simple(self.scale)


class Holder:
    """An object that holds a function."""

    fingerprint = "1"

    def __init__(self, make: Any) -> None:
        self.make = make

    def __call__(self, n_arms: int, seed: int) -> Any:
        return self.make(n_arms, seed)


class Learner:
    """A learner whose scale is a method of its subclasses."""

    scale: Any

    def __init__(self, n_arms: int, *, seed: int) -> None:
        self.inner = scaled(n_arms, seed, self.scale)

    def ask(self) -> Any:
        return self.inner.ask()

    def tell(self, round: int, loss: float) -> None:
        self.inner.tell(round, loss)


def marked(what: Any) -> Any:
    what.fingerprint = "1"
    return what


def of(settings: Any) -> Any:
    """A function that holds settings."""
    return marked(lambda n_arms, seed: scaled(n_arms, seed, settings.scale))


def of_first(settings: Any) -> Any:
    return marked(lambda n_arms, seed: scaled(n_arms, seed, settings[0].scale))


def of_tuning(tuning: Tuning) -> Any:
    return marked(lambda n_arms, seed: FTRL(n_arms, tuning, seed=seed))


def with_property(scale: float) -> type:
    return type("Mine", (Learner,), {"scale": property(lambda _: scale), "fingerprint": "1"})


def with_cached_property(scale: float) -> type:
    kept = cached_property(lambda _: scale)
    kept.__set_name__(Learner, "scale")
    return type("Mine", (Learner,), {"scale": kept, "fingerprint": "1"})


def with_base(scale: float) -> type:
    return type("Mine", (with_property(scale),), {})


def of_a_setting(player: Any) -> lab.Algorithm:
    return lab.Algorithm("mine", "-", "-", "nothing", "-", player, fingerprint="1")


MAKERS: dict[str, Callable[[float], Any]] = {
    "partial": lambda scale: marked(partial(scaled, scale=scale)),
    "method": lambda scale: Maker(scale).make,
    "an object that holds a function": lambda scale: Holder(marked(lambda k, seed: scaled(k, seed, scale))),
    "a function that holds an object": lambda scale: of(Settings(scale)),
    "a function that holds an object with slots": lambda scale: of(Slots(scale)),
    "a function that holds a list of objects": lambda scale: of_first([Settings(scale)]),
    "a function that holds a tuple with names": lambda scale: of(Pair(scale)),
    "a function that holds a tuning": lambda scale: of_tuning(MyTuning(scale)),
    "a class with a property": with_property,
    "a class with a cached property": with_cached_property,
    "a class with a base": with_base,
    "an algorithm by an object": lambda scale: of_a_setting(Maker(scale)),
    "an algorithm by a method": lambda scale: of_a_setting(Maker(scale).__call__),
    "an algorithm by a partial function": lambda scale: of_a_setting(
        partial(lambda _, scale: Simple(scale), scale=scale)
    ),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())
def test_other_settings_make_another_player(make: Callable[[float], Any], tmp_path: Path) -> None:
    assert play(make(1.0), tmp_path) == play(make(100.0), tmp_path) == ""
    assert "1 of 1" in play(make(1.0), tmp_path)


class Late(lab.Delays):
    """A rule of my own that holds a function."""

    fingerprint = "1"

    def __init__(self, delay: Any) -> None:
        self.delay = delay

    def draw(self, n_arms: int, n_rounds: int, generator: np.random.Generator) -> Any:
        return np.full(n_rounds, self.delay())


def same(n_arms: int, _rounds: int, _generator: Any, loss: float) -> Any:
    while True:
        yield [loss] * n_arms


class Rules:
    """An object with a rule as its method."""

    def __init__(self, loss: float) -> None:
        self.loss = loss

    def rule(self, n_arms: int, n_rounds: int, generator: Any) -> Any:
        return same(n_arms, n_rounds, generator, self.loss)


PENNIES = lab.Duel([[0, 1], [1, 0]])
LOSSES: dict[str, Callable[[float], Any]] = {
    "partial": lambda loss: lab.Reacting(partial(same, loss=loss), fingerprint="1"),
    "method": lambda loss: lab.Reacting(Rules(loss).rule, fingerprint="1"),
    "an opponent": lambda loss: PENNIES.against(marked(lambda k, seed: scaled(k, seed, loss))).losses,
}


@pytest.mark.parametrize("make", LOSSES.values(), ids=LOSSES.keys())
def test_other_settings_make_other_losses(make: Callable[[float], Any], tmp_path: Path) -> None:
    assert play("bold", tmp_path, make(0.2)) == play("bold", tmp_path, make(0.9)) == ""
    assert "1 of 1" in play("bold", tmp_path, make(0.2))


def test_a_rule_that_holds_a_function_is_told_apart(tmp_path: Path) -> None:
    def heard(delay: int) -> str:
        messages: list[str] = []
        rule = Late(marked(lambda: delay))
        lab.compare(lab.Comparison(["bold"], "wave", rule, 2, 20, 1), folder=tmp_path, tell=messages.append)
        return " ".join(messages)

    assert heard(1) == heard(9) == ""
    assert "1 of 1" in heard(1)


def test_an_opponent_of_the_lab_needs_no_mark(tmp_path: Path) -> None:
    losses = [PENNIES.against(one).losses for one in (baselines.BOLD, baselines.ThompsonSampling)]
    assert [play("bold", tmp_path, one) for one in losses] == ["", ""]
    assert "1 of 1" in play("bold", tmp_path, losses[0])


def test_what_refers_to_itself_is_refused(tmp_path: Path) -> None:
    rule = Late(marked(lambda: 1))
    rule.itself = rule  # type: ignore[attr-defined]
    with pytest.raises(InvalidInput, match="refers to itself"):
        lab.compare(lab.Comparison(["bold"], "wave", rule, 2, 20, 1), folder=tmp_path)


def test_a_function_that_numba_compiles_counts_by_its_settings(tmp_path: Path) -> None:
    """And it stays the same when it is sent to another process."""
    numba: Any = pytest.importorskip("numba")

    def make(scale: float) -> Any:
        scaling = numba.njit(lambda: scale)
        return marked(lambda n_arms, seed: scaled(n_arms, seed, scaling.py_func())), scaling

    (mine, scaling), (other, _) = make(1.0), make(2.0)
    assert play(mine, tmp_path) == play(other, tmp_path) == ""
    cloudpickle.dumps(scaling)
    assert "1 of 1" in play(mine, tmp_path)
