"""No bound that the lab shows exceeds the number of rounds."""

import math
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from belated import bounds, cli, lab
from belated.lab.comparisons import figure
from belated.tunings import Means, Shadow, Simple

N, DELAY = 800, 20


def infinite(name: str, bound: Any) -> lab.Algorithm:
    return lab.Algorithm(name, "", "-", "-", "-", player=lambda _: Simple(), bound=lambda _: bound)


PLAYERS = ["means", "means:scale=2", Means(), Shadow(), "skipper", infinite("infinite", math.inf), infinite("five", 5)]


@pytest.fixture(scope="module")
def results() -> lab.Results:
    return lab.compare(lab.Comparison(PLAYERS, "bernoulli:gap=0.2", f"fixed:d={DELAY}", arms=5, rounds=N, seeds=2))


def test_a_bound_above_n_is_n(results: lab.Results) -> None:
    shown = {row.algorithm.name: row.bound for row in results.rows}
    assert bounds.means_worst_case(5, [DELAY] * N) > N
    assert bounds.certificate(5, [DELAY] * N, Shadow()) < N
    assert shown["means"] == shown["means:scale=2"] == shown["Means()"] == shown["infinite"] == N
    assert shown["Shadow()"] == bounds.certificate(5, [DELAY] * N, Shadow())
    assert shown["five"] == 5


def test_all_tables_show_it(results: lab.Results) -> None:
    by_name = {line[0]: line[5] for line in results.summary()}
    assert by_name["means"] == by_name["infinite"] == "800"
    assert "inf" not in results.to_markdown().replace("infinite", "")
    assert r"\infty" not in results.to_latex()
    [line] = [line for line in results.to_latex().splitlines() if line.startswith("means &")]
    assert line.split(" & ")[3] == "$800$"


def test_the_figure_shows_it(results: lab.Results) -> None:
    look = figure.look_of(None, None, None, None)
    labels = [figure._label(row, "expected", look) for row in results.rows]
    assert "means (bound 800)" in labels
    assert "infinite (bound 800)" in labels


def test_a_sweep_and_its_files_have_it(tmp_path: Path) -> None:
    grid = tmp_path / "grid.toml"
    lines = ['algorithms = ["means", "zs20-advanced"]', 'losses = "wave"', f'delays = "fixed:d={DELAY}"']
    grid.write_text("\n".join([*lines, f"rounds = [{N}, {2 * N}]", "seeds = 2"]))
    swept = lab.sweep(grid)
    table = swept.tidy()
    assert (table["bound"] <= table["rounds"]).all()
    assert table.filter(algorithm="means", rounds=N)["bound"].unique().to_list() == [N]
    assert {line[9] for line in swept.summary() if line[4] == "means"} == {"800", "1,600"}
    output = CliRunner().invoke(cli.app, ["sweep", str(grid)], env={"COLUMNS": "200"}).output
    [line] = [line.split() for line in output.splitlines() if " means " in line and " 800 " in line]
    assert line.count("800") == 2  # n and the bound


def test_kept_games_have_it_too(tmp_path: Path) -> None:
    comparison = lab.Comparison(["means"], "wave", f"fixed:d={DELAY}", rounds=N, seeds=1)
    assert [lab.compare(comparison, folder=tmp_path).rows[0].bound for _ in range(2)] == [N, N]


def test_the_formula_itself_stays(results: lab.Results) -> None:
    setting = lab.Setting(results.comparison.problem, 0, results.comparison.problem.draw_delays(0))
    assert lab.find("means").bound(setting) == bounds.means_worst_case(5, [DELAY] * N)
