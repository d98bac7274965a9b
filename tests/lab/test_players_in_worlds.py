"""Players of any kind are checked in worlds as elsewhere, and their marks stay in folders, tables and sweeps."""

import dataclasses
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from belated import Decision, lab
from belated.baselines import Hoeven2022
from belated.cli.lab import show
from belated.errors import GameError, InvalidInput, MismatchWarning
from belated.lab.comparisons import sweep
from belated.tunings import Shadow, Tsallis
from tests.lab.test_mismatch import Player
from tests.lab.test_steps import WORLDS, coins, reacting, wearing_out

GAMES = {"by arm": coins(WORLDS["by arm"]), "reacting": reacting(wearing_out)}
EVEN = [1 / 3] * 3


def liar(_: int, seed: int) -> Player:
    return Player([0.02, 0.02, 0.96], EVEN, seed=seed)


liar.fingerprint = "1"  # type: ignore[attr-defined]


def prefers_the_first(_n_arms: int, n_rounds: int, _: np.random.Generator) -> Any:
    for _round in range(n_rounds):
        yield [1.0, 0.8, 0.1]


prefers_the_first.fingerprint = "1"  # type: ignore[attr-defined]
HARD = lab.Reacting(prefers_the_first, fingerprint="1")


@pytest.mark.parametrize("world", GAMES)
@pytest.mark.parametrize(
    ("said", "drawn", "settings", "message"),
    [
        ([0.2, 0.2, 0.1], 0, {}, "its distribution must be probabilities >= 0 whose sum is 1"),
        ([0.5, 0.5], 0, {}, "must be 3 probabilities, one for each arm"),
        ([0.0, 0.5, 0.5], 0, {}, "it drew arm 0, which has probability 0 in its distribution"),
        (EVEN, 0, {"probability": 0.5}, "probability 0.333333 in its distribution and 0.5 in its decision"),
        (EVEN, 0, {"probability": "1/3"}, "the probability in its decision must be a number, got '1/3'"),
        (EVEN, 0, {"probability": math.nan}, "the probability in its decision must be a number, got nan"),
        (EVEN, -1, {}, "the arm of a decision must be a whole number from 0 to 2, got -1"),
        (EVEN, 3, {}, "the arm of a decision must be a whole number from 0 to 2, got 3"),
        (EVEN, 0, {"first": 2}, "its decision has the round 2"),
    ],
)
def test_a_learner_that_breaks_the_rules_is_refused(
    world: str, said: Any, drawn: Any, settings: Any, message: str
) -> None:
    with pytest.raises(InvalidInput, match=f"^function, seed 4.*{message}"):
        lab.play(lambda _, seed: Player(said, drawn, seed=seed, **settings), GAMES[world], [4])


@pytest.mark.parametrize("world", GAMES)
@pytest.mark.parametrize("place", ["ask", "distribution", "tell"])
def test_a_crash_says_where(world: str, place: str) -> None:
    class Crashing(Player):
        def __init__(self, _n_arms: int, *, seed: int) -> None:
            super().__init__(EVEN, EVEN, seed=seed)

    def crash(*_: Any) -> Any:
        raise ZeroDivisionError("none")

    setattr(Crashing, place, crash)
    with pytest.raises(GameError, match=r"^Crashing, seed 4: it failed to .*round \d+ \(ZeroDivisionError: none\)"):
        lab.play(Crashing, GAMES[world], [4])


@pytest.mark.parametrize("world", GAMES)
@pytest.mark.parametrize("name", ["means", "thompson", "uniform", "shadow", "bold"])
def test_honest_systems_are_not_suspicious(world: str, name: str) -> None:
    with warnings.catch_warnings(action="error"):
        assert not lab.play(name, GAMES[world], 3).is_suspicious


def test_a_liar_is_called_one_in_a_world_too() -> None:
    with pytest.warns(MismatchWarning, match="liar: distribution"):
        curves = lab.play(liar, lab.Problem(HARD, lab.Fixed(3), 3, 400), 3)
    assert curves.is_suspicious
    assert curves.evidence is not None
    assert curves.evidence.shape == (3,)


