"""The cache of compiled kernels."""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from belated import kernels
from belated.kernels import native


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


def test_without_a_folder_for_the_cache_kernels_are_compiled_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    class Numba:
        @staticmethod
        def njit(*, cache: bool = False, **_settings: Any) -> Any:
            if cache:
                raise RuntimeError("cannot cache function: no locator available")
            return lambda function: function

    monkeypatch.setattr(native, "load", lambda: Numba)
    assert native.dispatcher_of(lambda: 7)() == 7
