"""How `belated paper` judges claims and what it writes."""

import csv
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from belated import cli, lab, paper
from belated.cli.paper import print_row
from belated.errors import InvalidInput
from belated.paper import Check, Claim, ClaimKind, ClaimResult, Effort, Finding, Verdict
from belated.paper.claim import at_most, exactly, near
from belated.paper.claims.theorem_3 import SETS, best_set
from belated.paper.report import page_of
from belated.paper.terms import follow
from belated.reports import pages
from belated.tunings import Simple, schedule

runner = CliRunner()


def claim(kind: ClaimKind, *checks: Check) -> Claim:
    return Claim(
        "made-up", "Made up", kind, ("It is so.",), lambda _: Finding("measured", checks), "Nothing is assumed."
    )


HOLDS, FAILS = exactly("one", is_true=True, measured="1 of 1"), exactly("two", is_true=False, measured="0 of 1")


def test_a_mean_is_judged_by_its_interval() -> None:
    samples = np.array([0.9, 1.0, 1.1, 1.0])  # 1 +- 0.13
    assert at_most("", samples, 1.2).verdict is Verdict.HOLDS
    assert at_most("", samples, 1.05).verdict is Verdict.UNDECIDED
    assert at_most("", samples, 0.95).verdict is Verdict.UNDECIDED
    assert at_most("", samples, 0.8).verdict is Verdict.FAILS
    assert "1 ± 0.13, limit 0.8" in at_most("", samples, 0.8).measured


def test_an_equality_fails_far_from_the_value() -> None:
    samples = np.array([0.9, 1.0, 1.1, 1.0])  # its standard error is 0.041
    assert near("", samples, 1.1).verdict is Verdict.HOLDS
    assert near("", samples, 1.3).verdict is Verdict.FAILS
    assert near("", [2.0, 2.0], 2.0).verdict is Verdict.HOLDS
    assert near("", [2.0, 2.0], 2.1).verdict is Verdict.FAILS


@pytest.mark.parametrize(
    ("kind", "checks", "verdict", "is_broken"),
    [
        (ClaimKind.THEOREM, (HOLDS, HOLDS), Verdict.HOLDS, False),
        (ClaimKind.THEOREM, (HOLDS, FAILS), Verdict.FAILS, True),
        (ClaimKind.MEASUREMENT, (HOLDS, FAILS), Verdict.FAILS, False),
        (ClaimKind.THEOREM, (HOLDS, at_most("", [0.0, 1.0], 0.5)), Verdict.UNDECIDED, False),
        (ClaimKind.THEOREM, (), Verdict.UNDECIDED, False),  # nothing judged is nothing shown
        (ClaimKind.EXPERIMENT, (), Verdict.SHOWN, False),
    ],
)
def test_the_worst_check_decides(kind: ClaimKind, checks: tuple[Check, ...], verdict: Verdict, is_broken: bool) -> None:
    (outcome,) = paper.run([claim(kind, *checks)], Effort())
    assert (outcome.verdict, outcome.is_broken) == (verdict, is_broken)
    assert outcome.headline == ("two: 0 of 1" if FAILS in checks else outcome.headline)


def test_every_claim_has_a_file_of_its_own_name() -> None:
    folder = Path(paper.__file__).parent / "claims"
    files = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    assert files == {claim.name.replace("-", "_") for claim in paper.CLAIMS}


def test_the_terms_of_the_proof_are_what_they_should_be() -> None:
    problem = lab.Problem(lab.Shifting(phases=4), lab.Geometric(10), 3, 200)
    runs = [follow(Simple(), problem, seed, Effort()) for seed in range(6)]
    for run in runs:
        assert run.estimate_gap.max() < 1e-12
        assert (np.abs(run.conjugate_gap) < run.noise).all()
        assert run.b[run.outstanding == 0] == pytest.approx(0, abs=1e-9)
        assert run.a.min() > -1e-9  # a Bregman divergence
        assert run.b.sum() > 0.1  # waiting does cost something here
        assert run.a.sum() > 1
    bias, variance = sum(run.bias.sum() for run in runs), sum(run.variance.sum() for run in runs)
    assert abs(bias) < 5 * np.sqrt(variance)


def test_the_best_set_leaves_out_what_costs_more_than_a_round() -> None:
    delays = np.zeros(400, np.int64)
    delays[[10, 200]] = 10**6
    rates = schedule(Simple(), 3, delays)
    assert best_set(delays, rates) == [11, 201]
    assert best_set(np.where(delays > 0, 1, 0), schedule(Simple(), 3, np.where(delays > 0, 1, 0))) == []
    assert SETS["S = what the tuning skips"](3, delays, rates) == []


