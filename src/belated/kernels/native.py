"""Numba's side of the kernels. Numba is loaded only when a kernel is to be compiled, which takes half a second."""

import atexit
import os
import shutil
import tempfile
from collections.abc import Callable
from functools import cache, cached_property, update_wrapper
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar, cast, final

import numpy as np

T = TypeVar("T")
R = TypeVar("R")

# Numba's cache of a kernel does not notice edits in another file: a digest of them all becomes part of its name there.
SOURCES = b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))
DIGEST = sha256(SOURCES).hexdigest()[:12]
SETTINGS = {"nogil": True, "error_model": "numpy"}  # no GIL, IEEE division


@cache
def is_installed() -> bool:
    """Whether there is a Numba to compile with."""
    try:
        return find_spec("numba") is not None
    except ValueError:  # somebody has put something else in its place
        return False


@cache
def load() -> Any:
    """The module numba."""
    import numba  # noqa: PLC0415

    return numba


@final
class Bitcast:
    """A function that reads the bits of one type as another. Compiled, it is a single instruction."""

    def __init__(self, function: Callable[..., Any], source: str, target: str) -> None:
        update_wrapper(self, function)
        self.function, self._source, self._target = function, source, target

    def __call__(self, value: Any) -> Any:
        return self.function(value)

    @cached_property
    def _numba_type_(self) -> Any:
        """What Numba takes this object for where a kernel calls it."""
        numba = load()
        from numba.core.registry import cpu_target  # noqa: PLC0415
        from numba.extending import intrinsic  # noqa: PLC0415

        source, target = getattr(numba, self._source), getattr(numba, self._target)

        def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            return builder.bitcast(arguments[0], context.get_value_type(target))

        instruction = intrinsic(lambda _context, _value: (target(source), generate))
        cpu_target.typing_context.refresh()
        return cpu_target.typing_context.resolve_value_type(instruction)


def bitcast(source: str, target: str) -> Callable[[Callable[[T], R]], Callable[[T], R]]:
    """Make a function that has the same result in Python a `Bitcast`."""
    return lambda function: cast(Callable[[T], R], Bitcast(function, source, target))


def dispatcher_of(function: Callable[..., Any]) -> Any:
    """Numba's object for a kernel, which keeps what it compiles on disk."""
    njit = load().njit
    function.__qualname__ += f"-{DIGEST}"
    try:
        return njit(cache=True, **SETTINGS)(function)
    except RuntimeError:  # no folder to keep it in: neither the package's, nor the user's, nor NUMBA_CACHE_DIR
        return njit(**SETTINGS)(function)


def folder() -> str | None:
    """Where compiled kernels are kept. If nothing can be written anywhere else, in a folder for this process alone."""
    numba = load()
    try:
        kept: str = numba.njit(cache=True)(folder).stats.cache_path
    except RuntimeError:
        try:
            kept = tempfile.mkdtemp(prefix="belated-kernels-")  # which only this user can read
        except OSError:
            return None
        numba.config.CACHE_DIR = kept
        atexit.register(_remove, kept, os.getpid())
    return kept


def _remove(folder: str, owner: int) -> None:
    if os.getpid() == owner:  # not a fork of it
        shutil.rmtree(folder, ignore_errors=True)


def signature_of(examples: tuple[Any, ...]) -> tuple[Any, ...]:
    """Numba's types of these arguments."""
    return tuple(map(load().typeof, examples))


def entry_point_of(dispatcher: Any, signature: tuple[Any, ...]) -> Callable[..., Any]:
    """The compiled function for these types. Loads it from the disk, or compiles it."""
    dispatcher.compile(signature)
    function: Callable[..., Any] = dispatcher.overloads[signature].entry_point
    return function


def is_on_disk(dispatcher: Any, signature: tuple[Any, ...]) -> bool:
    """Whether Numba's cache has a kernel for these types and this processor."""
    return dispatcher._cache.load_overload(signature, dispatcher.targetctx) is not None


def type_key(example: Any) -> Any:
    """What Numba's type of an argument depends on. To ask Numba itself would take far longer."""
    if isinstance(example, np.ndarray):
        return type(example), example.dtype, example.ndim, example.flags.num
    return (type(example), example.dtype) if isinstance(example, np.void) else type(example)


def stand_in(example: Any) -> Any:
    """A small argument of the same type."""
    if isinstance(example, np.void):
        return np.zeros(1, example.dtype)[0]
    if not isinstance(example, np.ndarray) or not example.flags.c_contiguous:
        return example
    small = np.empty((0,) * example.ndim, example.dtype)
    small.flags.writeable = example.flags.writeable
    return small
