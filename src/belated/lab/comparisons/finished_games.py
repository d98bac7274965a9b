"""Finished games in a folder, in a small file each. Files are written atomically, so a crash leaves no partial one."""

import hashlib
import math
import os
import threading
from pathlib import Path
from typing import NamedTuple

import numpy as np

from belated.errors import StoreError
from belated.lab.games.curves import Played

DIGEST_BYTES = 32
N_NUMBERS = 5  # of a game, before what it has at each checkpoint


class FinishedGame(NamedTuple):
    """What was played at the checkpoints, the seconds it took, the proven bound and the lower bound."""

    played: Played
    seconds: float
    bound: float | None
    lower: float | None


def path_of(folder: Path, key: str) -> Path:
    """The file of a game."""
    return folder / "games" / key


def write(folder: Path, key: str, game: FinishedGame) -> None:
    """Keep a game. The file gets its name only when it is complete."""
    *regrets, arms, evidence, is_repeatable, _ = game.played
    numbers = np.array([game.seconds, evidence, is_repeatable, game.bound, game.lower], np.float64)  # None becomes NaN
    content = np.concatenate([numbers, *regrets]).astype("<f8").tobytes() + arms.astype("<i4").tobytes()
    path = path_of(folder, key)
    partial = path.with_name(f"{key}.{os.getpid()}-{threading.get_ident()}.partial")
    try:
        partial.parent.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(_digest(key, content) + content)
        partial.replace(path)
    except OSError as error:
        raise StoreError(f"a game cannot be kept in {path.parent}: {error.strerror}. Finished games stay") from error


def read(folder: Path, key: str, n_checkpoints: int, n_arms: int) -> FinishedGame | None:
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
    n_floats = N_NUMBERS + 4 * n_checkpoints
    if digest != _digest(key, content) or len(content) != 8 * n_floats + 4 * n_checkpoints * n_arms:
        return None
    numbers = np.frombuffer(content, "<f8", n_floats).astype(np.float64)
    arms = np.frombuffer(content, "<i4", offset=8 * n_floats).astype(np.int32).reshape(n_checkpoints, n_arms)
    seconds, evidence, is_repeatable, *bounds = numbers[:N_NUMBERS].tolist()
    bound, lower = (None if math.isnan(one) else one for one in bounds)
    expected, suffered, pseudo, dynamic = numbers[N_NUMBERS:].reshape(4, n_checkpoints)
    played = Played(expected, suffered, pseudo, dynamic, arms, evidence, bool(is_repeatable))
    return FinishedGame(played, seconds, bound, lower)


def _digest(key: str, content: bytes) -> bytes:
    return hashlib.sha256(key.encode() + content).digest()
