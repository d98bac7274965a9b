"""Pseudo-regret, dynamic regret, arms played and paired differences by their definitions. Tables and figures."""

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest
from matplotlib import image
from typer.testing import CliRunner

from belated import FTRL, Decision, cli, lab
from belated.errors import InvalidInput
from belated.lab.comparisons import tables
from belated.lab.comparisons.tables import HEADINGS
from belated.lab.games.curves import MEASURES
from belated.lab.intervals import half_width
from belated.tunings import Means, Shadow, Simple
from tests.support.catalogue import ftrl

FOUR = ("means", "zs20-simple", "uniform", "best-arm")
SMALL = lab.Comparison(FOUR, "bernoulli:gap=0.3", "fixed:d=5", arms=3, rounds=600, seeds=4)


@pytest.fixture(scope="module")
def results() -> lab.Results:
    return lab.compare(SMALL, workers=2)


class Uneven(lab.Losses):
    """Means that differ in every round, in blocks of 5 rows. The losses are in blocks of 7."""

    def mean_blocks(self, n_arms: int, n_rounds: int, delay: int, generator: np.random.Generator) -> Any:
        for start in range(0, n_rounds, 5):
            rounds = np.arange(start, min(start + 5, n_rounds))
            yield (np.arange(n_arms) + rounds[:, None] ** 2) % 7 / 7

    def blocks(self, n_arms: int, n_rounds: int, delay: int, generator: np.random.Generator) -> Any:
        means = np.vstack(list(self.mean_blocks(n_arms, n_rounds, delay, generator)))
        for start in range(0, n_rounds, 7):
            rows = means[start : start + 7]
            yield (generator.random(rows.shape) < rows).astype(np.float64)


class Unknown(lab.Losses):
    """Losses that do not say their means."""

    def blocks(self, n_arms: int, n_rounds: int, delay: int, generator: np.random.Generator) -> Any:
        yield generator.random((n_rounds, n_arms))


RULES = [lab.Bernoulli(gap=0.2), lab.Shifting(phases=3), lab.Constrained(), lab.Sine(), lab.BlockCoins(), Uneven()]


@pytest.mark.parametrize("losses", RULES, ids=lambda rule: type(rule).__name__)
@pytest.mark.parametrize("tuning", [Simple(), Shadow(), Means()], ids=lambda tuning: type(tuning).__name__)
def test_regret_of_means_and_arms_played_by_their_definition(losses: lab.Losses, tuning: Any) -> None:
    problem = lab.Problem(losses, lab.Geometric(10.0), n_arms=4, n_rounds=500)
    drawn: list[int] = []

    class Recorded(FTRL):  # type: ignore[misc]
        def ask(self) -> Decision:  # type: ignore[override]
            decision = super().ask()
            drawn.append(decision.arm)
            return decision

    learner = lab.play(lambda k, seed: Recorded(k, tuning, seed=seed), problem, [3], checkpoints=[1, 7, 100])
    compiled = lab.play(tuning, problem, [3], checkpoints=[1, 7, 100])
    delays = problem.draw_delays(3)
    blocks = problem.mean_blocks(3, delays)
    assert blocks is not None
    means = np.vstack(list(blocks))
    for column, n in enumerate(compiled.checkpoints):
        paid = means[np.arange(n), drawn[:n]].sum()
        assert compiled.pseudo[0, column] == pytest.approx(paid - means[:n].sum(axis=0).min(), abs=1e-9)
        assert compiled.dynamic[0, column] == pytest.approx(paid - means[:n].min(axis=1).sum(), abs=1e-9)
        assert compiled.arms[0, column].tolist() == np.bincount(drawn[:n], minlength=4).tolist()
    for kind in (*MEASURES, "arms"):
        np.testing.assert_allclose(getattr(compiled, kind), getattr(learner, kind), rtol=0, atol=1e-9)
    np.testing.assert_allclose(compiled.shares.sum(axis=1), 1)


def test_arms_that_are_alike_have_no_pseudo_regret() -> None:
    problem = lab.Problem(lab.Bernoulli(gap=0), lab.NoDelay(), n_arms=10, n_rounds=10_000)
    curves = lab.play("uniform", problem, range(8))
    assert curves.mean[-1] > 40
    assert not curves.pseudo.any()
    assert not curves.dynamic.any()


def test_losses_without_chance_have_the_pseudo_regret_of_the_drawn_arms() -> None:
    problem = lab.Problem(lab.Wave(), lab.Fixed(10), n_arms=4, n_rounds=300)
    curves = lab.play(Simple(), problem, range(2))
    np.testing.assert_allclose(curves.pseudo, curves.suffered, atol=1e-9)
    assert (curves.dynamic >= curves.pseudo - 1e-9).all()


