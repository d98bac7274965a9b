"""The state is a fold of the journal, for more histories and tunings than the quick check."""

from pathlib import Path

import pytest

from tests.serve import test_fold as quick


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_live_state_is_the_fold_from_nothing_and_from_any_snapshot(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick.test_live_state_is_the_fold_from_nothing_and_from_any_snapshot(tmp_path, seed, monkeypatch)


@pytest.mark.parametrize(
    ("default", "tuning"), [(None, "means"), (None, "shadow"), (None, "advanced"), (0.25, "advanced")]
)
def test_the_learner_is_the_librarys(tmp_path: Path, tuning: str, default: float | None) -> None:
    quick.test_the_learner_is_the_librarys(tmp_path, tuning, default)
