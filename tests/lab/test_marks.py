"""Results mark a learner whose expected regret means nothing, and one that does not say its distribution."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest
from typer.testing import CliRunner

from belated import Decision, cli, lab
from belated.errors import InvalidInput, MismatchWarning
from belated.lab.comparisons import figure, tables
from belated.lab.comparisons.compare import compare
from tests.lab.test_mismatch import COINS, Mute, liar


def test_a_liar_is_ranked_last_and_wins_no_pair() -> None:
    """Its expected regret is the least of all. Its suffered regret is that of its draws, which lose."""
    comparison = lab.Comparison([liar, "shadow", "uniform"], COINS.losses, COINS.delays, arms=3, rounds=400, seeds=4)
    with pytest.warns(MismatchWarning, match="liar"):
        results = compare(comparison)
    assert [row.algorithm.name for row in results.rows] == ["shadow", "uniform", "liar"]
    assert results.rows[2].regret < results.rows[0].regret
    for against in (None, "liar", "uniform"):
        for one in results.differences(against):
            assert np.isnan([one.mean, one.interval]).all() == ("liar" in {one.algorithm, one.against})
            assert one.winner != "liar"
            assert (one.winner is None) == ("liar" in {one.algorithm, one.against})
    for of in ("suffered", "pseudo"):
        [one] = [one for one in results.differences(of=of) if one.algorithm == "liar"]
        assert one.winner == "shadow"
        assert one.mean > 50


@pytest.fixture(scope="module")
def marked() -> lab.Results:
    comparison = lab.Comparison([liar, "shadow"], COINS.losses, COINS.delays, arms=3, rounds=400, seeds=2)
    with pytest.warns(MismatchWarning, match=r"^liar: distribution\(\) does not fit") as caught:
        results = compare(comparison)
    assert [warning.filename for warning in caught] == [__file__]  # the line that called
    return results


def test_files_of_a_comparison_mark_a_liar(marked: lab.Results, tmp_path: Path) -> None:
    marked.write(tmp_path)
    for table in (polars.read_csv(tmp_path / "results.csv"), polars.read_parquet(tmp_path / "results.parquet")):
        assert set(table.filter("is_suspicious")["algorithm"]) == {"liar"}
        assert set(table.filter(~polars.col("is_suspicious"))["algorithm"]) == {"shadow"}


def test_legend_and_title_of_a_figure_mark_a_liar(marked: lab.Results, tmp_path: Path) -> None:
    for width, sentence in ((None, tables.MEANING), ("double", None)):
        marked.figure(tmp_path / "regret.svg", width=width)  # type: ignore[arg-type]
        texts = re.findall(r"<!-- (.*?) -->", (tmp_path / "regret.svg").read_text())
        assert "liar !" in texts
        assert any(text.startswith("shadow") and "!" not in text for text in texts)
        assert sentence is None or sentence in "\n".join(texts)


def test_the_legend_of_another_regret_has_no_marks_and_every_name(marked: lab.Results, tmp_path: Path) -> None:
    """Matplotlib leaves a name out that begins with _."""
    rows = [row._replace(algorithm=replace(row.algorithm, name=f"_{row.algorithm.name}")) for row in marked.rows]
    replace(marked, rows=rows).figure(tmp_path / "pseudo.svg", of="pseudo")
    texts = re.findall(r"<!-- (.*?) -->", (tmp_path / "pseudo.svg").read_text())
    assert {"_liar", "_shadow"} <= {text.strip().partition(" (")[0] for text in texts}
    assert not any("!" in text for text in texts)


@pytest.mark.parametrize("width", [None, "double"])
def test_the_panels_of_a_figure_do_not_touch(marked: lab.Results, monkeypatch: Any, width: Any) -> None:
    gaps: list[float] = []

    def measured(drawn: Any, *_: Any) -> None:
        drawn.canvas.draw()
        left, right = drawn.axes
        gaps.append((right.yaxis.label.get_window_extent().x0 - left.get_window_extent().x1) / drawn.dpi)

    monkeypatch.setattr(figure, "_save", measured)
    marked.figure("unused.png", width=width)
    assert min(gaps) > 0.12  # inches


def test_tables_say_what_the_mark_means(marked: lab.Results) -> None:
    for text in (marked.to_latex(), marked.to_latex("A caption"), marked.to_markdown()):
        assert "liar !" in text
        assert text.count(tables.MEANING) == 1
    honest = lab.Results(marked.comparison, marked.rows[:1])
    for text in (honest.to_latex(), honest.to_markdown()):
        assert tables.MEANING not in text


def test_a_sweep_marks_a_liar_and_warns_once(tmp_path: Path) -> None:
    grid = {"losses": COINS.losses, "delays": COINS.delays, "arms": 3, "rounds": [300, 400], "seeds": 2}
    with pytest.warns(MismatchWarning, match=r"^liar: distribution\(\) does not fit") as caught:
        swept = lab.sweep({**grid, "algorithms": [liar, "shadow"]})
    assert [warning.filename for warning in caught] == [__file__]
    swept.write(tmp_path)
    for table in (polars.read_csv(tmp_path / "sweep.csv"), polars.read_parquet(tmp_path / "sweep.parquet")):
        assert set(table.filter("is_suspicious")["algorithm"]) == {"liar"}
        assert set(table.filter(~polars.col("is_suspicious"))["algorithm"]) == {"shadow"}
    with pytest.raises(InvalidInput, match="a parameter cannot be called is_suspicious"):
        lab.sweep({**grid, "algorithms": ["shadow:scale={is_suspicious}"], "is_suspicious": [1, 2]})


def test_the_command_line_names_a_liar_once_and_has_no_warning(tmp_path: Path) -> None:
    """A warning would be an error here."""
    (tmp_path / "liars.py").write_text("from tests.lab.test_mismatch import liar\n")
    (tmp_path / "losses.csv").write_text("a,b,c\n" + "0.2,0.8,0.9\n" * 400)
    problem = f'losses = "{tmp_path / "losses.csv"}"\ndelays = "fixed:d=5"\narms = 3\nrounds = 400\nseeds = 2\n'
    (tmp_path / "grid.toml").write_text(f'algorithms = ["{tmp_path / "liars.py"}:liar", "shadow"]\n{problem}')
    for command in ("compare", "sweep"):
        result = CliRunner().invoke(
            cli.app, [command, str(tmp_path / "grid.toml")], catch_exceptions=False, env={"COLUMNS": "200"}
        )
        assert result.exit_code == 0
        assert result.output.count("distribution() does not fit the arms that ask() draws") == 1


def test_a_learner_without_a_distribution_has_a_star(tmp_path: Path) -> None:
    class Silent(Mute):
        fingerprint = "1"

        def __init__(self, n_arms: int, *, seed: int) -> None:
            self.round, self.generator = 0, np.random.default_rng(seed + n_arms)

        def ask(self) -> Any:
            self.round += 1
            return Decision(self.round, int(self.generator.integers(3)), 1 / 3)

        def tell(self, round: int, loss: float) -> None: ...

    comparison = lab.Comparison([Silent, "shadow"], COINS.losses, COINS.delays, arms=3, rounds=400, seeds=2)
    for _ in range(2):  # played, and from the folder
        results = compare(comparison, folder=tmp_path)
        assert {line[0] for line in results.summary()} == {"Silent *", "shadow"}
        for text in (results.to_latex(), results.to_markdown()):
            assert text.count(tables.SUFFERED) == 1
            assert tables.MEANING not in text
        silent = next(row.curves for row in results.rows if row.algorithm.name == "Silent")
        assert not silent.is_suspicious
        assert (silent.expected == silent.suffered).all()
