"""`belated compare` and `belated list`, and what they are made of."""

import os
import signal
import threading
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest
from typer.testing import CliRunner

from belated import bounds, cli, lab
from belated.errors import InvalidInput, UnfinishedWarning
from belated.lab.algorithms import ALGORITHMS, setting_of
from belated.lab.comparisons.compare import compare
from belated.lab.comparisons.comparison import Comparison, read_toml
from belated.lab.problems.parsing import parse_delays, parse_losses
from belated.tunings import Simple

SMALL = Comparison(("zs20-simple", "tsallis-inf"), "wave", "fixed:d=20", arms=4, rounds=800, seeds=3)


def test_rows_are_ranked_and_complete() -> None:
    rows = compare(SMALL, workers=2).rows
    assert [row.algorithm.name for row in rows] == ["zs20-simple", "tsallis-inf"]
    assert rows[0].regret < rows[1].regret
    direct = lab.play(Simple(), SMALL.problem, range(3))
    np.testing.assert_array_equal(rows[0].curves.expected, direct.expected)
    assert rows[0].bound == bounds.theorem_1(4, [20] * 800)
    assert rows[0].lower == bounds.lower_bound_of_delays(4, [20] * 800)
    assert rows[0].ratio == pytest.approx(rows[0].regret / rows[0].lower)
    assert rows[0].pseudo == direct.pseudo[:, -1].mean()


def test_tidy_results_have_a_line_for_each_algorithm_seed_and_checkpoint() -> None:
    results = compare(SMALL)
    rows, table = results.rows, results.tidy()
    regrets = ["expected_regret", "suffered_regret", "pseudo_regret", "dynamic_regret"]
    assert table.columns == ["algorithm", "seed", "round", *regrets, "is_suspicious", "is_partial"]
    assert not table["is_suspicious"].any()
    assert table.height == 2 * 3 * len(rows[0].curves.checkpoints)
    last = table.filter((polars.col("round") == 800) & (polars.col("algorithm") == "zs20-simple"))
    assert last["expected_regret"].mean() == pytest.approx(rows[0].regret)


def invoke(*arguments: str) -> str:
    result = CliRunner().invoke(cli.app, list(arguments), catch_exceptions=False, env={"COLUMNS": "200"})
    assert result.exit_code == 0, result.output
    return result.output


def test_compare_prints_and_writes(tmp_path: Path) -> None:
    config = tmp_path / "small.toml"
    config.write_text(
        'algorithms = ["zs20-advanced", "dew"]\nlosses = "sine"\ndelays = "uniform:largest=9"\nrounds = 300\n'
    )
    output = invoke("compare", str(config), "--arms", "3", "--seeds", "2", "--out", str(tmp_path / "out"))
    assert "sine losses, uniform:largest=9 delays, k = 3, n = 300, 2 seeds" in output
    assert "zs20-advanced" in output
    assert "n, D, d_max" in output
    csv, parquet = (
        polars.read_csv(tmp_path / "out" / "results.csv"),
        polars.read_parquet(tmp_path / "out" / "results.parquet"),
    )
    assert csv.equals(parquet)
    assert (tmp_path / "out" / "regret.png").stat().st_size > 20_000
    assert "results.csv, results.parquet, regret.png and table.tex are in" in output
    latex = (tmp_path / "out" / "table.tex").read_text()
    assert latex == compare({**read_toml(config), "arms": 3, "seeds": 2}).to_latex()
    assert latex.startswith(r"\begin{tabular}")


def test_what_depends_on_the_number_of_rounds_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    note = "The problem depends on n = 200. So regret at an earlier round is not that of a shorter game."
    options = ("--algorithms", "tsallis-inf", "--arms", "3", "--rounds", "200", "--seeds", "2")
    assert note in invoke("compare", "--delays", "unbalanced", *options)
    assert "The problem depends" not in invoke("compare", "--delays", "fixed", *options)
    titles: list[str] = []
    monkeypatch.setattr("belated.lab.comparisons.figure.draw", lambda _rows, title, *_, **__: titles.append(title))
    for delays in ("unbalanced", "fixed"):
        compare(Comparison(("tsallis-inf",), "wave", delays, arms=3, rounds=200, seeds=2)).figure("x.png")
    assert titles[0].endswith(f"\n{note}")
    assert titles[1].endswith("2 seeds")


