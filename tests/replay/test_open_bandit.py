"""Logs of the Open Bandit Dataset. Its files have these columns, with more of the last two kinds."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import polars
import pytest

from belated import OutcomeRange
from belated.cli.replay import log_to_study
from belated.errors import InvalidInput
from belated.replay import Columns, evaluate, read
from belated.replay.losses import chosen_range

HEADER = ",timestamp,item_id,position,click,propensity_score,user_feature_0,user-item_affinity_0"
GOOD = """
0,2019-11-24 00:01:03.979311+00:00,12,2,0,0.045525,cef3390ed299c09874189c387777674a,0.0
1,2019-11-24 00:00:45+00:00,9,3,1,0.059345,cef3390ed299c09874189c387777674a,1.0
2,2019-11-24 00:02:02.396318+00:00,12,3,0,0.17336500000000002,81ce123cbb5bd8ce818f60fb3586bba5,0.0
"""


def written(folder: Path, text: str = GOOD, header: str = HEADER) -> Path:
    path = folder / "men.csv"
    path.write_text(header + text)
    return path


def made(folder: Path, rounds: int = 6000) -> Path:
    """Four items in three positions. A click is rarer to the right, and the shares of the items too depend on it."""
    generator = np.random.default_rng(4)
    shares = {1: [0.4, 0.3, 0.2, 0.1], 2: [0.25] * 4, 3: [0.1, 0.2, 0.3, 0.4]}
    rows = []
    for number in range(rounds):
        position = int(generator.integers(1, 4))
        item = int(generator.choice(4, p=shares[position]))
        clicked = int(generator.random() < 0.1 * (1 + item) / position)
        moment = datetime(2019, 11, 24, tzinfo=UTC) + timedelta(seconds=number // 3 + 0.25)
        time = str(moment)
        rows.append(f"{number},{time},{item},{position},{clicked},{shares[position][item]},cef3390ed299c098,0.0")
    return written(folder, "\n" + "\n".join(rows) + "\n")


def test_a_file_is_recognized_by_its_columns(tmp_path: Path) -> None:
    log = read(written(tmp_path))
    assert log.arm_names == ("9", "12")
    assert log.arms.tolist() == [0, 1, 1]
    assert log.outcomes.tolist() == [1, 0, 0]
    assert log.outcome_times.tolist() == log.times.tolist()
    assert log.times[1] == pytest.approx(datetime(2019, 11, 24, 0, 1, 3, 979311, UTC).timestamp())
    assert log.probabilities is not None
    assert log.probabilities.tolist() == [0.059345, 0.045525, 0.17336500000000002]
    assert log.declared == OutcomeRange(0, 1, better="higher")
    assert log.remark is not None
    assert log.location(0).endswith("men.csv, line 3")


def test_parquet_is_recognized_too(tmp_path: Path) -> None:
    polars.read_csv(written(tmp_path)).write_parquet(tmp_path / "men.parquet")
    log, other = read(tmp_path / "men.parquet"), read(written(tmp_path))
    assert log.times.tolist() == other.times.tolist()
    assert log.arms.tolist() == other.arms.tolist()


def test_an_item_is_judged_over_all_positions(tmp_path: Path) -> None:
    """The true rate of item i is 0.1 (1 + i) (1 + 1/2 + 1/3) / 3."""
    log = read(made(tmp_path))
    for item in range(4):
        found = evaluate(log, item)
        assert found.snips.low < 0.1 * (1 + item) * (1 + 1 / 2 + 1 / 3) / 3 < found.snips.high
        assert found.mean_weight == pytest.approx(1, abs=0.1)


def test_the_command_needs_no_option(tmp_path: Path) -> None:
    log = read(made(tmp_path, 300))
    studied, words = log_to_study(log, chosen_range(log, None, None, is_reward=False), None, None)
    assert words == ["Outcomes are rewards from 0 to 1, and higher is better.", log.remark]
    assert studied is log


def test_own_names_and_own_columns_come_first(tmp_path: Path) -> None:
    columns = Columns("timestamp", "position", "click", "user-item_affinity_0", "propensity_score")
    with pytest.raises(InvalidInput, match="first time of the file"):
        read(written(tmp_path), columns)
    text = "\n0,2019-11-24 00:01:03+00:00,12,2,0,0.5,x,0.0"
    with pytest.raises(InvalidInput, match="no column 'arm'"):
        read(written(tmp_path, text, HEADER.replace("user_feature_0", "time")))
    with pytest.raises(InvalidInput, match="no column 'time'"):
        read(written(tmp_path, text.replace(",2,0", ",0"), HEADER.replace("position,", "")))


@pytest.mark.parametrize(
    ("row", "match"),
    [
        ("3,2019-11-24 00:03:00+00:00,7,1,2,0.1,x,0.0", None),
        ("3,2019-11-24 00:03:00+00:00,7,1,,0.1,x,0.0", "line 5, column 'click'"),
        ("3,2019-11-24 00:03:00+00:00,7,1,1,0.0,x,0.0", "line 5, column 'propensity_score'"),
        ("3,later,7,1,1,0.1,x,0.0", "line 5, column 'timestamp'"),
        ("3,2019-11-24 00:03:00+00:00,,1,1,0.1,x,0.0", "line 5, column 'item_id'"),
    ],
)
def test_a_wrong_cell_is_refused_with_its_place(tmp_path: Path, row: str, match: str | None) -> None:
    path = written(tmp_path, GOOD + row + "\n")
    with pytest.raises(InvalidInput, match=match or "outcome"):
        evaluate(read(path), 0)
