"""Our distributions, built once."""

from pathlib import Path

import pytest

from tests.support.distributions import FOLDERS, build


@pytest.fixture(scope="package")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Path]]:
    """The sdist and the wheel of each."""
    folder = tmp_path_factory.mktemp("built")
    kinds = "sdist", "wheel"
    return {
        name: {kind: build(source, folder / name / kind, kind) for kind in kinds} for name, source in FOLDERS.items()
    }
