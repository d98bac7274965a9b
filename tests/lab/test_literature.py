"""Problems of the literature, and the verdicts on their published numbers."""

import csv
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from belated import bounds, cli, lab
from belated.arrays import Floats
from belated.cli import reproduce as command
from belated.errors import InvalidInput
from belated.lab.games.play import play
from belated.lab.literature import PAPERS, Case, Paper, Published
from belated.lab.literature.changing_items import ChangingItems, _by_round, _Table
from belated.lab.literature.games import by_steps
from belated.lab.literature.naming import CASES, PROBLEMS, from_literature, settings_of_problem
from belated.lab.literature.papers import dzhoha, li_2019
from belated.lab.literature.papers.chapelle_li_2011 import TABLE_1
from belated.lab.literature.reproduce import Verdict, mean_of, rows_of
from belated.lab.literature.systems import MAKERS, maker_of
from belated.lab.literature.tables import published_cell
from belated.progress import Progress


def test_names_are_unique_and_every_system_is_known() -> None:
    cases = [case for paper in PAPERS for case in paper.cases]
    assert len(cases) == len(CASES)
    assert len({paper.name for paper in PAPERS}) == len(PAPERS)
    for paper in PAPERS:
        assert bool(paper.cases) != bool(paper.note), paper.name
    for case in cases:
        for published in case.published:
            assert published.same_as in {None, *case.systems}, case.name
        for system in case.systems:
            assert system in MAKERS or lab.find(system), case.name


def test_the_ratios_of_chapelle_and_li_are_as_printed() -> None:
    ratios = {1: 2.65, 3: 2.68, 10: 2.84, 32: 2.98, 100: 3.22, 316: 3.60, 1000: 3.82}  # the last line of their table
    for delta, (thompson, ucb) in TABLE_1.items():
        assert ucb / thompson == pytest.approx(ratios[delta], abs=0.006)


def test_the_total_delay_of_li_is_as_printed() -> None:
    problem = from_literature("li-2019")
    assert bounds.clip(problem.draw_delays(seed=3)).sum() == 2569
    first, *_, last = np.vstack(list(li_2019.SuddenChange().blocks(5, 2000, 0, np.random.default_rng(0))))
    np.testing.assert_allclose(first, 0.2 * abs(math.cos(1)) * np.arange(1, 6))
    np.testing.assert_allclose(last, 0.1 * abs(math.sin(4000)) * np.arange(1, 6))


def test_the_delays_of_the_stroke_trial_are_as_printed() -> None:
    assert dzhoha.DAYS.size == round(279 / (0.09039574 * 149 / 70))  # the first bar of the notebook's histogram
    late = dzhoha.PER_DAY * (dzhoha.DAYS.mean() + 1)
    averages = [rate * late + (1 - rate) * 14 * dzhoha.PER_DAY for rate in dzhoha.MORTALITY]
    assert min(averages) < 149.923126 < max(averages)  # its mean delay. It plays both arms
    delays = dzhoha.Deaths().draw(2, 20_000, np.random.default_rng(0))
    assert delays.min() == 11
    assert delays.mean() == pytest.approx(late, rel=0.05)


def expected_maximum(k: int) -> float:
    """E of the largest of k numbers from Beta(4, 4), by the integral of 1 - F^k."""
    x = np.linspace(0, 1, 20_001)
    density = 140 * x**3 * (1 - x) ** 3
    below = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2 * np.diff(x))])
    return float(np.trapezoid(1 - below**k, x))


@pytest.mark.parametrize("between", [False, True])
def test_without_feedback_items_are_played_at_random(between: bool) -> None:
    rounds, games = 400, 40
    game = ChangingItems(batch=10 * rounds, between=between, n_rounds=rounds, n_items=4, change=0.05)
    once = (expected_maximum(4) - 0.5) * rounds
    side_by_side = game.regrets("thompson", range(games), rounds)
    for regrets in (side_by_side, np.array([game.play(maker_of("means"), seed) for seed in range(games)])):  # type: ignore[arg-type]
        assert regrets.mean() == pytest.approx(once, abs=5 * regrets.std(ddof=1) / math.sqrt(games))
        assert regrets.std() > 0


def test_thompson_learns_the_best_item() -> None:
    still = ChangingItems(n_rounds=1500, change=1e-9, n_items=3)
    lost = (expected_maximum(3) - 0.5) * 1500
    assert still.play_thompson(n_games=20, seed=1).mean() < 0.15 * lost
    assert replace(still, batch=700).play_thompson(n_games=20, seed=1).mean() > 0.4 * lost


def test_changes_wait_for_the_end_of_their_batch_only_if_asked() -> None:
    rounds = np.array([0, 1, 9, 10, 11, 12])
    assert ChangingItems(10)._when(rounds) == {0: 1, 1: 1, 9: 1, 10: 1, 11: 1, 12: 1}
    assert ChangingItems(10, between=True)._when(rounds) == {0: 1, 10: 3, 20: 2}
    assert _by_round([{3: 2}, {3: 1, 5: 1}]) == {3: [0, 0, 1], 5: [1]}


