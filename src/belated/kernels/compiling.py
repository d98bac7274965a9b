"""How kernels are called. They run as plain Python until they are compiled, with the same bits (interpreting.py).

The environment variable BELATED_KERNELS may force one of both.

    auto         interpreted first, and compiled in the background (background.py). The default
    compiled     every kernel is compiled before it runs
    interpreted  nothing is compiled, and Numba is never loaded
"""

import os
import time
import warnings
from collections.abc import Callable, Hashable
from contextlib import suppress
from functools import cache, partial, update_wrapper
from threading import RLock
from typing import Any, Final, ParamSpec, TypeVar, cast, final

import numpy as np

from belated.arrays import Floats
from belated.errors import InvalidInput
from belated.extras import missing
from belated.kernels import interpreting, keeping, native
from belated.kernels.background import Background, Wanted
from belated.progress import while_busy

P = ParamSpec("P")
R = TypeVar("R")
Policies = Floats  # one policy, or with a shadow a bold and a careful one
Record = Any  # one element of a structured array
Records = Any  # a structured array; NumPy's types say nothing about its fields

VARIABLE: Final = "BELATED_KERNELS"
TIERS: Final = ("auto", "compiled", "interpreted")
LARGE: Final = 100_000  # numbers in an array, for which waiting for the compiler is faster than Python
COMPILING: Final = "compiling the kernels (once for an installation)"

_background = Background()
_making = RLock()
_entry_points: dict[Hashable, Callable[..., Any]] = {}


def use_tier(tier: str) -> None:
    """Choose how kernels run from now on."""
    if tier not in TIERS:
        raise InvalidInput(f"{VARIABLE} must be auto, compiled or interpreted, got {tier!r}")
    if tier == "compiled" and not native.is_installed():
        raise InvalidInput(missing("numba", "fast"))
    _choice["tier"] = tier


_choice = {"tier": "auto"}
use_tier(os.environ.get(VARIABLE, "auto"))


def compile_soon() -> None:
    """Compile what was interpreted so far, in the background and without delay."""
    if _choice["tier"] == "auto" and can_compile():
        _background.start()


def load_compiled() -> None:
    """Load what was interpreted so far, as far as it was compiled before."""
    if _choice["tier"] == "auto" and can_compile() and _loads():
        _background.load_kept()


def is_compiling() -> bool:
    """Whether kernels are being compiled in the background."""
    return _background.is_busy


def folder() -> str:
    """Where compiled kernels are kept. Raises if there are none, or if they would be lost with this process."""
    if native.is_switched_off():
        raise InvalidInput("nothing is compiled, because NUMBA_DISABLE_JIT is set")
    if not _loads():
        raise InvalidInput(_cannot_load())
    kept = keeping.folder()
    if kept is None or not keeping.is_lasting():
        raise InvalidInput("no folder for the compiled kernels can be written. Name one in NUMBA_CACHE_DIR")
    if keeping.failures:
        raise InvalidInput(f"the compiled kernels cannot be kept in {kept}: {keeping.failures[0]}")
    return kept


def compile_first() -> None:
    """From now on every kernel is compiled before it runs, unless BELATED_KERNELS says otherwise."""
    if VARIABLE not in os.environ:
        use_tier("compiled")


@final
class Kernel:
    """A function on arrays, as plain Python and compiled."""

    def __init__(self, function: Callable[..., Any], *, is_compiled_first: bool) -> None:
        update_wrapper(self, function)
        self.function = function
        self.is_compiled_first = is_compiled_first
        self._dispatcher: Any = None
        self._run: Callable[..., Any] = self._choose

    def __call__(self, *arguments: Any) -> Any:
        return self._run(*arguments)

    def __reduce__(self) -> str:
        return self.function.__name__

    @property
    def _numba_type_(self) -> Any:
        """What Numba takes this object for where another kernel calls it."""
        return self.dispatcher._numba_type_

    @property
    def dispatcher(self) -> Any:
        """Numba's object for this kernel. There is one, also if two threads ask at once (cached_property makes two)."""
        if self._dispatcher is None:
            with _making:
                self._dispatcher = self._dispatcher or keeping.dispatcher_of(self.function)
        return self._dispatcher

    def _choose(self, *arguments: Any) -> Any:
        """Choose a tier for this call. Once the kernel is compiled there is nothing left to choose."""
        key = _key(self, arguments)
        if ready(self, key, arguments) is None:
            return self.interpret(key, arguments)
        self._run = self.dispatcher
        return self.dispatcher(*arguments)

    def interpret(self, key: Hashable, arguments: tuple[Any, ...]) -> Any:
        """Run as plain Python."""
        if _choice["tier"] != "auto" or not can_compile():
            return interpreting.call(self.function, arguments)
        began = time.perf_counter()
        result = interpreting.call(self.function, arguments)
        spent = time.perf_counter() - began
        _background.note(key, partial(Wanted.of, self, arguments, partial(_entry_points.__setitem__, key)), spent)
        return result


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """A kernel that is compiled after its first calls."""
    return cast(Callable[P, R], Kernel(function, is_compiled_first=False))


