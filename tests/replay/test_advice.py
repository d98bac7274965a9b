"""The advice uses the library's certificates, and each sentence appears when its reason holds."""

from typing import Any

import numpy as np
import pytest

from belated import bounds
from belated.errors import InvalidInput
from belated.lab import NEVER
from belated.replay import advise


def test_certificates_are_sorted_and_those_of_the_library() -> None:
    delays = np.random.default_rng(1).integers(0, 300, 50_000)
    advice = advise(4, delays)
    assert {one.name for one in advice.certified} == {
        "Means",
        "Shadow",
        "Simple",
        "Advanced",
        "AdaptiveExp3",
        "Tsallis",
    }
    values = [one.certificate for one in advice.certified]
    assert values == sorted(values)
    assert values == [bounds.certificate(4, delays, one.tuning) for one in advice.certified]
    assert advice.trivial == 50_000
    assert "Keep the default, Means()" in advice.sentences[0]
    assert (
        f"use {advice.certified[0].name}(). Its expected regret is at most {values[0]:,.0f} in 50,000 rounds"
        in advice.sentences[1]
    )
    assert len(advice.sentences) == 2
    assert advice.sentences[1].endswith("against any losses, if delays do not depend on the drawn arm.")
    assert "cannot show whether that holds" in advice.assumption


def test_nothing_is_late() -> None:
    advice = advise(4, [0] * 10_000)
    assert "D = 0" in advice.sentences[1]
    assert "Tsallis-INF" in advice.sentences[1]


def test_a_few_excessive_delays() -> None:
    delays = np.zeros(20_000, np.int64)
    delays[:100] = NEVER
    advice = advise(4, delays)
    assert "Leaving out 100 of 20,000 rounds brings the cost of delay from" in advice.sentences[2]
    names = [one.name for one in advice.certified]
    assert names.index("Advanced") < names.index("Simple")
    assert len(advise(4, [100] * 20_000).sentences) == 2


def test_too_few_rounds() -> None:
    assert "The smallest certificate is 20, and no regret exceeds 20" in advise(10, [3] * 20).sentences[1]


@pytest.mark.parametrize(("n_arms", "delays"), [(1, [0]), (0, [0]), (2, []), (2, [-1]), (2, [0.5])])
def test_bad_input_is_refused(n_arms: Any, delays: Any) -> None:
    with pytest.raises(InvalidInput):
        advise(n_arms, delays)
