"""Logs that say the range and direction of their outcomes themselves."""

import json
from pathlib import Path

import polars
import pytest

from belated import OutcomeRange
from belated.errors import InvalidInput
from belated.replay import LOGGED, check, evaluate, read, settle
from tests.support.replays import run

HEADER = "time,arm,outcome,outcome_time,outcome_lowest,outcome_highest,outcome_better\n"
EUROS = OutcomeRange(0, 50, better="higher")


def written(folder: Path, rows: str, header: str = HEADER) -> Path:
    path = folder / "log.csv"
    path.write_text(header + rows)
    return path


def euros(folder: Path) -> Path:
    return written(folder, "0,a,40,1,0.0,50.0,higher\n1,b,,,0,50,higher\n2,b,10,4,0,5e1,higher\n")


def test_the_range_in_the_file_is_used_without_options(tmp_path: Path) -> None:
    log = read(euros(tmp_path))
    assert log.declared == EUROS
    assert settle(log, 1.0).log.declared == EUROS
    assert evaluate(log, LOGGED).snips.value == 25
    assert check(log).findings == check(log, EUROS).findings
    said = run(str(tmp_path / "log.csv"), "--out", str(tmp_path / "out"))
    assert "Outcomes are rewards from 0 to 50, and higher is better." in said
    (logged,) = json.loads((tmp_path / "out" / "results.json").read_text())["results"]["estimates"]
    assert logged["snips"]["value"] == 25


def test_parquet_has_the_same_columns(tmp_path: Path) -> None:
    polars.read_csv(euros(tmp_path)).write_parquet(tmp_path / "log.parquet")
    assert read(tmp_path / "log.parquet").declared == EUROS


@pytest.mark.parametrize("options", [[], ["--reward"], ["--lowest", "0", "--highest", "50", "--reward"]])
def test_options_that_agree_are_accepted(options: list[str], tmp_path: Path) -> None:
    assert "rewards from 0 to 50" in run(str(euros(tmp_path)), *options, "--out", str(tmp_path / "out"))


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--highest", "100"], "--highest 100 contradicts the file"),
        (["--lowest", "-1", "--highest", "60"], "--lowest -1 and --highest 60 contradicts the file"),
    ],
)
def test_options_that_contradict_the_file_are_refused(options: list[str], named: str, tmp_path: Path) -> None:
    said = r"outcome_lowest, outcome_highest, outcome_better say: Outcomes are rewards from 0 to 50.*Leave the option"
    with pytest.raises(InvalidInput, match=f"{named}.*{said}"):
        run(str(euros(tmp_path)), *options, "--out", str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_a_direction_that_contradicts_the_file_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "0,a,40,1,0,50,lower\n1,b,,,0,50,lower\n")
    with pytest.raises(InvalidInput, match=r"--reward contradicts the file.*losses from 0 to 50, and lower is better"):
        run(str(path), "--reward", "--out", str(tmp_path / "out"))
    assert "losses from 0 to 50" in run(str(path), "--out", str(tmp_path / "out"))


def test_a_range_in_python_that_contradicts_the_file_is_refused(tmp_path: Path) -> None:
    log = read(euros(tmp_path))
    for judge in (lambda: check(log, OutcomeRange(0, 1)), lambda: evaluate(log, LOGGED, OutcomeRange(0, 1))):
        with pytest.raises(InvalidInput, match=r"the file says: Outcomes are rewards from 0 to 50"):
            judge()


def test_without_a_range_the_options_are_named(tmp_path: Path) -> None:
    path = written(tmp_path, "0,a,40,1\n1,b,,\n", "time,arm,outcome,outcome_time\n")
    assert read(path).declared is None
    with pytest.raises(InvalidInput, match=r"line 2: the outcome 40 is outside.*\(--lowest, --highest\).*--reward"):
        run(str(path), "--out", str(tmp_path / "out"))
    assert "rewards from 0 to 50" in run(str(path), "--highest", "50", "--reward", "--out", str(tmp_path / "out"))


BAD = {
    "another end": ("0,a,1,1,0,50,higher\n1,b,,,0,60,higher\n", r"line 3, column 'outcome_highest': '60' must be 50"),
    "another direction": ("0,a,1,1,0,50,higher\n1,b,,,0,50,lower\n", r"line 3, column 'outcome_better': 'lower' must"),
    "no end": (
        "0,a,1,1,0,50,higher\n1,b,,,,50,higher\n",
        r"line 3, column 'outcome_lowest': the cell is empty. It must",
    ),
    "none at all": ("0,a,1,1,,,\n", r"line 2, column 'outcome_lowest': the cell is empty. Every row needs the range"),
    "no number": ("0,a,1,1,zero,50,higher\n", r"line 2, column 'outcome_lowest': 'zero' is not a finite number"),
    "no direction": ("0,a,1,1,0,50,up\n", r"line 2, column 'outcome_better': 'up' must be 'higher' or 'lower'"),
    "upside down": ("0,a,1,1,50,0,higher\n", r"'outcome_lowest' and 'outcome_highest': lowest must be less than"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_malformed_range_is_refused_with_its_place(name: str, tmp_path: Path) -> None:
    rows, message = BAD[name]
    with pytest.raises(InvalidInput, match=r"log\.csv.*" + message):
        read(written(tmp_path, rows))


def test_a_range_that_changes_late_is_refused(tmp_path: Path) -> None:
    rows = [f"{i},{'ab'[i % 2]},1,{i},0,50,higher\n" for i in range(5000)]
    rows[4321] = "4321,a,1,4321,0,49,higher\n"
    with pytest.raises(InvalidInput, match=r"line 4323, column 'outcome_highest': '49' must be 50 as in the rows"):
        read(written(tmp_path, "".join(rows)))


def test_half_a_range_is_refused(tmp_path: Path) -> None:
    header = "time,arm,outcome,outcome_time,outcome_highest\n"
    with pytest.raises(InvalidInput, match="'outcome_highest' needs the column 'outcome_lowest' too"):
        read(written(tmp_path, "0,a,1,1,50\n1,b,,,50\n", header))


def test_an_outcome_outside_the_range_of_its_file_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "0,a,51,1,0,50,higher\n1,b,,,0,50,higher\n")
    with pytest.raises(InvalidInput, match=r"line 2: the outcome 51 is outside.*Correct the columns outcome_lowest"):
        run(str(path), "--out", str(tmp_path / "out"))