def compiled_first(function: Callable[P, R]) -> Callable[P, R]:
    """A kernel that is compiled before it is called. For whole games."""
    return cast(Callable[P, R], Kernel(function, is_compiled_first=True))


@cache
def has_compiler() -> bool:
    """Whether Numba is there and may compile. Says once if it is not there."""
    if native.is_switched_off():
        return False
    if not native.is_installed():
        warnings.warn(f"Decisions are slow. {missing('numba', 'fast')}", RuntimeWarning, stacklevel=2)
    return native.is_installed()


def can_compile() -> bool:
    """Whether Numba is there, and nothing has shown yet that it cannot be loaded."""
    return has_compiler() and not native.problems


def _loads() -> bool:
    """Whether Numba can be loaded. If not, says so once, and raises where every kernel must be compiled."""
    is_new = not native.problems
    with suppress(Exception):  # why is noted
        if is_new:
            native.load()
    if native.problems and _choice["tier"] == "compiled":
        raise InvalidInput(_cannot_load())
    if native.problems and is_new:
        warnings.warn(f"the kernels stay interpreted. {_cannot_load()}", RuntimeWarning, stacklevel=2)
    return not native.problems


def _cannot_load() -> str:
    return f"Numba is installed but cannot be loaded: {native.problems[0]}"


def ready(kernel: Any, key: Hashable, arguments: tuple[Any, ...]) -> Callable[..., Any] | None:
    """The compiled function for arguments of these types, or None if the kernel is to be interpreted for now."""
    if _choice["tier"] == "interpreted" or not has_compiler():
        return None
    if _choice["tier"] == "compiled" or kernel.is_compiled_first or any(map(_is_large, arguments)):
        return entry_point(kernel, *arguments) if _loads() else None
    return _entry_points.get(key)


def _is_large(argument: Any) -> bool:
    return isinstance(argument, np.ndarray) and argument.size > LARGE and not argument.dtype.names


def entry_point(kernel: Callable[P, R], *examples: Any) -> Callable[..., R]:
    """The compiled function behind a kernel, for arguments of the examples' types.

    Calling it skips Numba's look-up of the types, which takes longer than a round's work, and its checks of them.
    """
    key = _key(kernel, examples)
    found = _entry_points.get(key)
    if found is None:
        with while_busy(COMPILING, in_lines=True):
            dispatcher = cast(Kernel, kernel).dispatcher
            found = _entry_points[key] = keeping.entry_point_of(dispatcher, native.signature_of(examples))
    return found


def bound(
    kernel: Callable[..., R], fixed: tuple[Any, ...], *examples: Any, switch: Callable[[], None]
) -> Callable[..., R]:
    """A kernel with its first arguments. It is interpreted until it is compiled. Then it calls `switch`, once.

    The caller binds it anew then, so that no call pays for the choice.
    """
    arguments, own = (*fixed, *examples), cast(Kernel, kernel)
    key = _key(kernel, arguments)
    compiled = ready(own, key, arguments)
    if compiled is not None:
        return partial(compiled, *fixed)

    def interpret(*rest: Any) -> R:
        compiled = ready(own, key, arguments)
        if compiled is None:
            return cast(R, own.interpret(key, (*fixed, *rest)))
        switch()
        return cast(R, compiled(*fixed, *rest))

    return interpret


def _key(kernel: Any, arguments: tuple[Any, ...]) -> Hashable:
    return kernel, *map(native.type_key, arguments)
