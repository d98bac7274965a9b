"""Baselines against their definitions, with more arms than the quick check."""

import pytest

from tests.baselines import test_baselines as quick


@pytest.mark.parametrize(("k", "seed"), [(4, 2)])
def test_masoudian_is_the_paper_algorithm(k: int, seed: int) -> None:
    quick.test_masoudian_is_the_paper_algorithm(k, seed)
