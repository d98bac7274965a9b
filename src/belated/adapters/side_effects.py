"""What importing a package of others must not change."""

import contextlib
import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Any


@contextlib.contextmanager
def left_as_they_were() -> Iterator[None]:
    """Puts `sys.path` and the settings of matplotlib back at the end, where matplotlib is installed."""
    path = list(sys.path)
    try:
        matplotlib: Any = import_module("matplotlib")
    except ModuleNotFoundError:
        settings: Any = contextlib.nullcontext()
    else:
        settings = matplotlib.rc_context()
    try:
        with settings:
            yield
    finally:
        sys.path[:] = path
