"""Files say which regrets are those of a checkpoint, and not of a shorter game."""

from pathlib import Path

import polars

from belated import lab

PLAYERS = ("zs20-simple", "uniform")


def partial_rounds(table: polars.DataFrame) -> set[int]:
    return set(table.filter("is_partial")["round"])


def test_a_comparison_says_it_where_the_problem_depends_on_n(tmp_path: Path) -> None:
    for delays, depends in (("unbalanced", True), ("fixed:d=3", False)):
        results = lab.compare(lab.Comparison(PLAYERS, "bernoulli", delays, arms=3, rounds=200, seeds=2))
        results.write(tmp_path / delays)
        earlier = set(results.rows[0].curves.checkpoints.tolist()) - {200}
        csv, parquet = (
            polars.read_csv(tmp_path / delays / "results.csv"),
            polars.read_parquet(tmp_path / delays / "results.parquet"),
        )
        assert earlier
        for table in (csv, parquet, results.tidy()):
            assert partial_rounds(table) == (earlier if depends else set())
            assert table.filter(polars.col("round") < 200)["is_partial"].all() == depends


def test_a_sweep_says_it_for_each_problem(tmp_path: Path) -> None:
    grid = {"losses": "bernoulli", "delays": ["unbalanced", "none"], "arms": 3, "rounds": [100, 200], "seeds": 2}
    lab.sweep({**grid, "algorithms": list(PLAYERS)}).write(tmp_path)
    for table in (polars.read_csv(tmp_path / "sweep.csv"), polars.read_parquet(tmp_path / "sweep.parquet")):
        before = polars.col("round") < polars.col("rounds")
        expected = table.select(before & (polars.col("delays") == "unbalanced")).to_series()
        assert 0 < expected.sum() < table.height / 2
        assert table["is_partial"].to_list() == expected.to_list()
