"""The simulation finds faults that are put into the service on purpose."""

import pytest

from tests.simulation import part_mutants
from tests.simulation.mutants import MUTANTS
from tests.simulation.running import fails

SEEDS = 100


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_found(name: str) -> None:
    with MUTANTS[name]():
        assert any(fails(seed, None) for seed in range(SEEDS)), f"{SEEDS} seeds do not find it"


@pytest.mark.parametrize("name", part_mutants.MUTANTS)
def test_a_mutant_of_parts_is_found(name: str) -> None:
    with part_mutants.MUTANTS[name]():
        assert any(fails(seed, None, has_parts=True) for seed in range(SEEDS)), f"{SEEDS} seeds do not find it"


def test_without_a_mutant_the_same_seeds_pass() -> None:
    assert not any(fails(seed, None) for seed in range(10))
