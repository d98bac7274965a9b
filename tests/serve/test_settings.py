"""The tuning of an experiment by name, with its parameters."""

from typing import Any

import pytest

from belated import tunings
from belated.errors import InvalidInput
from belated.serve.domain.settings import Settings, TuningChoice

BUILT: list[tuple[dict[str, Any], tunings.Tuning]] = [
    ({}, tunings.Means()),
    ({"boldness": 2.0, "scale": 1.0, "switch_threshold": 0.5}, tunings.Means(2.0, 1.0, 0.5)),
    ({"name": "shadow", "switch_threshold": 0.5}, tunings.Shadow(switch_threshold=0.5)),
    ({"name": "advanced", "scale": 2.0}, tunings.Advanced(scale=2.0)),
    ({"name": "simple"}, tunings.Simple()),
    ({"name": "tsallis"}, tunings.Tsallis()),
    ({"name": "adaptive_exp3"}, tunings.AdaptiveExp3()),
    ({"name": "exp3", "eta": 0.5}, tunings.Exp3(0.5)),
]


@pytest.mark.parametrize(("choice", "tuning"), BUILT)
def test_a_tuning_is_built_by_its_name(choice: dict[str, Any], tuning: tunings.Tuning) -> None:
    assert TuningChoice(**choice).build() == tuning


def test_the_default_is_that_of_the_library() -> None:
    assert Settings("layout", ["a", "b"]).tuning.build() == tunings.DEFAULT


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"name": "shadow", "boldness": 2.0}, "the tuning shadow has no boldness"),
        ({"eta": 1.0}, "the tuning means has no eta"),
        ({"name": "exp3"}, "needs eta"),
    ],
)
def test_a_parameter_that_does_not_fit_is_refused(choice: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        Settings("layout", ["a", "b"], tuning=TuningChoice(**choice)).check()
