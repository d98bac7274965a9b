"""Where compiled kernels are kept: in Numba's cache, and in folders that can only be read.

Numba takes a folder only if it can write to it. A container often cannot write to what was filled with its image, so
kernels are loaded from there too. A damaged file is as good as none, and it is written again.
"""

import atexit
import os
import pickle
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, final

from belated.kernels import native

failures: list[OSError] = []  # why a compiled kernel was not kept


@final
class Cache:
    """What a dispatcher asks for its kernel, in place of Numba's own cache."""

    def __init__(self, function: Callable[..., Any]) -> None:
        places = _places()  # before a folder for this process may take their place
        self._own = _writable(function)
        self.cache_path: str | None = None if self._own is None else self._own.cache_path
        before = places[: places.index(self.cache_path)] if self.cache_path in places else places
        others = [_checked(_reader(place)(function)) for place in before if _has_kernels(place)]
        self._all = others if self._own is None else [self._own, *others]

    def load_overload(self, signature: tuple[Any, ...], context: Any) -> Any:
        """The compiled kernel, or None if it is in no folder, or damaged."""
        for one in self._all:
            with suppress(Exception):  # whatever it is that a damaged file makes of a pickle
                if (found := one.load_overload(signature, context)) is not None:
                    return found
        return None

    def save_overload(self, signature: tuple[Any, ...], compiled: Any) -> None:
        """Keep it. If that fails, because the disk is full for instance, this process has it all the same."""
        if self._own is None:
            return
        try:
            self._save(signature, compiled)
        except OSError as error:
            failures.append(error)

    def _save(self, signature: tuple[Any, ...], compiled: Any) -> None:
        try:
            self._own.save_overload(signature, compiled)
        except OSError:
            raise
        except Exception:  # noqa: BLE001  # the index is damaged
            self._own.flush()
            self._own.save_overload(signature, compiled)


def _writable(function: Callable[..., Any]) -> Any:
    """Numba's cache. If nothing can be written anywhere else, in a folder for this process alone."""
    numba = native.load()
    with suppress(RuntimeError):  # no folder: neither the package's, nor the user's, nor NUMBA_CACHE_DIR
        return _checked(numba.core.caching.FunctionCache(function))
    with suppress(RuntimeError):
        if made := _temporary():
            numba.config.CACHE_DIR = made
            return _checked(numba.core.caching.FunctionCache(function))
    return None


@final
class Checked:
    """Numba's files of a kernel, each with a digest of itself. Damaged machine code would end the process.

    A digest is in the file it belongs to, so both are replaced at once. The key is there too: if two processes save at
    the same time, or one ends halfway, the index may name the file of another kernel.
    """

    def __init__(self, files: Any) -> None:
        self._files = files

    def load(self, key: Any) -> Any:
        """What was saved for this key, or None if there is nothing, or something else."""
        match self._files.load(key):
            case bytes(digest), bytes(content) if sha256(content).digest() == digest:
                origin, data = pickle.loads(content)  # noqa: S301  # as Numba itself does
                return data if origin == self._origin(key) else None
        return None

    def save(self, key: Any, data: Any) -> None:
        """Keep it, with a digest."""
        content = native.load().core.serialize.dumps((self._origin(key), data))
        self._files.save(key, (sha256(content).digest(), content))

    def flush(self) -> None:
        """Empty the index."""
        self._files.flush()

    def _origin(self, key: Any) -> tuple[Any, ...]:
        return self._files._version, self._files._source_stamp, key


def _checked(numbas: Any) -> Any:
    numbas._cache_file = Checked(numbas._cache_file)
    return numbas


@cache
def _temporary() -> str | None:
    try:
        made = tempfile.mkdtemp(prefix="belated-kernels-")  # which only this user can read
    except OSError:
        return None
    atexit.register(_remove, made, os.getpid())
    return made


def _remove(folder: str, owner: int) -> None:
    if os.getpid() == owner:  # not a fork of it
        shutil.rmtree(folder, ignore_errors=True)


@cache
def _places() -> tuple[str, ...]:
    """Where Numba keeps kernels if it can write there. It takes the first."""
    return tuple(_candidates())


def _candidates() -> Iterator[str]:
    numba = native.load()
    for locator in numba.core.caching.CompileResultCacheImpl._locator_classes:
        if "UserProvided" in locator.__name__ and not numba.config.CACHE_DIR:
            continue
        with suppress(Exception):  # some are for notebooks and zip files only
            yield str(locator(_candidates, __file__).get_cache_path())


@cache
def _has_kernels(place: str) -> bool:
    """Whether kernels of this release were kept there when this process began."""
    return any(Path(place).glob(f"*{native.DIGEST}*.nbi"))


@cache
def _reader(place: str) -> Callable[[Callable[..., Any]], Any]:
    """Numba's cache in this folder, to be read only."""
    caching = native.load().core.caching
    classes = {one.__name__.strip("_"): one for one in caching.CompileResultCacheImpl._locator_classes}
    here = {"get_cache_path": lambda _self: place, "ensure_cache_path": lambda _self: None}
    locator = type("Locator", (classes["InTreeCacheLocator"],), here)
    implementation = type("Implementation", (caching.CompileResultCacheImpl,), {"_locator_classes": [locator]})
    return type("Reader", (caching.FunctionCache,), {"_impl_class": implementation})


def dispatcher_of(function: Callable[..., Any]) -> Any:
    """Numba's object for a kernel, which keeps what it compiles."""
    function.__qualname__ += f"-{native.DIGEST}"
    dispatcher = native.load().njit(**native.SETTINGS)(function)
    dispatcher._cache = Cache(function)
    return dispatcher


@cache
def folder() -> str | None:
    """Where compiled kernels are kept, or None if they are not."""
    return Cache(_remove).cache_path


def is_lasting() -> bool:
    """Whether they are kept when this process ends."""
    kept, made = folder(), _temporary() if _temporary.cache_info().currsize else None
    return kept is not None and not (made and Path(kept).is_relative_to(made))


def entry_point_of(dispatcher: Any, signature: tuple[Any, ...]) -> Callable[..., Any]:
    """The compiled function for these types. Loads it from the disk, or compiles it."""
    dispatcher.compile(signature)
    function: Callable[..., Any] = dispatcher.overloads[signature].entry_point
    return function


def is_on_disk(dispatcher: Any, signature: tuple[Any, ...]) -> bool:
    """Whether a kernel for these types and this processor is kept anywhere."""
    return dispatcher._cache.load_overload(signature, dispatcher.targetctx) is not None
