"""How kernels are compiled and called."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numba import njit, typeof
from numpy.typing import NDArray

P = ParamSpec("P")
R = TypeVar("R")
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Record = Any  # one element of a structured array
Records = Any  # a structured array; NumPy's types say nothing about its fields


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile with the settings shared by every kernel (IEEE division, no GIL, cached on disk)."""
    kernel: Callable[P, R] = njit(cache=True, nogil=True, error_model="numpy")(function)
    return kernel


def entry_point(kernel: Callable[P, R], *examples: Any) -> Callable[..., R]:
    """The compiled function behind a kernel, for arguments of the examples' types.

    Calling it skips Numba's look-up of the types, which takes longer than a round's work, and its checks of them.
    """
    dispatcher: Any = kernel
    signature = tuple(map(typeof, examples))
    dispatcher.compile(signature)
    compiled_function: Callable[..., R] = dispatcher.overloads[signature].entry_point
    return compiled_function


def drop_stale_cache(folder: Path = Path(__file__).parent) -> None:
    """Numba's cache of a kernel does not notice edits in another file: drop what is older than any source here."""
    newest = max(path.stat().st_mtime for path in folder.glob("*.py"))
    for index in folder.glob("__pycache__/*.nbi"):
        with suppress(OSError):  # another process may have done it
            if index.stat().st_mtime < newest:
                index.unlink()


drop_stale_cache()