def test_reports_of_items_that_left_are_ignored() -> None:
    table = _Table(np.array([[0.5, 0.6], [0.5, 0.6]]))
    waiting = [(t, np.array([[1, t % 2]]), np.array([[1.0, 0.0]])) for t in range(3)]
    waiting.append((3, np.array([[1, 0], [0, 0]]), np.array([[1.0, 0.0], [0.0, 1.0]])))  # two rounds
    table.replace(np.array([0]), np.array([1]), np.array([0.9]), round=2)
    table.learn(waiting)
    assert waiting == []
    assert table.best.tolist() == [0.9, 0.6]
    np.testing.assert_array_equal(table.successes, [[0, 2], [1, 0]])  # game 0 had another item in rounds 0 and 1
    np.testing.assert_array_equal(table.failures, [[1, 0], [3, 1]])


def test_a_game_by_steps_is_the_game_of_the_lab() -> None:
    problem = lab.Problem(lab.Bernoulli(means=[0.3, 0.5, 0.2]), lab.Fixed(4), n_arms=3, n_rounds=300)
    curves = play(maker_of("delayed-ucb1"), problem, [7], checkpoints=[300])
    losses = np.vstack(list(problem.loss_blocks(7, problem.draw_delays(7))))
    with Progress("", 1) as progress:
        regrets = by_steps(maker_of("delayed-ucb1"), problem, 7, progress)
    assert regrets.mixed == pytest.approx(curves.suffered[0, -1] + losses.sum(axis=0).min() - 0.2 * 300)
    assert 0 < regrets.means < 0.3 * 300