def test_the_mark_stays_in_folders_and_tables(tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    wanted = lab.Comparison([liar, "uniform"], HARD, "fixed:d=3", arms=3, rounds=400, seeds=3)
    with pytest.warns(MismatchWarning, match="liar"):
        first, kept = (lab.compare(wanted, folder=tmp_path) for _ in range(2))
    assert first.rows[-1].regret == min(row.regret for row in first.rows)  # it lies well, and is still the last
    for results in (first, kept):
        assert results.summary()[-1][0] == "liar !"
        assert [text.partition(":")[0] for text in results.warnings] == ["liar"]
        assert "liar !" in results.to_markdown()
        latex = results.to_latex().splitlines()
        assert r"\mathbf" not in next(line for line in latex if "liar" in line)
        assert r"\mathbf" in next(line for line in latex if "uniform" in line)
        assert [(one.algorithm, one.against) for one in results.differences()] == [("liar", "uniform")]
        show(results)
        assert "! liar: distribution() does not fit" in capsys.readouterr().out
    for one, other in zip(first.rows, kept.rows, strict=True):
        assert one.curves.evidence is not None
        np.testing.assert_array_equal(one.curves.evidence, other.curves.evidence)


class Even:
    """Plays all arms alike."""

    fingerprint = "1"

    def __init__(self, n_arms: int, *, seed: int) -> None:
        self.n_arms, self.round, self.generator = n_arms, 0, np.random.default_rng(seed)

    def ask(self) -> Decision:
        self.round += 1
        return Decision(self.round, int(self.generator.integers(self.n_arms)), 1 / self.n_arms)

    def tell(self, round: Any, loss: float) -> None: ...


def test_a_sweep_takes_players_of_any_kind_and_a_list_of_seeds(tmp_path: Path) -> None:
    players = ["bold", "shadow:scale={scale}", Shadow(scale=4), lab.named("mine", Tsallis()), Even, liar]
    grid = {"algorithms": players, "scale": [2, 3], "losses": HARD, "delays": ["fixed:d=2", WORLDS["lost by arm"]]}
    grid |= {"arms": 3, "rounds": 60, "seeds": [5, 3]}
    messages: list[str] = []
    with pytest.warns(MismatchWarning, match="liar"):
        swept, kept = (lab.sweep(grid, folder=tmp_path, tell=messages.append) for _ in range(2))
    assert messages == [f"28 of 28 games were in {tmp_path} already"]
    assert swept.tidy().equals(kept.tidy())
    table = swept.tidy()
    names = ["bold", "shadow:scale=2", "shadow:scale=3", "Shadow(scale=4)", "mine", "Even", "liar"]
    assert set(table["algorithm"]) == set(names)
    assert table["seed"].unique(maintain_order=True).to_list() == [5, 3]
    scales = {name: set(table.filter(algorithm=name)["algorithm_scale"]) for name in names}
    assert scales == {name: {None} for name in names} | {
        "shadow:scale=2": {2},
        "shadow:scale=3": {3},
        "Shadow(scale=4)": {4},
    }


def test_a_named_player_has_the_settings_of_what_it_stands_for() -> None:
    players = [lab.named("one", Shadow(scale=4)), lab.named("two", "shadow:scale=2"), "uniform"]
    table = lab.sweep({"algorithms": players, "rounds": 20, "seeds": 1}).tidy()
    found = {name: set(table.filter(algorithm=name)["algorithm_scale"]) for name in ("one", "two", "uniform")}
    assert found == {"one": {4}, "two": {2}, "uniform": {None}}


@pytest.mark.parametrize("world", ["by arm", "lost by arm"])
def test_a_comparison_says_who_cannot_play_before_any_work(world: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "play_whole", lambda *_: pytest.fail("played"))
    wanted = lab.Comparison(delays=WORLDS[world], arms=3, rounds=50, seeds=1)
    with pytest.raises(InvalidInput, match=r"^exp3-coop, dew, .*solid, .* cannot play this problem") as refused:
        lab.compare(wanted)
    monkeypatch.undo()
    _, _, others = str(refused.value).rpartition("Compare only ")
    results = lab.compare(dataclasses.replace(wanted, algorithms=others.split(",")))
    names = {row.algorithm.name for row in results.rows}
    assert names == set(others.split(","))
    assert {"means", "thompson", "opse"} < names < {algorithm.name for algorithm in lab.ALGORITHMS}


def test_a_system_of_the_table_plays_a_world_if_it_is_told_what_nobody_knows() -> None:
    problem = GAMES["by arm"]
    with pytest.raises(InvalidInput, match="nobody can know the delays in advance"):
        lab.play("hoeven-2022", problem, 2)
    told = lab.play("hoeven-2022:most_missing=20", problem, 2)
    by_hand = lab.play(lambda k, seed: Hoeven2022(k, 20, seed=seed), problem, 2)
    np.testing.assert_array_equal(told.expected, by_hand.expected)
