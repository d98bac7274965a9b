"""How kernels are compiled and called."""

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numba import njit, typeof

from belated.arrays import Floats

P = ParamSpec("P")
R = TypeVar("R")
Policies = Floats  # one policy, or with a shadow a bold and a careful one
Record = Any  # one element of a structured array
Records = Any  # a structured array; NumPy's types say nothing about its fields


# Numba's cache of a kernel does not notice edits in another file: a digest of them all becomes part of its name there.
SOURCES = b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))
DIGEST = sha256(SOURCES).hexdigest()[:12]


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile with the settings shared by every kernel (IEEE division, no GIL, cached on disk)."""
    function.__qualname__ += f"-{DIGEST}"
    try:
        kernel: Callable[P, R] = njit(cache=True, nogil=True, error_model="numpy")(function)
    except RuntimeError:  # no folder to keep it in: neither the package's, nor the user's, nor NUMBA_CACHE_DIR
        kernel = njit(nogil=True, error_model="numpy")(function)
    return kernel


_entry_points: dict[tuple[Any, ...], Any] = {}


def entry_point(kernel: Callable[P, R], *examples: Any) -> Callable[..., R]:
    """The compiled function behind a kernel, for arguments of the examples' types.

    Calling it skips Numba's look-up of the types, which takes longer than a round's work, and its checks of them.
    """
    key = kernel, *map(_type_key, examples)
    found: Callable[..., R] | None = _entry_points.get(key)
    if found is None:
        dispatcher: Any = kernel
        signature = tuple(map(typeof, examples))
        dispatcher.compile(signature)
        found = _entry_points[key] = dispatcher.overloads[signature].entry_point
    return found


def _type_key(example: Any) -> Any:
    """What Numba's type of the example depends on. Its type of a structured array takes far longer to find."""
    if isinstance(example, np.ndarray):
        return type(example), example.dtype, example.ndim, example.flags.num
    numba_type: Any = typeof
    return numba_type(example)
