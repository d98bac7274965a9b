"""The certificate against its definition, for the tunings that the quick check leaves out."""

import pytest

from tests.learner import test_certificate as quick
from tests.support.catalogue import TUNINGS

OTHERS = [name for name in TUNINGS if name not in quick.QUICK]


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("refresh", [1, 4])
def test_online_equals_its_definition(name: str, refresh: int) -> None:
    quick.test_online_equals_its_definition(name, refresh)


@pytest.mark.parametrize("name", OTHERS)
def test_a_whole_sequence_has_the_same_certificate(name: str) -> None:
    quick.test_a_whole_sequence_has_the_same_certificate(name)
