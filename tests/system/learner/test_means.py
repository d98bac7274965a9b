"""A learner on means equals its transcription in more games. Its certificates hold on every problem of the lab."""

from itertools import product

import pytest

from tests.lab.test_problems import DELAYS, LOSSES
from tests.learner import test_means as quick
from tests.learner.test_means import CASES
from tests.learner.test_shadow import QUICK

pytestmark = pytest.mark.long

LITERAL = [(name, seed) for name in CASES for seed in range(1, 6) if name not in quick.QUICK_CASES or seed > 1]


@pytest.mark.parametrize(("name", "seed"), LITERAL)
def test_it_equals_the_literal_transcription(name: str, seed: int) -> None:
    quick.assert_it_equals_the_literal_transcription(name, seed)


@pytest.mark.parametrize(("delays", "losses"), [case for case in product(DELAYS, LOSSES) if case not in QUICK])
def test_the_mean_certificates_are_at_least_the_mean_regret(losses: str, delays: str) -> None:
    quick.assert_certificates_above_regret(losses, delays)


@pytest.mark.parametrize("seed", range(5))
def test_the_worst_case_in_closed_form_is_above_every_certificate(seed: int) -> None:
    quick.assert_the_worst_case_is_above_every_certificate(sequences=400, seed=seed)
