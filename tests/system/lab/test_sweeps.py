"""A sweep whose command is killed continues where it stopped."""

from pathlib import Path

from tests.support.sweeps import continues


def test_a_command_that_is_killed_continues(tmp_path: Path) -> None:
    settings = ["--algorithms", "uniform,qpm-d", "--rounds", "12000", "--seeds", "8", "--workers", "2"]
    continues(settings, tmp_path, 16)