class Told:
    """A game whose regrets are given."""

    n_rounds = 100

    def regrets(self, system: str, seeds: Sequence[int], n_rounds: int) -> Floats:
        assert system in ("same", "other")
        return np.array([99.0, 101.0] * (len(seeds) // 2)) * n_rounds / self.n_rounds


def verdict(published: Published, **settings: object) -> Verdict:
    case = Case("case", "a case", Told(), ("same", "other"), (published,), seeds=16, **settings)  # type: ignore[arg-type]
    rows = list(rows_of(Paper("paper", "", "", "", (case,))))
    assert [row.system for row in rows] == ["theirs", *(["other"] if published.same_as else ["same", "other"])]
    assert {row.verdict for row in rows[1:]} == {Verdict.BESIDE}
    return rows[0].verdict


def test_verdicts_take_the_noise_of_both_and_the_error_of_reading() -> None:
    half = 2.125 * 1.0328 / 4  # Student's quantile for 15 degrees of freedom, by the approximation in use
    assert verdict(Published("theirs", 100 + 0.95 * half, "same")) is Verdict.AGREES
    assert verdict(Published("theirs", 100 + 1.05 * half, "same")) is Verdict.DIFFERS
    assert verdict(Published("theirs", 100 + 1.05 * half, "same"), runs=100) is Verdict.AGREES
    assert verdict(Published("theirs", 102, "same")) is Verdict.DIFFERS
    assert verdict(Published("theirs", 102, "same", reading=2)) is Verdict.AGREES
    assert verdict(Published("theirs", 102, "same", deviation=11), runs=100) is Verdict.AGREES
    assert verdict(Published("theirs", 102, "same", deviation=2), runs=100) is Verdict.DIFFERS
    assert verdict(Published("theirs", 100, None)) is Verdict.BESIDE
    assert verdict(Published("theirs", 50, "same"), quick_rounds=50) is Verdict.SHORTER


def test_a_trimmed_mean_leaves_out_both_ends() -> None:
    regrets = np.append(np.arange(10.0), [1e6])
    assert mean_of(regrets, 0.1)[0] == 5.0  # of 1 to 9
    mean, half = mean_of(np.random.default_rng(0).normal(size=4000), 0.1)
    assert abs(mean) < half
    assert half == pytest.approx(1.96 * math.sqrt(1.0605 / 4000), rel=0.05)  # its variance for a normal law


def test_a_trimmed_mean_keeps_games_with_equal_regrets() -> None:
    """Only as many games as the share are left out, also if others are equal to them."""
    regrets = np.array([10.0, 20.0] + [0.0] * 8)
    assert mean_of(regrets, 0.05) == pytest.approx(mean_of(regrets, 0))
    assert mean_of(regrets, 0.1)[0] == 10 / 8
    assert mean_of(np.full(20, 7.0), 0.1) == (7.0, 0.0)
    assert mean_of(np.append(np.zeros(29), np.ones(71)), 0.29)[0] == 1.0


def test_the_interval_of_a_trimmed_mean_is_yuens() -> None:
    regrets = np.array([77, 87, 88, 114, 151, 210, 219, 246, 253, 262, 296, 299, 306, 376, 428, 515, 666, 1310, 2611.0])
    mean, half = mean_of(regrets, 0.2)  # 3 of 19 games are left out at either end
    assert mean == pytest.approx(3675 / 13)
    ends = np.array([114.0] * 3 + regrets[3:16].tolist() + [515.0] * 3)
    assert half == pytest.approx(2.1788 * math.sqrt(((ends - ends.mean()) ** 2).sum() / (13 * 12)), rel=1e-4)


def test_names_that_are_no_problem_say_what_to_do() -> None:
    assert set(PROBLEMS) < set(CASES)
    assert from_literature("dzhoha-2021-50").delays == lab.Fixed(50)
    for name, says in {
        "gael": "Did you mean",
        "zimmert-seldin-2019": "Its problems are zimmert-seldin-2019-a,",
        "joulani-2013": "is a paper and no problem",
        "chapelle-li-2011-1": "its arms change",
    }.items():
        with pytest.raises(InvalidInput, match=says):
            from_literature(name)
    comparison = lab.Comparison(("means",), **settings_of_problem("gael-2020-apart"), seeds=1)
    assert comparison.problem == from_literature("gael-2020-apart")


def test_the_page_has_every_setting_and_every_published_number() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reproduction.md").read_text()
    sections = dict(section.split("\n", 1) for section in page.split("\n### ")[1:])
    assert set(sections) == {paper.name for paper in PAPERS}
    for paper in PAPERS:
        section = sections[paper.name]
        for words in (paper.citation, paper.settings, paper.read, paper.note):
            assert words in section, paper.name
        rows = [
            (case.title, published.system, published_cell(published.value, published.reading))
            for case in paper.cases
            for published in case.published
        ]
        known = {(case.name, published.same_as) for case in paper.cases for published in case.published}
        rows += [
            (case.title, system, "-")
            for case in paper.cases
            for system in case.systems
            if (case.name, system) not in known
        ]
        assert section.count("\n| ") - bool(rows) == len(rows), paper.name
        for row in rows:
            assert f"\n| {' | '.join(row)} | " in section, row


def invoke(*words: str) -> str:
    result = CliRunner().invoke(cli.app, ["reproduce", *words], catch_exceptions=False, env={"COLUMNS": "140"})
    assert result.exit_code == 0, result.output
    return result.output


SMALL = Paper(
    "small-2026",
    "A small paper",
    "two arms",
    "nowhere",
    (Case("small-2026", "a case", Told(), ("same",), (Published("Theirs", 100, "same"),), seeds=4),),
)


def test_the_command_lists_and_plays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = invoke()
    assert all(paper.name in listed for paper in PAPERS)
    monkeypatch.setattr(command, "PAPERS", (SMALL, PAPERS[-1]))
    shown = invoke("all", "--out", str(tmp_path / "out"))
    assert "Not played, because its experiments could not be read" in shown
    assert "agrees" in shown
    with (tmp_path / "out" / "reproduction.csv").open() as file:
        (row,) = csv.DictReader(file)
    assert (row["case"], row["published"], row["ours"], row["seeds"]) == ("small-2026", "100", "100.0", "4")
    page = (tmp_path / "out" / "reproduction.md").read_text()
    assert "| a case | Theirs | 100 | 100 ± 1.8 | 4 | agrees |" in page


def test_what_is_finished_is_kept_after_an_interrupt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stopped(Told):
        def regrets(self, system: str, seeds: Sequence[int], n_rounds: int) -> Floats:
            raise KeyboardInterrupt

    stopped = replace(SMALL, cases=(*SMALL.cases, replace(SMALL.cases[0], name="stopped", game=Stopped())))
    monkeypatch.setattr(command, "PAPERS", (stopped,))
    result = CliRunner().invoke(cli.app, ["reproduce", "all", "--out", str(tmp_path)])
    assert result.exit_code != 0
    assert len((tmp_path / "reproduction.csv").read_text().splitlines()) == 2


@pytest.mark.parametrize(
    ("losses", "is_divided"), [([], True), (["--losses", "wave"], False), (["--problem", "dzhoha-2021-0"], False)]
)
def test_a_comparison_says_if_losses_are_divided(losses: list[str], is_divided: bool) -> None:
    words = ["compare", "--problem", "li-2019", *losses, "--algorithms", "uniform", "--rounds", "20", "--seeds", "2"]
    shown = CliRunner().invoke(cli.app, words, catch_exceptions=False).output
    assert ("The losses of li-2019 are divided by 2, to be at most 1. So regret is, too." in shown) == is_divided


def test_one_paper_is_played_in_small() -> None:
    (case,) = li_2019.PAPER.cases
    small = replace(li_2019.PAPER, cases=(replace(case, systems=("means", "thompson"), seeds=2),))
    *published, means, thompson = rows_of(small)
    assert [row.published for row in published] == [142.6, 188.8, 208.2, 298.4]
    assert all(math.isnan(row.ours) for row in published)
    for row in (means, thompson):
        assert 0 < row.ours < 200  # losses were halved, and the regret doubled again. Uniform play has 637
