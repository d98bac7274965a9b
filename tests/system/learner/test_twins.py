"""Learners that were restored or recorded, with the refresh that the quick check leaves out."""

import pytest

from tests.learner import test_record, test_snapshot
from tests.support.catalogue import TUNINGS


@pytest.mark.parametrize("name", TUNINGS)
@pytest.mark.parametrize("refresh", [1])
def test_an_interrupted_run_continues_bit_for_bit(name: str, refresh: int) -> None:
    test_snapshot.test_an_interrupted_run_continues_bit_for_bit(name, refresh)


@pytest.mark.parametrize("refresh", [1])
@pytest.mark.parametrize("name", TUNINGS)
def test_recording_what_a_twin_drew_gives_the_same_learner(name: str, refresh: int) -> None:
    test_record.test_recording_what_a_twin_drew_gives_the_same_learner(name, refresh)
