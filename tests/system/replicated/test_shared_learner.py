"""Copies of a learner agree and their certificate holds, for every tuning and many histories."""

from itertools import product

import pytest

from belated.tunings import Advanced, Simple, Tuning
from tests.replicated import test_shared_learner as quick
from tests.replicated.test_shared_learner import (
    above_its_definition,
    assert_copies_agree,
    assert_never_below_what_is_proven,
)
from tests.support.catalogue import TUNINGS

REPLICAS = [(1, 0), (2, 0), (2, 4), (3, 12), (3, 60)]  # the number of replicas and their lag


@pytest.mark.parametrize("tuning", [Simple(), Advanced(), Advanced(scale=3.0)], ids=repr)
@pytest.mark.parametrize(("replicas", "lag"), REPLICAS)
def test_the_certificate_is_never_below_what_is_proven(tuning: Tuning, replicas: int, lag: int) -> None:
    assert_never_below_what_is_proven(tuning, replicas, lag)


@pytest.mark.parametrize("name", TUNINGS)
def test_copies_agree_to_the_last_bit_however_they_came_there(name: str) -> None:
    assert_copies_agree(name)


WITHOUT_LAG = [
    (replicas, tuning)
    for replicas, tuning in product([1, 2], [Simple(), Advanced(), Advanced(scale=3.0)])
    if (replicas, tuning) != (1, Advanced())
]


@pytest.mark.parametrize(("replicas", "tuning"), WITHOUT_LAG, ids=repr)
def test_without_lag_the_certificate_is_its_definition(tuning: Tuning, replicas: int) -> None:
    quick.test_without_lag_the_certificate_is_its_definition(tuning, replicas)


@pytest.mark.parametrize("tuning", [Simple(), Advanced()], ids=repr)
def test_the_certificate_is_near_its_definition(tuning: Tuning) -> None:
    assert max(above_its_definition(tuning, games=4, replicas=3, lag=12, n=400)) < 1.25
    assert max(above_its_definition(tuning, games=2, replicas=3, lag=4, n=800)) < 1.05
