"""Fixtures of every test."""

import signal

import pytest


@pytest.fixture(autouse=True, scope="session")
def interrupts_arrive() -> None:
    """A shell that starts the tests in the background ignores Ctrl-C. Some tests send it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
