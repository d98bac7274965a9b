"""A thousand seeds of the simulation. `make soak` runs more, and `python -m tests.simulation --seed N` replays one."""

from collections import Counter

import pytest

from tests.simulation.faults import RATES, SELDOM
from tests.simulation.running import run

SEEDS, AT_ONCE, ARCHIVED_SEEDS, SEEDS_IN_PARTS = 1_000, 25, 100, 100
EVENTS = (
    "conflicts",
    "overtaken",
    "replayed",
    "late",
    "amended",
    "expired",
    "arms",
    "closed",
    "operated",
    "commits without a client",
    "hidden",
    "refused as failed",
)


@pytest.mark.parametrize("first", range(0, SEEDS, AT_ONCE))
def test_nothing_is_lost_or_doubled_and_all_folds_are_equal(first: int) -> None:
    for seed in range(first, first + AT_ONCE):
        run(seed)


@pytest.mark.parametrize("first", range(0, ARCHIVED_SEEDS, AT_ONCE))
def test_it_stays_so_while_decisions_are_archived_and_erased(first: int) -> None:
    """An operator removes decisions at any time, and the command is killed at any step."""
    happened: Counter[str] = Counter()
    for seed in range(first, first + AT_ONCE):
        happened += run(seed, archives=True).happened
    assert happened["removed"] > 0
    assert happened["base"] > 0


@pytest.mark.parametrize("first", range(0, SEEDS_IN_PARTS, AT_ONCE))
def test_outcomes_in_parts_are_put_together_once(first: int) -> None:
    """Parts come to any server, twice and out of order, while waits end and decisions are archived."""
    happened: Counter[str] = Counter()
    for seed in range(first, first + AT_ONCE):
        happened += run(seed, has_parts=True, archives=seed % 4 == 0).happened
    assert [kind for kind in ("partial", "reported", "expired", "late", "amended") if not happened[kind]] == []


def test_a_seed_replays_exactly() -> None:
    traces: list[list[str]] = [[], []]
    outcomes = [run(7, trace=trace) for trace in traces]
    assert outcomes[0] == outcomes[1]
    assert traces[0] == traces[1]
    assert run(8).digest != outcomes[0].digest


def test_every_fault_and_every_race_occurs() -> None:
    happened: Counter[str] = Counter()
    for seed in range(60):
        happened += run(seed).happened
    assert [name for name in (*RATES, *SELDOM, *EVENTS) if not happened[name]] == []
