"""The cache of compiled kernels."""

import errno
import hashlib
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from belated import kernels
from belated.errors import InvalidInput
from belated.kernels import keeping, native


def test_the_cache_of_a_kernel_notices_edits_in_every_kernel_file() -> None:
    """Numba checks only the file of the kernel. So the name in the cache carries a digest of all files."""
    sources = b"".join(path.read_bytes() for path in sorted(Path(kernels.__file__).parent.glob("*.py")))
    digest = hashlib.sha256(sources).hexdigest()[:12]
    argmin: Any = kernels.argmin
    assert argmin.dispatcher.py_func.__qualname__ == f"argmin-{digest}"
    argmin(np.ones((kernels.ROWS, 2)), 1.0, 1.0, 0)  # on a fresh machine nothing is in the cache yet
    folder = kernels.folder()
    assert folder == argmin.dispatcher.stats.cache_path
    assert list(Path(str(folder)).glob(f"argmin.argmin-{digest}*.nbi"))


class Numbas:
    """A stand-in for Numba's cache of a kernel, whose files are damaged or cannot be written."""

    def __init__(self, *, is_damaged: bool = False, is_full: bool = False) -> None:
        self.is_damaged, self._is_full, self.kept = is_damaged, is_full, list[Any]()

    def load_overload(self, _signature: Any, _context: Any) -> Any:
        if self.is_damaged:
            raise pickle.UnpicklingError("pickle data was truncated")
        return self.kept[-1] if self.kept else None

    def save_overload(self, _signature: Any, made: Any) -> None:
        if self._is_full:
            raise OSError(errno.ENOSPC, "No space left on device")
        if self.is_damaged:
            raise pickle.UnpicklingError("pickle data was truncated")
        self.kept.append(made)

    def flush(self) -> None:
        self.is_damaged = False


def cache_over(*numbas: Numbas) -> keeping.Cache:
    """The first can be written, the others can only be read."""
    cache = keeping.Cache(test_without_a_folder_to_write_to_they_are_read_from_another)
    cache._own, cache._all = (numbas[0], list(numbas)) if len(numbas) > 1 else (numbas[0], [numbas[0]])
    return cache


def test_a_damaged_cache_is_as_good_as_none_and_is_written_again() -> None:
    numbas = Numbas(is_damaged=True)
    cache = cache_over(numbas)
    assert cache.load_overload((), None) is None
    cache.save_overload((), "compiled")
    assert not numbas.is_damaged
    assert cache.load_overload((), None) == "compiled"


def test_on_a_full_disk_the_kernel_is_compiled_and_the_reason_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "failures", [])
    cache_over(Numbas(is_full=True)).save_overload((), "compiled")
    assert [error.errno for error in keeping.failures] == [errno.ENOSPC]
    with pytest.raises(InvalidInput, match=r"the compiled kernels cannot be kept in .*No space left on device"):
        kernels.folder()


def test_where_numba_s_compiler_is_disabled_warm_does_not_say_that_it_has_compiled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    with pytest.raises(InvalidInput, match="nothing is compiled, because NUMBA_DISABLE_JIT is set"):
        kernels.folder()


def test_without_a_folder_to_write_to_they_are_read_from_another() -> None:
    elsewhere = Numbas()
    elsewhere.save_overload((), "compiled with the image")
    assert cache_over(Numbas(is_damaged=True), elsewhere).load_overload((), None) == "compiled with the image"


def checked_files(folder: Path, stamp: str = "sources") -> tuple[Any, keeping.Checked]:
    """Numba's files of a kernel, bare and with digests."""
    bare = native.load().core.caching.IndexDataCacheFile(str(folder), "kernel", stamp)
    return bare, keeping.Checked(bare)


def test_a_file_is_loaded_only_if_every_byte_is_as_it_was_written(tmp_path: Path) -> None:
    _, files = checked_files(tmp_path)
    code = np.random.default_rng(0).bytes(4096)
    files.save("floats", code)
    assert files.load("floats") == code
    [file] = tmp_path.glob("*.nbc")
    whole = file.read_bytes()
    for start in range(100, len(whole) - 64, 64):  # within what it says about itself pickle finds the damage
        file.write_bytes(whole[:start] + bytes(64) + whole[start + 64 :])
        assert files.load("floats") is None, start
    file.write_bytes(whole)
    assert files.load("floats") == code


def test_a_file_without_a_digest_counts_as_none(tmp_path: Path) -> None:
    bare, files = checked_files(tmp_path)
    bare.save("floats", ("code", "types"))
    assert files.load("floats") is None
    files.save("floats", "code")
    assert files.load("floats") == "code"


def test_a_file_is_not_taken_for_that_of_another_kernel(tmp_path: Path) -> None:
    """Two processes that begin with an empty index give different kernels the same name. Each writes two files."""
    bare, files = checked_files(tmp_path)
    files.save("floats", "code for floats")
    first = (tmp_path / "kernel.nbi").read_bytes()
    bare.flush()
    files.save("integers", "code for integers")
    assert len(list(tmp_path.glob("*.nbc"))) == 1
    assert files.load("integers") == "code for integers"
    (tmp_path / "kernel.nbi").write_bytes(first)  # the slower one writes its index last, and ends before its code
    assert files.load("floats") is None
    files.save("floats", "code for floats")
    assert files.load("floats") == "code for floats"


def test_an_index_is_not_taken_with_a_file_of_older_sources(tmp_path: Path) -> None:
    """A process that ends halfway leaves a new index and the old code."""
    _, older = checked_files(tmp_path, "older sources")
    older.save("floats", "older code")
    bare, files = checked_files(tmp_path)
    [file] = tmp_path.glob("*.nbc")
    bare._save_index({"floats": file.name})
    assert bare.load("floats") is not None
    assert files.load("floats") is None
