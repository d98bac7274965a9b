"""A change of arms is interrupted at every step."""

import pytest

from belated.tunings import Means, Shadow, Tuning
from tests.learner.test_changes import assert_an_interrupt_leaves_the_old_or_the_new_learner


@pytest.mark.parametrize("action", ["change", "change to one arm"])
@pytest.mark.parametrize("tuning", [Means(), Shadow()], ids=repr)
def test_an_interrupt_anywhere_leaves_the_old_or_the_new_learner(action: str, tuning: Tuning) -> None:
    assert_an_interrupt_leaves_the_old_or_the_new_learner(action, tuning, every=1)
