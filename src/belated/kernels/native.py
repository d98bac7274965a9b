"""Numba's side of the kernels. Numba is loaded only when a kernel is to be compiled, which takes half a second."""

import os
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
problems: list[str] = []  # why Numba cannot be loaded, although it is there


@cache
def is_installed() -> bool:
    """Whether there is a Numba to compile with."""
    try:
        return find_spec("numba") is not None
    except ValueError:  # somebody has put something else in its place
        return False


def is_switched_off() -> bool:
    """Whether NUMBA_DISABLE_JIT asks for plain Python, as who looks for a bug in a kernel may."""
    return os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")


@cache
def load() -> Any:
    """The module numba."""
    try:
        import numba  # noqa: PLC0415
    except Exception as error:  # NumPy may be too new for it, or a library of LLVM may be missing
        problems.append(repr(error))
        raise
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


def signature_of(examples: tuple[Any, ...]) -> tuple[Any, ...]:
    """Numba's types of these arguments."""
    return tuple(map(load().typeof, examples))


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