def test_means_that_nobody_knows_give_no_number() -> None:
    comparison = lab.Comparison(("means", "zs20-simple"), Unknown(), arms=3, rounds=50, seeds=2)
    results = lab.compare(comparison)
    assert np.isnan(results.rows[0].curves.pseudo).all()
    assert np.isnan(results.rows[0].pseudo)
    assert results.summary()[0][3:5] == ("-", "-")
    assert results.tidy()["pseudo_regret"].null_count() == results.tidy().height
    assert "--" in results.to_latex()
    assert all(np.isnan(one.mean) and one.winner is None for one in results.differences(of="pseudo"))


def test_quantiles_are_over_the_seeds() -> None:
    problem = lab.Problem(lab.Bernoulli(), lab.NoDelay(), n_arms=3, n_rounds=100)
    curves = lab.play(Simple(), problem, range(7), checkpoints=[50])
    assert curves.quantile(0.5).tolist() == [np.median(curves.expected[:, 0]), np.median(curves.expected[:, 1])]
    assert curves.quantile(1, of="dynamic")[-1] == curves.dynamic[:, -1].max()
    with pytest.raises(InvalidInput, match=r"a quantile must lie in \[0, 1\]"):
        curves.quantile(90)
    with pytest.raises(InvalidInput, match=r"unknown regret 'pseudos'\. Did you mean pseudo"):
        curves.quantile(0.5, of="pseudos")  # type: ignore[arg-type]


def test_differences_are_paired_by_seed(results: lab.Results) -> None:
    """Student's t with three degrees of freedom is 3.182."""
    last = {row.algorithm.name: row.curves.expected[:, -1] for row in results.rows}
    for one in results.differences("uniform"):
        by_seed = last[one.algorithm] - last["uniform"]
        assert one.mean == pytest.approx(by_seed.mean())
        assert one.interval == pytest.approx(3.182 * by_seed.std(ddof=1) / 2)
        assert one.winner == (one.algorithm if by_seed.mean() < -one.interval else None)
    assert {one.algorithm for one in results.differences("uniform")} == {"means", "zs20-simple", "best-arm"}
    assert {one.against for one in results.differences()} == {"means"}  # the best arm does not learn
    assert {one.winner for one in results.differences()} >= {"means", "best-arm"}
    with pytest.raises(InvalidInput, match=r"unknown algorithm 'mean'\. Did you mean means"):
        results.differences("mean")


class ToldAll:
    """Is told the losses of all arms."""

    fingerprint = "1"
    feedback = "vector"

    def __init__(self, n_arms: int, *, seed: int) -> None:
        self.round, self.totals = 0, np.zeros(n_arms)

    def ask(self) -> Decision:
        self.round += 1
        return Decision(self.round, int(self.totals.argmin()), 1.0)

    def tell_vector(self, _round: int, losses: Any) -> None:
        self.totals += losses


def test_no_lower_bound_is_shown_for_a_learner_that_is_told_all_losses(tmp_path: Path) -> None:
    """It may have less regret, because the bound is for those who see one loss in a round."""
    players: list[Any] = [lab.named("told all", ToldAll), "solid", "uniform"]
    for _ in range(2):  # the second time from the folder
        results = lab.compare(lab.Comparison(players, arms=3, rounds=200, seeds=2), folder=tmp_path)
        rows = {row.algorithm.name: row for row in results.rows}
        assert rows["told all"].lower is rows["told all"].ratio is rows["solid"].ratio is None
        assert rows["uniform"].ratio is not None
        lines = {line[0].rstrip(" *"): line for line in results.summary()}
        assert lines["told all"][HEADINGS.index("/ lower")] == "-"


def test_an_interval_of_differences_is_narrow_where_the_problems_differ() -> None:
    """Two learners on the same losses. Their regrets move together from seed to seed."""
    comparison = lab.Comparison(("means", "shadow"), "bernoulli:gap=0", "none", arms=2, rounds=2000, seeds=8)
    [one] = lab.compare(comparison, workers=2).differences()
    regrets = [row.curves.expected[:, -1] for row in lab.compare(comparison).rows]
    assert one.interval < 0.5 * float(np.hypot(half_width(regrets[0]), half_width(regrets[1])))


def test_one_seed_has_no_winner() -> None:
    [one] = lab.compare(lab.Comparison(("means", "uniform"), rounds=50, seeds=1)).differences()
    assert np.isnan(one.interval)
    assert one.winner is None


