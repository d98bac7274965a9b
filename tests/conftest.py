"""What every test may rely on."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from service import Served


@pytest.fixture(autouse=True, scope="session")
def interrupts_arrive() -> None:
    """A shell that starts the tests in the background has Ctrl-C ignored; some tests send it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    """A fresh service without experiments."""
    with Served(tmp_path) as served:
        yield served
