"""Finished games in a folder, in a small file each. Files are written atomically, so a crash leaves no partial one."""

import hashlib
import math
import os
import threading
from pathlib import Path
from typing import NamedTuple

import numpy as np

from belated.arrays import Floats
from belated.errors import StoreError

DIGEST_BYTES = 32


class FinishedGame(NamedTuple):
    """Regret at the checkpoints, expected and suffered, the seconds it took, and the proven bound."""

    expected: Floats
    suffered: Floats
    seconds: float
    bound: float | None


def path_of(folder: Path, key: str) -> Path:
    """The file of a game."""
    return folder / "games" / key


def write(folder: Path, key: str, played: FinishedGame) -> None:
    """Keep a game. The file gets its name only when it is complete."""
    bound = math.nan if played.bound is None else played.bound
    content = np.concatenate([[played.seconds, bound], played.expected, played.suffered]).astype("<f8").tobytes()
    path = path_of(folder, key)
    partial = path.with_name(f"{key}.{os.getpid()}-{threading.get_ident()}.partial")
    try:
        partial.parent.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(_digest(key, content) + content)
        partial.replace(path)
    except OSError as error:
        raise StoreError(f"a game cannot be kept in {path.parent}: {error.strerror}. Finished games stay") from error


def read(folder: Path, key: str, n_checkpoints: int) -> FinishedGame | None:
    """The game that was kept, bit for bit, or None if its file is missing, damaged or of another game."""
    try:
        content = path_of(folder, key).read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise StoreError(
            f"{path_of(folder, key)} cannot be read: {error.strerror}. Make it readable or delete it"
        ) from error
    digest, content = content[:DIGEST_BYTES], content[DIGEST_BYTES:]
    if digest != _digest(key, content) or len(content) != 8 * (2 + 2 * n_checkpoints):
        return None
    (seconds, bound), curves = np.split(np.frombuffer(content, "<f8").astype(np.float64), [2])
    expected, suffered = curves.reshape(2, n_checkpoints)
    return FinishedGame(expected, suffered, float(seconds), None if math.isnan(bound) else float(bound))


def _digest(key: str, content: bytes) -> bytes:
    return hashlib.sha256(key.encode() + content).digest()