def test_the_command_says_why_one_seed_has_no_second_table() -> None:
    outputs = [
        CliRunner().invoke(cli.app, ["compare", "--algorithms", "means,uniform", "--rounds", "50", "--seeds", n]).output
        for n in ("1", "2")
    ]
    assert ["So no interval and no winner is shown" in output for output in outputs] == [True, False]
    assert ["regret minus that of" in output for output in outputs] == [False, True]


def test_plays_count_every_round(results: lab.Results) -> None:
    table = results.plays()
    assert table.columns == ["algorithm", "seed", "round", "arm", "plays"]
    sums = table.group_by("algorithm", "seed", "round").agg(polars.col("plays").sum())
    assert (sums["plays"] == sums["round"]).all()
    best = table.filter((polars.col("algorithm") == "best-arm") & (polars.col("round") == 600))
    assert sorted(best.filter(polars.col("seed") == 0)["plays"]) == [0, 0, 600]


def test_latex_has_one_best_learner_in_bold_and_escapes_names(results: lab.Results) -> None:
    text = results.to_latex("Losses of 5%, d_t = 5", "tab:small")
    lines = text.splitlines()
    assert lines[0] == r"\begin{table}"
    assert lines[2:4] == [r"\caption{Losses of 5\%, d\_t = 5}", r"\label{tab:small}"]
    body = lines[lines.index(r"\midrule") + 1 : lines.index(r"\bottomrule")]
    assert len(body) == 4
    assert all(line.count("&") == len(tables.LATEX_HEADINGS) - 1 and line.endswith(r"\\") for line in body)
    assert [line.split(" ")[0] for line in body if "mathbf" in line] == ["means"]
    assert text.count(r"\mathbf") == 2
    assert results.to_latex().startswith(r"\begin{tabular}{lrrrr}")
    assert tables.escaped(r"a\b~c^d") == r"a\textbackslash{}b\textasciitilde{}c\textasciicircum{}d"
    assert tables.escaped("[a] *b") == r"{[}a] {*}b"  # after a line break they would be its arguments
    assert tables.escaped("a<b>|c|\nd") == r"a\textless{}b\textgreater{}\textbar{}c\textbar{} d"
    assert re.search(r"\$\d+\{,\}\d{3}\$", lab.compare(lab.Comparison(("dew",), rounds=9000, seeds=1)).to_latex())


@pytest.mark.parametrize(
    ("value", "text"), [(-0.04, "0.0"), (-1e-18, "0.0"), (-0.06, "-0.1"), (-99.99, "-100.0"), (-2000.4, "-2,000")]
)
def test_no_number_is_minus_zero(value: float, text: str) -> None:
    assert tables.short(value) == text


def test_markdown_is_a_table(results: lab.Results) -> None:
    lines = results.to_markdown().splitlines()
    assert len(lines) == 2 + 4
    assert {line.count("|") for line in lines} == {len(tables.HEADINGS) + 1}
    assert lines[2].startswith("| best-arm | 0.0 | 0.0 |")


KINDS = {
    "algorithm": ("object", "str"),
    "seed": ("int64",),
    "round": ("int64",),
    "is_suspicious": ("bool",),
    "is_partial": ("bool",),
}


def test_pandas_gets_plain_columns(results: lab.Results) -> None:
    pandas = pytest.importorskip("pandas")
    frame, table = results.to_pandas(), results.tidy()
    assert list(frame.columns) == table.columns
    assert isinstance(frame.index, pandas.RangeIndex)
    for name in table.columns:
        assert str(frame[name].dtype) in KINDS.get(name, ("float64",))
        assert frame[name].tolist() == table[name].to_list()


def test_pandas_that_is_missing_is_told(results: lab.Results, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ModuleNotFoundError, match=r"pandas is missing\. Install it with `pip install pandas`"):
        results.to_pandas()


@pytest.mark.parametrize(("width", "inches"), [("single", 3.35), ("double", 6.9), (5, 5.0)])
def test_a_figure_for_a_paper_has_its_size(results: lab.Results, tmp_path: Path, width: Any, inches: float) -> None:
    results.figure(tmp_path / "paper.png", width=width, height=2.5)
    assert image.imread(tmp_path / "paper.png").shape[:2] == (750, round(inches * 300))


