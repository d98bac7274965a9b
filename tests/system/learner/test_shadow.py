"""The shadow equals its transcription in more games. Its measured certificate holds on every problem of the lab."""

from itertools import product

import pytest

from tests.lab.test_problems import DELAYS, LOSSES
from tests.learner import test_shadow as quick
from tests.learner.test_shadow import CASES, QUICK, assert_measured_above_regret

pytestmark = pytest.mark.long


@pytest.mark.parametrize(("delays", "losses"), [case for case in product(DELAYS, LOSSES) if case not in QUICK])
def test_the_mean_of_the_measured_certificate_is_at_least_the_mean_regret(losses: str, delays: str) -> None:
    assert_measured_above_regret(losses, delays)


LITERAL = [(refresh, name) for refresh in (1, 5) for name in CASES if refresh == 1 or name not in ("coins", "bursts")]


@pytest.mark.parametrize(("refresh", "name"), LITERAL)
def test_it_equals_the_literal_transcription(name: str, refresh: int) -> None:
    quick.test_it_equals_the_literal_transcription(name, refresh)
