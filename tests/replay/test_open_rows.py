"""A log may say which rows are open. These are neither missing nor failures while they are within their wait."""

import random
from pathlib import Path

import numpy as np
import pytest

from belated import OutcomeRange, replay
from belated.errors import InvalidInput
from belated.replay.missing import within_wait
from belated.replay.settling import declared_wait
from tests.support.replays import run

HEADER = "time,arm,probability,outcome,outcome_time,status,expires_at"
SALES = {"blue": 0.3, "green": 0.6}
WAIT = 500


def export(path: Path, rows: int = 3000, now: int = 3000, *, has_wait: bool = True) -> Path:
    """An export at this moment. Sales are told after 10 seconds, and nothing else ever is."""
    draw, lines = random.Random(5), [HEADER]  # noqa: S311
    for second in range(rows):
        arm = draw.choice(list(SALES))
        is_sold, expires = draw.random() < SALES[arm], second + WAIT
        if is_sold and second + 10 <= now:
            outcome = f"1,{second + 10},reported"
        elif has_wait and expires <= now:
            outcome = f"0,{expires},expired"
        else:
            outcome = ",,open"
        lines.append(f"{second},{arm},0.5,{outcome},{expires if has_wait else ''}")
    path.write_text("\n".join(lines))
    return path


def kinds(log: replay.Log) -> list[str]:
    return [finding.kind for finding in replay.check(log, OutcomeRange(0, 1, better="higher")).findings]


def test_young_rows_of_an_export_are_left_out(tmp_path: Path) -> None:
    log = replay.read(export(tmp_path / "log.csv"))
    assert log.is_open is not None
    assert log.is_open.sum() == np.isnan(log.outcomes).sum() > 200
    assert declared_wait(log) == WAIT
    settled = replay.settle(log)
    assert (settled.wait, settled.n_young) == (WAIT, 499)
    assert not np.isnan(settled.log.outcomes).any()
    assert kinds(settled.log) == []
    assert kinds(log) == ["waiting"]
    estimates = {one.name: one.snips.value for one in replay.evaluate_all(settled.log)}
    for arm, share in SALES.items():
        assert estimates[f"always {arm}"] == pytest.approx(share, abs=0.04)


def test_the_command_leaves_them_out_by_itself(tmp_path: Path) -> None:
    said = " ".join(run(str(export(tmp_path / "log.csv")), "--reward", "--out", str(tmp_path / "out")).split())
    assert "499 decisions younger than 500 are left out." in said
    assert "every decision has an outcome" in said
    assert "0.0% never reported" in said


def test_a_log_that_is_all_within_its_wait_names_no_best(tmp_path: Path) -> None:
    log = replay.read(export(tmp_path / "log.csv", rows=400, now=400))
    found = replay.check(log, OutcomeRange(0, 1, better="higher"))
    assert [finding.kind for finding in found.findings] == ["waiting"]
    assert (found.n_blank, found.n_waiting, found.can_name_best) == (0, 400, False)
    waiting = replay.measure(log)
    assert waiting.share_never == 0
    assert 0.4 < waiting.share_open < 0.7
    said = " ".join(run(str(tmp_path / "log.csv"), "--reward", "--out", str(tmp_path / "out")).split())
    assert "All decisions may still be within their wait." in said
    assert "no best can be named, because outcomes are still on their way" in said
    assert "still open" in said


def test_a_wait_that_is_given_comes_first(tmp_path: Path) -> None:
    log = replay.read(export(tmp_path / "log.csv", rows=400, now=400))
    settled = replay.settle(log, 20.0, default_outcome=0.0)
    assert settled.log.times.size + settled.n_young == 400
    assert settled.n_young < 30
    assert kinds(settled.log) == []


def test_a_finished_log_is_whole(tmp_path: Path) -> None:
    """All waits are over. So the last decisions count too, although the log ends soon after them."""
    log = replay.read(export(tmp_path / "log.csv", now=9000))
    assert not within_wait(log).any()
    assert replay.settle(log).n_young == 0
    assert kinds(log) == []


def test_without_a_wait_an_open_row_may_be_missing(tmp_path: Path) -> None:
    log = replay.read(export(tmp_path / "log.csv", has_wait=False))
    assert not within_wait(log).any()
    assert declared_wait(log) is None
    assert "one value" in kinds(log)
    waiting = replay.measure(log)
    assert (waiting.share_never, waiting.share_open > 0.4) == (0, True)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("1,blue,0.5,,,paid,9", "line 2, column 'status': 'paid' must be one of open, reported"),
        ("1,blue,0.5,,,,9", "column 'status': the cell is empty. It must be one of"),
        ("1,blue,0.5,1,2,open,9", "'open' contradicts the column 'outcome', which has '1'"),
        ("1,blue,0.5,,,open,soon", "column 'expires_at': 'soon' is neither a finite number nor"),
    ],
)
def test_a_wrong_cell_is_refused(row: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(f"{HEADER}\n{row}\n2,green,0.5,1,3,reported,9\n")
    with pytest.raises(InvalidInput, match=message):
        replay.read(tmp_path / "log.csv")


def test_a_status_of_another_kind_is_ignored(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("time,arm,outcome,outcome_time,status\n1,a,1,2,paid\n2,b,,,open\n")
    assert replay.read(tmp_path / "log.csv").is_open is None
