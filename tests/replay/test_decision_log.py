"""Which logs are read from files, and which are refused with the location of the error."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest

from belated.errors import InvalidInput
from belated.replay import Columns, Log, read

HEADER = "time,arm,outcome,outcome_time,probability\n"
GOOD = HEADER + "0,b,0.5,3,0.25\n2,a,,,0.75\n1,b,1,1,0.5\n"


def written(folder: Path, text: str | bytes, name: str = "log.csv") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def same(one: Log, other: Log) -> bool:
    arrays = ("times", "arms", "outcomes", "outcome_times")
    return one.arm_names == other.arm_names and all(
        np.array_equal(getattr(one, name), getattr(other, name), equal_nan=True) for name in arrays
    )


def test_a_log_is_sorted_by_time(tmp_path: Path) -> None:
    log = read(written(tmp_path, GOOD))
    assert log.arm_names == ("a", "b")
    assert log.n_arms == 2
    assert log.times.tolist() == [0, 1, 2]
    assert log.arms.tolist() == [1, 1, 0]
    np.testing.assert_array_equal(log.outcomes, [0.5, 1, np.nan])
    assert log.outcome_times.tolist() == [3, 1, np.inf]
    assert log.probabilities is not None
    assert log.probabilities.tolist() == [0.25, 0.5, 0.75]
    assert log.location(1).endswith("log.csv, line 4")


def test_equal_times_keep_the_order_of_the_file(tmp_path: Path) -> None:
    rows = "".join(f"{i % 2},{i},0,1\n" for i in range(400))
    log = read(written(tmp_path, "time,arm,outcome,outcome_time\n" + rows))
    assert log.arms.tolist() == [*range(0, 400, 2), *range(1, 400, 2)]
    assert log.probabilities is None


def test_arms_are_sorted_as_numbers_if_all_are(tmp_path: Path) -> None:
    for arms, expected in [(("10", "9", "-1.5"), ("-1.5", "9", "10")), (("10", "9", "x"), ("10", "9", "x"))]:
        text = "time,arm,outcome,outcome_time\n" + "".join(f"0,{arm},,\n" for arm in arms)
        assert read(written(tmp_path, text)).arm_names == expected


def test_columns_may_be_called_anything_and_stand_in_any_order(tmp_path: Path) -> None:
    text = 'p,wann,extra,was,y,"wann, spaet"\n0.5,0,?,a,1,2\n0.5,1,?,b,,\n'
    columns = Columns("wann", "was", "y", "wann, spaet", "p")
    log = read(written(tmp_path, text), columns)
    assert log.outcome_times.tolist() == [2, np.inf]
    assert log.probabilities is not None


def test_date_times(tmp_path: Path) -> None:
    text = "time,arm,outcome,outcome_time\n{},a,1,{}\n{},b,,\n"
    aware = ("2024-05-01T12:30:00+02:00", "2024-05-01T10:30:01.5Z", "2024-05-01T10:30:00-01:00")
    log = read(written(tmp_path, text.format(*aware)))
    start = datetime(2024, 5, 1, 10, 30, tzinfo=UTC).timestamp()
    assert log.times.tolist() == [start, start + 3600]
    assert log.outcome_times.tolist() == [start + 1.5, np.inf]
    naive = ("2024-05-01 10:30", "2024-05-01T10:30:01.5", "2024-05-01T11:30:00")
    assert same(read(written(tmp_path, text.format(*naive))), log)


def test_dressing_is_accepted(tmp_path: Path) -> None:
    """A byte order mark, blank lines, Windows line ends, spaces around cells, quoted line breaks."""
    plain = read(written(tmp_path, GOOD))
    dressed = "\ufeff" + GOOD.replace("\n", "\r\n\r\n").replace(",", " , ")
    assert same(read(written(tmp_path, dressed)), plain)
    log = read(written(tmp_path, 'time,arm,outcome,outcome_time\n0,"a\nb",,\n0,c,,\n'))
    assert log.arm_names == ("a\nb", "c")
    assert log.location(1).endswith("line 4")


def test_a_long_file_is_read_in_stretches(tmp_path: Path) -> None:
    n, generator = 4321, np.random.default_rng(1)
    times, arms = generator.permutation(n), generator.integers(0, 7, n)
    rows = "".join(
        f"{time},arm {arm},{time / n!r},{time + 5}\n" for time, arm in zip(times.tolist(), arms, strict=True)
    )
    log = read(written(tmp_path, "time,arm,outcome,outcome_time\n" + rows))
    order = np.argsort(times)
    assert log.times.tolist() == list(range(n))
    assert log.arms.tolist() == arms[order].tolist()
    assert log.outcomes.tolist() == [t / n for t in range(n)]
    assert [log.location(t).rsplit(maxsplit=1)[1] for t in range(n)] == [str(row + 2) for row in order]


BAD: dict[str, tuple[str | bytes, str]] = {
    "no column": (
        "time,Arms,outcome,outcome_time\n",
        r"no column 'arm' for the arm\. The columns are 'time', 'Arms'.*Did you mean 'Arms'",
    ),
    "ragged": (HEADER + "0,a,,,1\n0,b,,\n", r"line 3: 4 cells where the header names 5"),
    "empty time": (HEADER + "0,a,,,1\n,b,,,1\n", r"line 3, column 'time': the cell is empty. Every row needs its time"),
    "first time empty": (HEADER + ",a,,,1\n", r"line 2, column 'time': the cell is empty"),
    "empty arm": (HEADER + "0,  ,,,1\n", r"line 2, column 'arm': the cell is empty"),
    "not a number": (HEADER + "0,a,good,1,1\n", r"line 2, column 'outcome': 'good' is not a finite number"),
    "underscores": (HEADER + "0,a,1_0,1,1\n", r"line 2, column 'outcome': '1_0' is not a finite number"),
    "not a time": (
        HEADER + "soon,a,,,1\n",
        r"line 2, column 'time': 'soon' is neither a finite number nor an ISO 8601",
    ),
    "a later one": (HEADER + "0,a,,,1\nsoon,a,,,1\n", r"line 3, column 'time': 'soon' is neither"),
    "mixed": (
        HEADER + "0,a,,,1\n2024-01-01,b,,,1\n",
        r"line 3, column 'time': '2024-01-01' is a date-time without time zone, but the first .* is a number",
    ),
    "mixed the other way": (
        HEADER + "2024-01-01,a,1,20240102,1\n",
        r"line 2, column 'outcome_time': '20240102' is a number, but",
    ),
    "mixed zones": (
        HEADER + "2024-01-01T00:00,a,,,1\n2024-01-01T00:00Z,b,,,1\n",
        r"line 3, column 'time': '2024-01-01T00:00Z' is a date-time with time zone, but .* without",
    ),
    "no outcome time": (
        HEADER + "0,a,1,,1\n",
        r"line 2, column 'outcome_time': the cell is empty. Column 'outcome' has",
    ),
    "no outcome": (HEADER + "0,a,,1,1\n", r"line 2, column 'outcome': the cell is empty. Column 'outcome_time' has"),
    "too early": (HEADER + "5,a,1,4,1\n", r"line 2, column 'outcome_time': '4' is before the decision itself, '5'"),
    "nan": (HEADER + "0,a,nan,1,1\n", r"line 2, column 'outcome': 'nan' is not a finite"),
    "infinite": (HEADER + "0,a,1,inf,1\n", r"line 2, column 'outcome_time': 'inf' is neither"),
    "infinite first time": (HEADER + "inf,a,1,1,1\n", r"line 2, column 'time': 'inf' is neither"),
    "no probability": (HEADER + "0,a,,,1\n0,b,,,\n", r"line 3, column 'probability': the cell is empty. It must be"),
    "probability 0": (HEADER + "0,a,,,0\n", r"line 2, column 'probability': '0' must be .* in \(0, 1\]"),
    "probability 1.5": (HEADER + "0,a,,,1.5\n", r"line 2, column 'probability': '1.5' must be"),
    "probability nan": (HEADER + "0,a,,,nan\n", r"line 2, column 'probability': 'nan' is not"),
    "named twice": ("time,arm,arm,outcome,outcome_time\n", r"the column 'arm' is named twice"),
    "empty": ("", r"is empty. Its first line must name the columns"),
    "blank": ("\n  \n", r"is empty"),
    "header only": (HEADER, r"has a header but no rows"),
    "one arm": (HEADER + "0,a,,,1\n", r"every row has the arm 'a'. A choice needs at least 2 arms"),
    "open quote": (HEADER + '0,a,,,1\n0,"b,,,1\n', r"line 3: not valid CSV \(unexpected end of data\)"),
    "text after a quote": (HEADER + '0,"a"x,,,1\n', r"line 2: not valid CSV"),
    "after a quoted line break": (HEADER + '0,"a\nb",,,1\nx,b,,,1\n', r"line 4, column 'time': 'x'"),
    "after a blank line": (HEADER + "\n\nx,b,,,1\n", r"line 4, column 'time': 'x'"),
    "not UTF-8": (HEADER.encode() + b"0,a,,,1\n0,caf\xe9,,,1\n", r"line 3: not UTF-8 text. Save"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_malformed_file_is_refused_with_its_place(name: str, tmp_path: Path) -> None:
    text, message = BAD[name]
    with pytest.raises(InvalidInput, match=r"log\.csv.*" + message):
        read(written(tmp_path, text))


def test_a_late_error_has_its_own_line(tmp_path: Path) -> None:
    rows = ["0,a,,,1\n", "0,b,,,1\n"] * 5000
    rows[8765] = "0,b,,,2\n"
    with pytest.raises(InvalidInput, match="line 8767, column 'probability': '2'"):
        read(written(tmp_path, HEADER + "".join(rows)))


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"missing.csv: No such file"):
        read(tmp_path / "missing.csv")
    with pytest.raises(InvalidInput, match=r"missing.parquet: No such file"):
        read(tmp_path / "missing.parquet")
    with pytest.raises(InvalidInput, match=r"must end in .csv or .parquet"):
        read(tmp_path / "log.xlsx")
    with pytest.raises(InvalidInput, match=r"log.parquet: not a readable Parquet file"):
        read(written(tmp_path, GOOD, "log.parquet"))


def test_a_probability_column_asked_for_must_be_there(tmp_path: Path) -> None:
    path = written(tmp_path, "time,arm,outcome,outcome_time\n0,a,,\n0,b,,\n")
    assert read(path).probabilities is None
    with pytest.raises(InvalidInput, match="no column 'propensity' for the probability"):
        read(path, Columns(probability="propensity"))


def test_one_column_cannot_be_two() -> None:
    with pytest.raises(InvalidInput, match="the column 'time' cannot have two uses"):
        Columns(outcome_time="time")


def parquet(folder: Path, **columns: Any) -> Path:
    path = folder / "log.parquet"
    polars.DataFrame(columns).write_parquet(path)
    return path


@pytest.mark.parametrize("zone", [None, UTC])
def test_parquet_and_csv_are_the_same(zone: Any, tmp_path: Path) -> None:
    start = datetime(2024, 5, 1, 12, 30, tzinfo=zone)
    times = [start + timedelta(seconds=0.1 * i) for i in range(50)]
    later = [time + timedelta(microseconds=1234567) if i % 3 else None for i, time in enumerate(times)]
    outcomes = [i / 7 if i % 3 else None for i in range(50)]
    arms = [i % 4 for i in range(50)]
    rows = zip(times, arms, outcomes, later, strict=True)
    cells = ["" if cell is None else str(cell) for row in rows for cell in row]
    lines = "".join(",".join(cells[i : i + 4]) + "\n" for i in range(0, 200, 4))
    from_csv = read(written(tmp_path, "time,arm,outcome,outcome_time\n" + lines))
    log = read(parquet(tmp_path, time=times, arm=arms, outcome=outcomes, outcome_time=later))
    assert same(log, from_csv)
    assert log.arm_names == ("0", "1", "2", "3")


def test_parquet_errors_name_the_row(tmp_path: Path) -> None:
    path = parquet(tmp_path, time=[1.0, 2.0], arm=["a", "b"], outcome=[True, False], outcome_time=[1.0, 1.5])
    with pytest.raises(InvalidInput, match=r"log.parquet, row 2, column 'outcome_time': '1.5' is before"):
        read(path)
    path = parquet(tmp_path, time=[[1], [2]], arm=["a", "b"], outcome=[1, 2], outcome_time=[3, 3])
    with pytest.raises(InvalidInput, match=r"row 1, column 'time': '<List"):
        read(path)
