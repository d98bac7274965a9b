"""Baselines against their definitions and earlier measurements, with more arms or rounds than the quick check."""

import pytest

from belated import lab
from tests.baselines import test_baselines as quick


@pytest.mark.parametrize(("k", "seed"), [(4, 2)])
def test_masoudian_is_the_paper_algorithm(k: int, seed: int) -> None:
    quick.test_masoudian_is_the_paper_algorithm(k, seed)


def test_thompson_has_the_regret_that_was_measured_before() -> None:
    problem = lab.Problem(lab.Bernoulli(gap=0.1), lab.NoDelay(), n_arms=10, n_rounds=20_000)
    curves = lab.play("thompson", problem, range(12), checkpoints=[20_000], workers=2)
    assert 130 < curves.mean[-1] < 250  # about 186 on average
