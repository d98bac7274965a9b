"""Arms that come and go on two servers, for many more histories than the quick check."""

from pathlib import Path

import pytest

from tests.serve import test_arms as quick


@pytest.mark.parametrize("default", [None, 0.75])
@pytest.mark.parametrize("seed", range(1, 25))
def test_servers_agree_from_any_snapshot_and_know_what_the_journal_says(
    tmp_path: Path, seed: int, default: float | None
) -> None:
    quick.test_servers_agree_from_any_snapshot_and_know_what_the_journal_says(tmp_path, seed, default)
