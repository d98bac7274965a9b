"""Fixtures of the tests of the service."""

from pathlib import Path

import pytest

from tests.support.engines import Driven


@pytest.fixture
def driven(tmp_path: Path) -> Driven:
    """An engine without experiments. Some files override it and create one."""
    return Driven(tmp_path)