def test_what_is_not_a_number_fails() -> None:
    assert at_most("", [float("nan"), 0.0], 1.0).verdict is Verdict.FAILS
    assert near("", [float("nan"), 1.0], 1.0).verdict is Verdict.FAILS


def test_indices_and_exponents_are_printed_as_such() -> None:
    assert pages.mathematics("o_t < n^(3/4) & n^0.71") == "o<sub>t</sub> &lt; n<sup>3/4</sup> &amp; n<sup>0.71</sup>"
    assert pages.mathematics("a_long_name outcome_time zs20-x x_y_z") == "a_long_name outcome_time zs20-x x_y_z"


def write_page(folder: Path) -> Path:
    from belated.reports import Figure, Table, columns_of, lines  # noqa: PLC0415

    columns = columns_of(("what", "round", "regret"), [("a <b>", 1, 2.0), ("a <b>", 2, 3.5), ("c, d", 1, 1.0)])
    figure = Figure("curve", "A <curve>", columns, lines("round", "regret", "what"))
    found = Finding("1 < 2", [HOLDS], [figure], [Table("Numbers", ("a", "b"), [("x & y", "1")])])
    outcome = ClaimResult(claim(ClaimKind.THEOREM), found, Verdict.HOLDS, 1.5)
    named = outcome._replace(claim=paper.CLAIMS[0])
    return pages.write(page_of([named], Effort(seed=7)), folder)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_page(tmp_path_factory.mktemp("page") / "out")


def test_the_page_stands_alone_and_the_files_beside_it_hold_the_same(page: Path) -> None:
    html, out = page.read_text(), page.parent
    assert not re.search(r"(src|href)=\"(?!data:|#|figures/)", html)  # nothing is fetched, only links to the pictures
    assert "<script" not in html
    assert "1 &lt; 2" in html
    assert "x &amp; y" in html
    assert "A &lt;curve&gt;" in html
    assert (out / "figures" / "curve.png").read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in (out / "figures" / "curve.svg").read_bytes()
    with (out / "numbers" / "curve.csv").open() as stream:
        rows = list(csv.reader(stream))
    assert rows == [["what", "round", "regret"], ["a <b>", "1", "2.0"], ["a <b>", "2", "3.5"], ["c, d", "1", "1.0"]]
    results = json.loads((out / "results.json").read_text())
    assert results["seed"] == 7
    assert {"belated", "numpy", "numba"} <= set(results["versions"])
    assert results["results"][0]["checks"] == [{"what": "one", "measured": "1 of 1", "verdict": "holds"}]


def test_the_same_page_is_written_twice(page: Path, tmp_path: Path) -> None:
    first, second = page, write_page(tmp_path / "b")
    assert first.read_text() == second.read_text()
    for kind in ("svg", "png"):
        assert (first.parent / f"figures/curve.{kind}").read_bytes() == (
            second.parent / f"figures/curve.{kind}"
        ).read_bytes()


def test_a_new_report_takes_away_what_the_one_before_left(page: Path, tmp_path: Path) -> None:
    out = Path(shutil.copytree(page.parent, tmp_path / "out"))
    (out / "figures" / "mine.png").write_text("")  # not ours
    pages.write(page_of([], Effort()), out)
    assert [path.name for path in (out / "figures").iterdir()] == ["mine.png"]
    assert list((out / "numbers").iterdir()) == []


def test_a_folder_that_cannot_be_is_refused_before_any_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInput, match="cannot write to the folder"):
        runner.invoke(cli.app, ["paper", "--out", str(tmp_path / "file")], catch_exceptions=False)


@pytest.mark.parametrize("only", ["", " , "])
def test_no_claim_at_all_is_refused(only: str) -> None:
    with pytest.raises(InvalidInput, match=r"names no claim\. The claims are the-game"):
        runner.invoke(cli.app, ["paper", "--only", only], catch_exceptions=False)


def test_a_wrong_claim_gets_the_nearest_suggested() -> None:
    with pytest.raises(InvalidInput, match=r"unknown claim 'theorem1'\. Did you mean theorem-1"):
        runner.invoke(cli.app, ["paper", "--only", "theorem1"], catch_exceptions=False)


def test_a_row_in_a_pipe_is_no_wider_than_a_page(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "10000")  # as wide as a pipe
    print_row("claim " * 50, "holds", "measured " * 50)
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 160
