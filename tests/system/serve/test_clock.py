"""Services whose machine has a wrong clock, on a file and on PostgreSQL."""

import re
import sys
import time
from datetime import datetime
from pathlib import Path

from tests.support import wrong_clock
from tests.support.service import Served
from tests.support.waiting import until

YEAR = 365 * 86400
SETTINGS = {"name": "layout", "arms": ["blue", "green"], "reward_wait": 7 * 86400, "default_outcome": 0}


class WrongClock(Served):
    """A service whose clock is wrong by so many seconds."""

    def __init__(self, folder: Path, *options: str, seconds: float) -> None:
        folder.mkdir()
        self.offset = folder / "offset"
        self.set_clock(seconds)
        super().__init__(folder, *options, inside=[sys.executable, wrong_clock.__file__, str(self.offset)])

    def set_clock(self, seconds: float) -> None:
        fresh = self.offset.with_suffix(".new")
        fresh.write_text(str(seconds))
        fresh.rename(self.offset)


def error(served: Served) -> float:
    """By how many seconds a new decision is dated wrongly."""
    made = served.post("/v1/experiments/layout/decisions").json()["decided_at"]
    return datetime.fromisoformat(made).timestamp() - time.time()


def expired_after(served: Served, seconds: float) -> int:
    """How many waits have ended. There are several looks for such waits in this time."""
    time.sleep(seconds)
    return int(served.get("/v1/experiments/layout").json()["expired"])


def test_a_service_on_a_file_outlives_a_wrong_clock(tmp_path: Path) -> None:
    with WrongClock(tmp_path / "served", seconds=0) as served:
        served.post("/v1/experiments", SETTINGS)
        assert abs(error(served)) < 30
        served.set_clock(YEAR)
        assert abs(error(served)) < 30
        assert expired_after(served, 0.8) == 0
        offset = re.search(r"^belated_clock_offset_seconds (\S+)$", served.get("/metrics").text, re.MULTILINE)
        assert offset is not None
        assert abs(float(offset[1]) - YEAR) < 30
        assert "the clock of this machine is wrong" in served.log()
        served.stop()
        served.start()  # now it has only the wrong clock
        assert expired_after(served, 0.8) == 0
        assert error(served) > YEAR - 30  # now the newest entry agrees with it
        served.kill()
        served.start()
        assert expired_after(served, 0.8) == 0
        served.set_clock(0)
        until(lambda: abs(error(served)) < 30, 5)
        assert expired_after(served, 0.8) == 0


def test_a_replica_with_a_wrong_clock_takes_the_time_of_the_database(database: str, tmp_path: Path) -> None:
    with (
        WrongClock(tmp_path / "right", "--store", database, seconds=0) as right,
        WrongClock(tmp_path / "wrong", "--store", database, seconds=YEAR) as wrong,
    ):
        right.post("/v1/experiments", SETTINGS)
        for served in (right, wrong):
            assert abs(error(served)) < 30
        assert expired_after(right, 0.8) == 0
        right.set_clock(-YEAR)
        wrong.set_clock(10 * YEAR)
        for served in (right, wrong):
            assert abs(error(served)) < 30
        assert expired_after(wrong, 0.8) == 0
