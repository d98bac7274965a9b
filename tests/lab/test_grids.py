"""A sweep plays every combination of a grid once, and its table has every column."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest

from belated import lab
from belated.errors import InvalidInput, UnfinishedWarning
from belated.lab.comparisons import sweep as games
from belated.lab.comparisons.columns import settings_of
from belated.lab.comparisons.grid import as_grid
from belated.tunings import Shadow
from tests.lab.test_comparisons import invoke

GRID: dict[str, Any] = {
    "losses": ["bernoulli:gap={gap}", "wave"],
    "gap": [0.1, 0.2],
    "delays": ["none", "permuted:fixed:d={d}"],
    "d": [3, 30],
    "arms": [2, 4],
    "rounds": 200,
    "algorithms": ["zs20-{kind}", "uniform"],
    "kind": ["simple", "advanced"],
    "seeds": 2,
}


def test_every_combination_is_there_once() -> None:
    points = as_grid(GRID).points()
    problems = [(p.comparison.losses, p.comparison.delays, p.comparison.arms) for p in points]
    losses, delays = (
        ("bernoulli:gap=0.1", "bernoulli:gap=0.2", "wave"),
        ("none", "permuted:fixed:d=3", "permuted:fixed:d=30"),
    )
    assert sorted(problems) == sorted((one, other, k) for one in losses for other in delays for k in (2, 4))
    assert {p.comparison.algorithms for p in points} == {("zs20-simple", "uniform", "zs20-advanced")}
    [point] = [p for p, what in zip(points, problems, strict=True) if what == ("bernoulli:gap=0.2", "none", 4)]
    assert point.values == [{"gap": 0.2, "d": None, "kind": kind} for kind in ("simple", None, "advanced")]


def test_the_table_has_what_each_comparison_has() -> None:
    swept = lab.sweep(GRID, workers=2)
    table = swept.tidy()
    assert table.columns == [
        *("losses", "delays", "arms", "rounds", "gap", "d", "kind"),
        *("losses_gap", "losses_mean", "losses_strength", "delays_d", "algorithm", "seed", "round"),
        *("expected_regret", "suffered_regret", "pseudo_regret", "dynamic_regret", "is_suspicious"),
        *("is_partial", "bound", "lower_bound", "seconds"),
    ]
    comparison = lab.Comparison(("zs20-advanced",), "bernoulli:gap=0.2", "permuted:fixed:d=30", 4, 200, 2)
    alone = lab.compare(comparison).rows[0]
    lines = table.filter(gap=0.2, d=30, arms=4, kind="advanced")
    np.testing.assert_array_equal(lines["expected_regret"].to_numpy(), alone.curves.expected.ravel())
    np.testing.assert_array_equal(lines["pseudo_regret"].to_numpy(), alone.curves.pseudo.ravel())
    assert lines["bound"].unique().to_list() == [alone.bound]
    assert lines["lower_bound"].unique().to_list() == [alone.lower]
    assert lines["losses_gap"].unique().to_list() == [0.2]
    assert lines["delays_d"].unique().to_list() == [30]
    assert (lines["seconds"] > 0).all()
    wave = table.filter(losses="wave", delays="none", algorithm="uniform")
    for name in ("gap", "d", "kind", "losses_gap", "delays_d"):
        assert wave[name].null_count() == wave.height
    assert table.filter(round=200).height == 18 * 3 * 2
    assert len(swept.summary()) == 18 * 3


def test_given_means_have_no_gap() -> None:
    losses = ["bernoulli:means=0.4/0.2/0.4", "bernoulli:mean=0.3"]
    grid = {"losses": losses, "delays": "none", "arms": 3, "rounds": 9, "algorithms": "uniform", "seeds": 1}
    table = lab.sweep(grid).tidy()
    shown = {key: table.filter(losses=key)[["losses_gap", "losses_mean"]].unique().rows() for key in losses}
    assert shown == {"bernoulli:means=0.4/0.2/0.4": [(None, None)], "bernoulli:mean=0.3": [(0.1, 0.3)]}


def test_rules_inside_a_rule_have_columns_of_their_own() -> None:
    """One column for both would have the number of one of them."""
    delays = [
        "by-outcome:fixed:d=1+lagged:lag=3:fixed:d=50",
        lab.ArmDelays([lab.Fixed(7), lab.Geometric(mean=9.0)]),
        lab.LostByArm(lab.Fixed(4), shares=[0.1, 0.25]),
    ]
    grid = {"losses": "bernoulli:means=0.4/0.2", "delays": delays, "arms": 2, "rounds": 9, "algorithms": "uniform"}
    table = lab.sweep({**grid, "seeds": 1}).tidy()
    names = [name for name in table.columns if name.startswith(("losses_", "delays_"))]
    found = [
        {name: line[name] for name in names if line[name] is not None} for line in table.unique("delays").to_dicts()
    ]
    assert {"losses_means": "0.4/0.2", "delays_d": 4, "delays_shares": "0.1/0.25"} in found
    assert {"losses_means": "0.4/0.2", "delays_0_d": 7, "delays_1_mean": 9.0} in found
    both = {"delays_successes_d": 1, "delays_failures_d": 50, "delays_failures_lag": 3}
    assert {"losses_means": "0.4/0.2", **both} in found
    assert len(found) == 3


class Late(lab.Delays):
    """A rule of your own, which says nothing about itself."""

    def __init__(self, by: int, hidden: int = 0) -> None:
        self.by, self._hidden = by, hidden

    def draw(self, n_arms: int, n_rounds: int, generator: np.random.Generator) -> Any:
        return np.full(n_rounds, self.by + self._hidden)


def test_different_rules_have_different_texts() -> None:
    """Lines of different problems must not look alike."""
    many, more = np.zeros(5000, int), np.zeros(5000, int)
    more[2500] = 3
    delays = [
        lab.GivenDelays(many),
        lab.GivenDelays(more),
        lab.GivenDelays(np.array([1, 2])),
        Late(3),
        Late(3, 1),
        Late(4),
    ]
    losses = [lab.GivenLosses(np.full((50, 2), share)) for share in (0.0, 0.5)]
    grid = {"losses": losses, "delays": delays, "rounds": 50, "arms": 2, "algorithms": "uniform", "seeds": 1}
    swept = lab.sweep(grid)
    assert len({line[:2] for line in swept.summary()}) == 12
    table = swept.tidy().filter(round=50)
    assert table.select("losses", "delays").n_unique() == 12
    texts = table["delays"].unique(maintain_order=True).to_list()
    assert texts[2:] == ["GivenDelays([1, 2])", "Late(by=3)", "Late(by=3) 2", "Late(by=4)"]
    assert all(re.fullmatch(r"GivenDelays\(5000, #\w{8}\)", text) for text in texts[:2])
    assert not any("0x" in text or "\n" in text for text in [*texts, *table["losses"]])
    same = lab.sweep({**grid, "delays": ["none", "fixed:d=3", "none"], "losses": "wave"})
    assert [line[1] for line in same.summary()] == ["none", "fixed:d=3"]


def test_settings_of_algorithms_are_columns() -> None:
    assert settings_of("algorithm", "bold") == {}
    assert settings_of("algorithm", "mine.py:My:scale=2,eta=0.5,kind=x") == {
        "algorithm_scale": 2,
        "algorithm_eta": 0.5,
        "algorithm_kind": "x",
    }
    assert settings_of("algorithm", "advanced:discard=true") == {"algorithm_discard": True}
    assert settings_of("algorithm", Shadow(scale=2.0))["algorithm_scale"] == 2.0
    mine = lab.Algorithm("mine", "-", "-", "nothing", "-", lambda _: Shadow())
    table = lab.sweep({"algorithms": [mine, "uniform"], "rounds": 50, "seeds": 1}).tidy()
    assert table["algorithm"].unique().sort().to_list() == ["mine", "uniform"]


def test_rules_of_my_own_are_an_axis_too() -> None:
    delays = [lab.Fixed(3), lab.Permuted(lab.Geometric(5.0))]
    table = lab.sweep({"delays": delays, "algorithms": "uniform", "rounds": 50, "seeds": 1}).tidy()
    assert table.filter(round=50).select("delays", "delays_d", "delays_mean").rows() == [
        ("Fixed(d=3)", 3, None),
        ("Permuted(of=Geometric(mean=5.0))", None, 5.0),
    ]


def test_a_sweep_continues_and_shares_games_with_comparisons(tmp_path: Path, monkeypatch: Any) -> None:
    first = lab.sweep(GRID, folder=tmp_path)
    messages: list[str] = []
    with monkeypatch.context() as patch:
        patch.setattr(games, "play_whole", None)  # nothing can be played
        again = lab.sweep(GRID, folder=tmp_path, tell=messages.append)
        assert again.tidy().equals(first.tidy())
        lab.compare(again.points[3].comparison, folder=tmp_path, tell=messages.append)
    assert messages == [f"{n} of {n} games were in {tmp_path} already" for n in (108, 6)]
    lab.sweep({**GRID, "arms": [2, 3]}, folder=tmp_path, tell=messages.append)
    assert messages[-1] == f"54 of 108 games were in {tmp_path} already"


def test_an_interrupted_sweep_shows_what_is_finished(tmp_path: Path, monkeypatch: Any) -> None:
    play, begun, finished = games.play_whole, list[Any](), list[Any]()

    def interrupted(*arguments: Any) -> Any:
        begun.append(arguments)
        if len(begun) == 20:
            raise KeyboardInterrupt
        finished.append(play(*arguments))
        return finished[-1]

    with monkeypatch.context() as patch:
        patch.setattr(games, "play_whole", interrupted)
        with pytest.warns(
            UnfinishedWarning, match=r"^interrupted\. The results lack \d+ of 54 algorithms on a problem"
        ) as caught:
            swept = lab.sweep(GRID, folder=tmp_path)
    assert caught[0].filename == __file__
    assert not swept.is_whole
    assert 0 < swept.tidy().filter(round=200).height <= 20
    messages: list[str] = []
    assert lab.sweep(GRID, folder=tmp_path, tell=messages.append).is_whole
    assert 19 <= len(finished) < 108  # one more may have begun before the others were told to stop
    assert messages == [f"{len(finished)} of 108 games were in {tmp_path} already"]


def test_the_command_writes_the_table(tmp_path: Path) -> None:
    path, out = tmp_path / "grid.toml", tmp_path / "out"
    path.write_text(
        'losses = "bernoulli:gap={gap}"\ngap = [0.1, 0.2]\nalgorithms = ["uniform"]\nrounds = 100\nseeds = 2\n'
    )
    output = invoke("sweep", str(path), "--out", str(out))
    assert "bernoulli:gap=0.2" in output
    assert "sweep.csv and sweep.parquet are in" in output
    table = lab.sweep(path).tidy().drop("seconds")
    assert polars.read_parquet(out / "sweep.parquet").drop("seconds").equals(table)
    assert polars.read_csv(out / "sweep.csv").drop("seconds").equals(table)
    assert "4 of 4 games were in" in invoke("sweep", str(path), "--out", str(out))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"armes": 3}, "unknown setting 'armes'. Did you mean arms"),
        ({"gap": []}, "gap has no values"),
        ({"losses": "bernoulli:gap={size}"}, "unknown setting 'gap'"),
        ({"losses": ["bernoulli:gap={gap}", "sine:period={period}"]}, r"\{period\} has no values"),
        ({"losses": "bernoulli:gap={bound}", "bound": 0.1}, "a parameter cannot be called bound"),
        ({"delays": "fixed:d={losses_d}", "losses_d": 1, "d": 1}, "a parameter cannot be called losses_d"),
        ({"gap": [0.1, 0.9]}, r"mean - gap must lie in \[0, 1\]"),
        ({"arms": [2, 1]}, "arms must be a whole number from 2"),
        ({"algorithms": ["zs20-{kind}", "uniform", "zs20-simple", "boldd"]}, "unknown algorithm 'boldd'"),
    ],
)
def test_wrong_grids_are_refused_before_any_work(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        as_grid({**GRID, **changes}).points()


def test_an_array_is_an_axis() -> None:
    one, other = (as_grid({**GRID, "gap": gaps}) for gaps in ([0.1, 0.2], np.array([0.1, 0.2])))
    assert one == other


def test_files_that_are_no_grid_are_refused(tmp_path: Path) -> None:
    for wrong in (None, 3, [GRID]):
        with pytest.raises(InvalidInput, match="give a mapping of settings or the path of a TOML file"):
            lab.sweep(wrong)  # type: ignore[arg-type]
    (tmp_path / "wrong.toml").write_text("arms = ")
    for name, message in [("wrong.toml", "wrong.toml is not a TOML file"), ("missing.toml", "No such file")]:
        with pytest.raises(InvalidInput, match=message):
            lab.sweep(tmp_path / name)
