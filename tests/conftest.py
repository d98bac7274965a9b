"""Fixtures of every test."""

import os
import signal

import pytest

# Read when kernels are first imported, also by the processes that tests start. It keeps the time of a test the same.
os.environ.setdefault("BELATED_KERNELS", "compiled")


@pytest.fixture(autouse=True, scope="session")
def interrupts_arrive() -> None:
    """A shell that starts the tests in the background ignores Ctrl-C. Some tests send it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