def test_a_pdf_has_fonts_that_journals_take_and_does_not_change(results: lab.Results, tmp_path: Path) -> None:
    for name in ("one.pdf", "two.pdf"):
        results.figure(tmp_path / name, width="single", font_size=7, of="pseudo", scale="linear")
    content = (tmp_path / "one.pdf").read_bytes()
    assert b"/FontFile2" in content
    assert b"/Type3" not in content
    assert b"/MediaBox [ 0 0 241.2 " in content  # 3.35 inches of 72 points
    assert content == (tmp_path / "two.pdf").read_bytes()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"width": "doubel"}, "unknown width 'doubel'. Did you mean double"),
        ({"width": 0}, "width must be a positive finite number"),
        ({"width": 500}, "a figure must be 1 to 100 inches wide and high, got 500"),
        ({"width": 5, "height": 0.1}, "a figure must be 1 to 100 inches"),
        ({"font_size": -1}, "font_size must be a positive finite number"),
        ({"scale": "logarithmic"}, "unknown scale 'logarithmic'. Did you mean log"),
        ({"of": "regret"}, "unknown regret 'regret'"),
    ],
)
def test_wrong_figures_are_refused(results: lab.Results, tmp_path: Path, settings: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        results.figure(tmp_path / "wrong.png", **settings)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("regret.pgn", r"^unknown ending of a figure 'pgn'\. Did you mean png"),
        ("regret.xyz", r"^unknown ending of a figure 'xyz'.*\bpdf\b"),
        ("none/regret.png", r"^cannot write the figure .*none/regret\.png\. No such file or directory$"),
    ],
)
def test_a_figure_that_cannot_be_written_is_refused(
    results: lab.Results, tmp_path: Path, path: str, message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        results.figure(tmp_path / path)
    assert not list(tmp_path.iterdir())


def test_the_same_delays_have_the_same_lower_bound_however_they_are_given(tmp_path: Path) -> None:
    path = tmp_path / "delays.csv"
    path.write_text("delay\n" + "100\n" * 5)
    lower: dict[str, Any] = {
        delays: lab.compare(lab.Comparison(("uniform",), delays=delays, rounds=2000, seeds=2)).rows[0].lower
        for delays in ("fixed:d=100", "permuted:fixed:d=100", str(path), "uniform:largest=200")
    }
    assert lower["fixed:d=100"] == lower["permuted:fixed:d=100"] == lower[str(path)]
    assert 0.5 < lower["uniform:largest=200"] / lower["fixed:d=100"] < 1  # with the same mean


def test_a_learner_by_ask_and_tell_has_its_arms_too() -> None:
    problem = lab.Problem(lab.Bernoulli(), lab.Fixed(3), n_arms=3, n_rounds=80)
    np.testing.assert_array_equal(lab.play(ftrl(Simple()), problem, [1]).arms, lab.play(Simple(), problem, [1]).arms)


def test_a_world_whose_delays_depend_on_the_arm_has_pseudo_regret_but_no_lower_bound() -> None:
    lost = lab.LostByArm(lab.Fixed(3), (0.0, 0.5, 0.9))
    results = lab.compare(lab.Comparison(("means", "uniform"), "bernoulli", lost, arms=3, rounds=100, seeds=2))
    row = results.rows[0]
    assert (row.bound, row.lower, row.ratio) == (None, None, None)
    assert np.isfinite(row.curves.pseudo).all()
    assert (row.curves.arms.sum(axis=2) == row.curves.checkpoints).all()
    assert results.summary()[0][6] == "-"
    assert "--" in results.to_latex()


def test_losses_that_react_have_regret_and_plays_but_no_means() -> None:
    def alternating(n_arms: int, _n_rounds: int, _generator: np.random.Generator) -> Any:
        arm = 0
        while True:
            arm = yield (np.arange(n_arms) == arm).astype(float)  # the arm of the round before loses

    results = lab.compare(lab.Comparison(("means", "uniform"), lab.Reacting(alternating), "none", 3, 100, 2))
    assert np.isnan(results.rows[0].pseudo)
    assert results.rows[0].lower is None
    assert results.plays().filter(polars.col("round") == 100)["plays"].sum() == 2 * 2 * 100


def test_who_sees_more_than_its_own_losses_has_no_lower_bound() -> None:
    comparison = lab.Comparison(("solid", "best-arm", "uniform"), delays="none", arms=20, rounds=200, seeds=2)
    rows = {row.algorithm.name: row for row in lab.compare(comparison).rows}
    assert rows["solid"].lower is rows["best-arm"].lower is None
    assert rows["solid"].ratio is rows["best-arm"].ratio is None
    assert (rows["uniform"].lower or 0) > 0
