"""`belated replay` on whole logs and on a whole year of flights."""

import html
import json
import re
from pathlib import Path

from belated.replay.flight_study import study
from tests.support.replays import run, write_log


def test_losses_are_the_other_way_round(tmp_path: Path) -> None:
    run(str(write_log(tmp_path / "log.csv")), "--out", str(tmp_path / "out"))
    results = json.loads((tmp_path / "out" / "results.json").read_text())["results"]
    assert results["estimates"][0]["name"] == "always a"


ODD = ("[/b]", "[red]", "a$_$b", "x" * 80, "\N{PARTY POPPER}", "<i>", "v_t")


def test_names_are_left_as_they_are(tmp_path: Path) -> None:
    rows = [f"{t},{ODD[t % len(ODD)]},{t % 2},{t + 1},0.2" for t in range(700)]
    (tmp_path / "log.csv").write_text("\n".join(["time,arm,outcome,outcome_time,probability", *rows]))
    said = run(str(tmp_path / "log.csv"), "--out", str(tmp_path / "out"))
    page = (tmp_path / "out" / "report.html").read_text()
    for name in ODD:
        assert name[:8] in said
        assert html.escape(name) in page


def test_a_wrong_column_of_arms_is_noticed_and_does_not_flood(tmp_path: Path) -> None:
    rows = [f"{t},user{t},{t % 2},{t + 1},0.5" for t in range(300)]
    (tmp_path / "log.csv").write_text("\n".join(["time,arm,outcome,outcome_time,probability", *rows]))
    said = " ".join(run(str(tmp_path / "log.csv"), "--out", str(tmp_path / "out")).split())
    assert "There are 300 arms in 300 decisions. Is this the right column of arms?" in said
    assert "too few outcomes to name a best" in said
    assert "285 arms in between are in results.json" in said
    assert said.count("always user") < 30
    results = json.loads((tmp_path / "out" / "results.json").read_text())["results"]
    assert len(results["estimates"]) == 300 + 8


def test_other_names_and_ranges(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("t,layout,euros,paid\n1,a,10,2\n2,b,30,4\n3,a,,\n")
    names = ["--time", "t", "--arm", "layout", "--outcome", "euros", "--outcome-time", "paid"]
    said = run(str(tmp_path / "log.csv"), *names, "--highest", "50", "--reward", "--out", str(tmp_path / "out"))
    assert "rewards from 0 to 50" in said


def test_nothing_that_came_in_time_is_said(tmp_path: Path) -> None:
    rows = [f"{t},{'ab'[t % 2]},{t % 2},5000" for t in range(100)]
    (tmp_path / "log.csv").write_text("\n".join(["time,arm,outcome,outcome_time", *rows]))
    said = " ".join(run(str(tmp_path / "log.csv"), "--out", str(tmp_path / "out")).split())
    assert "No outcome came before the last decision" in said


def test_the_flights_are_the_built_in_example(tmp_path: Path) -> None:
    said = run("--out", str(tmp_path))
    assert "22,305 rounds" in said
    told = set(re.findall(r"(\w+) +(\d+\xa0±\xa0\d+) +([\d,]+) +([\d,]+) +([\d,]+) +([\d,]+) +(\d+)", said))
    document = (Path(__file__).parent.parent.parent.parent / "docs" / "replay.md").read_text()
    rows = {f"| `{row[0]}` | {' | '.join(row[1:])} |".replace("\xa0", " ") for row in told}
    assert len(rows) == 12
    assert all(row in document for row in rows), rows
    results = json.loads((tmp_path / "results.json").read_text())["results"]
    plain, waited = results["plain"], results["wait of 24 hours"]
    assert set(plain) == set(waited) == {"Means", "Shadow", "Simple", "Advanced", "AdaptiveExp3", "Tsallis"}
    for name in plain:
        assert plain[name]["most outstanding"][0] > 500
        assert waited[name]["most outstanding"][0] < 100
        assert 0 < plain[name]["regret"][0] < results["uniform regret"]


def test_the_study_of_the_flights_repeats() -> None:
    first, second = study(range(1)), study(range(1))
    assert first.headline == second.headline
    assert first.tables == second.tables