def test_a_file_in_the_way_of_the_results_is_noticed_before_any_work(tmp_path: Path) -> None:
    (tmp_path / "taken").touch()
    with pytest.raises(InvalidInput, match="cannot write to the folder"):
        invoke("compare", "--rounds", "100", "--out", str(tmp_path / "taken"))


def test_list_shows_everything() -> None:
    output = invoke("list")
    for algorithm in ALGORITHMS:
        assert algorithm.name in output
    for name in (
        "bernoulli",
        "coins",
        "geometric",
        "unbalanced",
        "permuted:RULE",
        "replicated:replicas=2,lag=20:RULE",
        "shuffled:RULE",
        "by-arm:RULE+RULE",
        "lost-by-arm:shares=A/B:RULE",
    ):
        assert name in output


def test_main_prints_one_line_for_an_error(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", ["belated", "compare", "--algorithms", "zs20-simpel"])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 2
    error = capsys.readouterr().err
    assert "Did you mean zs20-simple" in error.replace("\n", " ")
    assert "Traceback" not in error


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"algorithms": ()}, "algorithms must be one or more names"),
        ({"algorithms": ("dew", "dew")}, "every algorithm can be compared once only"),
        ({"delays": "fixed:d=1.5"}, "d must be a whole number, got '1.5'"),
        ({"losses": "l.xlsx"}, r"A file must end in .csv"),
        ({"arms": 1}, "arms must be a whole number from 2"),
        ({"algorithms": ("exp4",)}, "unknown algorithm 'exp4'. Did you mean"),
        ({"algorithms": ("foo",)}, "unknown algorithm 'foo'. The names are"),
        ({"algorithms": ("zs20",)}, "Did you mean zs20-simple or zs20-advanced"),
        ({"losses": "nope"}, "unknown losses 'nope'. The names are"),
        ({"losses": "bernuli"}, "unknown losses 'bernuli'. Did you mean bernoulli?"),
        ({"delays": "fxed:d=3"}, "unknown delays 'fxed'. Did you mean fixed?"),
        ({"delays": "fixed:e=3"}, "unknown setting of fixed 'e'. The names are d"),
        ({"delays": "none:d=3"}, "none has no settings"),
        ({"losses": "bernoulli:gap=big"}, "gap must be a number, got 'big'"),
        ({"losses": "bernoulli:means=0.1,0.2"}, "unknown setting of bernoulli '0.2'"),
        ({"losses": "bernoulli:means=0.1/some"}, "means must be a list of numbers, such as 0.1/0.2, got '0.1/some'"),
        ({"losses": "bernoulli:gap=0.1,gap=0.3"}, "the setting of bernoulli 'gap' is given twice. Give it once"),
        ({"delays": "permuted:fixed:d=1,d=1"}, "the setting of fixed 'd' is given twice"),
        ({"algorithms": ("shadow:scale=2,scale=3",)}, "the setting of shadow 'scale' is given twice"),
        ({"losses": "bernoulli:gap=0.1,means=0.1/0.2"}, "the means of all arms, or gap and mean, but not both"),
        ({"losses": "shuffled"}, "Write that after it, as in shuffled:...:RULE"),
        ({"losses": "shufled:wave"}, "unknown losses 'shufled'. Did you mean shuffled?"),
        ({"losses": "bernoulli:gap=0.7"}, r"mean - gap must lie in \[0, 1\]"),
        ({"rounds": 0}, "rounds must be"),
        ({"seeds": 0}, "seeds must be"),
    ],
)
def test_wrong_names_and_settings_are_refused_before_any_work(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        _ = Comparison(**settings).problem


def test_toml_files_are_checked(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    for text, message in [
        ("armes = 3", "unknown setting 'armes'. Did you mean arms"),
        ("arms = ", "c.toml"),
        ("losses = 3", "losses must be of type str, got 3"),
        ('algorithms = "dew"', "algorithms must be of type list, got 'dew'"),
        ('losses = "bernoulli:gap={gap}"\ngap = [0.1, 0.2]', "unknown setting 'gap'.* is for `belated sweep`"),
        ("arms = [2, 3]", r"arms must be of type int, got \[2, 3\]. A grid.* is for `belated sweep`"),
    ]:
        path.write_text(text)
        with pytest.raises(InvalidInput, match=message):
            read_toml(path)
    with pytest.raises(InvalidInput, match="No such file"):
        read_toml(tmp_path / "missing.toml")


def test_names_build_what_they_say() -> None:
    assert parse_losses("bernoulli:gap=0.25,mean=0.75") == lab.Bernoulli(gap=0.25, mean=0.75)
    assert parse_losses("bernoulli:means=0.1/0.2/0.05") == lab.Bernoulli(means=[0.1, 0.2, 0.05])
    assert parse_losses("shuffled:bernoulli:means=0.1/0.2") == lab.Shuffled(lab.Bernoulli(means=(0.1, 0.2)))
    assert parse_losses("shuffled:losses.csv") == lab.Shuffled(lab.LossesFile(Path("losses.csv")))
    assert parse_losses("wave:half_period=7") == lab.Wave(half_period=7)
    assert parse_losses("folder/x.csv") == lab.LossesFile(Path("folder/x.csv"))
    assert parse_delays("permuted:lost:share=0.5") == lab.Permuted(lab.Lost(share=0.5))
    assert parse_delays("d.npy") == lab.DelaysFile(Path("d.npy"))
    assert parse_delays("replicated:replicas=8,lag=3:permuted:fixed:d=5") == lab.Replicated(
        lab.Permuted(lab.Fixed(5)), replicas=8, lag=3
    )
    assert parse_delays("replicated:d.csv") == lab.Replicated(lab.DelaysFile(Path("d.csv")))
    assert parse_delays("lagged:lag=7:none") == lab.Lagged(lab.NoDelay(), lag=7)
    assert parse_delays("by-arm:fixed:d=3+lost:share=0.2,d=1") == lab.ArmDelays([lab.Fixed(3), lab.Lost(0.2, 1)])
    assert parse_delays("by-outcome:none+fixed:d=9") == lab.OutcomeDelays(lab.NoDelay(), lab.Fixed(9))
    assert parse_delays("positives:geometric:mean=5") == lab.PositivesOnly(lab.Geometric(5.0))
    assert parse_delays("positives:cutoff=9:none") == lab.PositivesOnly(lab.NoDelay(), cutoff=9)
    assert parse_delays("lost-by-arm:shares=0.1/0.5:none") == lab.LostByArm(lab.NoDelay(), [0.1, 0.5])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("replicated:replicas=8,lag=3", "Write that after it, as in replicated:...:RULE"),
        ("lagged", "Write that after it, as in lagged:...:RULE"),
        ("permuted:by-arm:none+none", "changes the delays of a rule that gives one for each round"),
        ("by-outcome:none", "needs two rules, for successes and for failures"),
        ("by-arm:fixed:d=3+nine", "unknown delays 'nine'"),
        ("lost-by-arm:none", "lost-by-arm needs shares, as in lost-by-arm:shares=0.1/0.2:none"),
        ("lagged:lag=soon:none", "lagged:lag=soon: lag must be a whole number, got 'soon'"),
        ("replicated:of=3:none", "unknown setting of replicated 'of'"),
        ("permuted:lagd:none", "Did you mean lag"),
    ],
)
def test_wrong_names_around_a_rule_say_what_is_right(text: str, message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_delays(text)
    assert message in str(caught.value)


# The others take seconds each. tests/system/lab plays them.
QUICK = ("zs20-simple", "zs20-advanced", "zs20-shadow", "tsallis-inf", "uniform")


@pytest.mark.parametrize("algorithm", [a for a in ALGORITHMS if a.name in QUICK], ids=lambda a: a.name)
@pytest.mark.parametrize(("losses", "delays"), [("bernoulli:gap=0.5", "none"), ("wave", "fixed:d=3")])
def test_measured_regret_stays_below_the_published_bound(algorithm: Any, losses: str, delays: str) -> None:
    assert_regret_below_the_bound(algorithm, losses, delays)


def assert_regret_below_the_bound(algorithm: Any, losses: str, delays: str) -> None:
    """Two arms, and enough rounds for the bound to be below n."""
    problem = lab.Problem(parse_losses(losses), parse_delays(delays), n_arms=2, n_rounds=12_000)
    bound = algorithm.bound(setting_of(problem, 0))
    if bound is None:
        assert algorithm.name in ("composite", "masoudian-2024", "thompson") or (algorithm.name, delays) in NO_BOUND
        return
    assert algorithm.mark != "recalled"  # what was not read is proven, or has no bound
    assert bound < problem.n_rounds / 1.9
    curves = lab.play(algorithm, problem, range(2), workers=2)
    is_for_pseudo_regret = algorithm.needs.startswith("stochastic losses")  # docs/algorithms.md
    assert curves.of("pseudo" if is_for_pseudo_regret else "expected")[:, -1].mean() <= bound + 1e-9


NO_BOUND = {  # these need stochastic losses or no delays
    (name, "fixed:d=3")
    for name in (
        "tsallis-rv",
        "exp3-mixed",
        "delayed-ucb1",
        "qpm-d",
        "epsilon-greedy",
        "explore-then-commit",
        "successive-elimination",
        "opse",
        "patient-bandits",
    )
}


def test_own_objects_can_be_compared() -> None:
    mine = lab.Algorithm("mine", "my own", "-", "nothing", "-", lambda _: Simple(scale=0.5))
    losses = lab.GivenLosses(np.random.default_rng(1).random((300, 3)))
    comparison = Comparison((mine, "zs20-simple"), losses, lab.Permuted(lab.Unbalanced()), arms=3, rounds=300, seeds=2)
    assert {row.algorithm.name for row in compare(comparison).rows} == {"mine", "zs20-simple"}


def test_a_comparison_may_be_on_a_problem() -> None:
    problem = lab.Problem(lab.Wave(), lab.Fixed(7), n_arms=4, n_rounds=200)
    wanted = lab.Comparison.on(problem, ["zs20-simple", "uniform"], seeds=[3, 5])
    assert wanted.problem == problem
    rows = {row.algorithm.name: row.curves.expected for row in compare(wanted).rows}
    played = lab.play("zs20-simple", problem, [3, 5], checkpoints=lab.default_checkpoints(200).tolist())
    np.testing.assert_array_equal(rows["zs20-simple"], played.expected)
    assert len(lab.Comparison.on(problem).players) == len(ALGORITHMS)
    with pytest.raises(InvalidInput, match=r"a lab\.Problem is needed, got 'wave'"):
        lab.Comparison.on("wave")  # type: ignore[arg-type]


def test_a_comparison_may_be_a_mapping_of_its_settings() -> None:
    settings: dict[str, Any] = {
        "algorithms": ["uniform", Simple()],
        "losses": "wave",
        "arms": 3,
        "rounds": 50,
        "seeds": 2,
    }
    given, made = compare(settings), compare(Comparison(**settings))
    assert given.comparison == made.comparison
    assert given.tidy().equals(made.tidy())
    with pytest.raises(InvalidInput, match=r"unknown setting 'round'\. Did you mean rounds"):
        compare({**settings, "round": 100})
    with pytest.raises(
        InvalidInput, match=r"^give a lab\.Comparison, a mapping of its settings or the path .*, got 3$"
    ):
        compare(3)  # type: ignore[arg-type]


def test_an_interrupted_comparison_keeps_the_finished_algorithms() -> None:
    def interrupt(_: Any) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        threading.Event().wait(0.2)
        return Simple()

    broken = lab.Algorithm("broken", "-", "-", "nothing", "-", interrupt)
    with pytest.warns(UnfinishedWarning, match=r"^interrupted\. The results lack broken, uniform, because") as caught:
        results = compare(Comparison(("zs20-simple", broken, "uniform"), rounds=100, seeds=3))
    assert caught[0].filename == __file__
    assert [row.algorithm.name for row in results.rows] == ["zs20-simple"]
    assert not results.is_whole


def test_a_game_draws_its_delays_once(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[int] = []
    draw = lab.Problem.draw_delays

    def counted(problem: lab.Problem, seed: int) -> Any:
        drawn.append(seed)
        return draw(problem, seed)

    monkeypatch.setattr(lab.Problem, "draw_delays", counted)
    compare(Comparison(("zs20-simple", "dew", "best-arm"), rounds=100, seeds=2))
    assert sorted(drawn) == [0, 0, 0, 0, 1, 1, 1]  # and once more to check that the problem fits


def test_an_algorithm_needs_two_arms() -> None:
    with pytest.raises(InvalidInput, match="n_arms must be at least 2"):
        lab.play("dew", lab.Problem(lab.Wave(), lab.Fixed(3), n_arms=1, n_rounds=10), [0])
