"""Faults that the service does not survive yet. When it does, the test says XPASS. Then set its switch in faults.py."""

import pytest

from tests.simulation.faults import (
    ISOLATES_FAILING_EXPERIMENTS,
    NOTICES_LOST_HISTORY,
    REFUSES_CLOCK_JUMPS,
    Faults,
)
from tests.simulation.world import World

SEEDS = 25
CASES = {
    "lost history": (NOTICES_LOST_HISTORY, Faults(lost_tails=0.01, crashes=0.005, stops=0.005)),
    "clock jumps": (REFUSES_CLOCK_JUMPS, Faults(clock_jumps=0.01)),
    "a failing learner": (ISOLATES_FAILING_EXPERIMENTS, Faults(failing_learner=True, crashes=0.005)),
}


@pytest.mark.parametrize(
    "faults",
    [
        pytest.param(
            faults, id=name, marks=[] if is_survived else pytest.mark.xfail(reason="not survived yet", strict=False)
        )
        for name, (is_survived, faults) in CASES.items()
    ],
)
def test_nothing_wrong_comes_of(faults: Faults) -> None:
    for seed in range(SEEDS):
        World(seed, faults=faults).run()
