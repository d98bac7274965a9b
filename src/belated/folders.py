"""Paths that a caller gives, and folders for results."""

import os
from pathlib import Path
from typing import Any

from belated.errors import InvalidInput


def as_path(name: str, given: Any) -> Path:
    """What a caller gave as a path.

    >>> as_path("folder", "results").name
    'results'
    """
    text = os.fspath(given) if isinstance(given, str | os.PathLike) else None
    if not isinstance(text, str):
        raise InvalidInput(f"{name} must be text or a Path, got {given!r:.200}")
    if "\0" in text:
        raise InvalidInput(f"{name} must have no zero byte, got {given!r:.200}")
    return Path(text)


def make_folder(folder: Path, *parts: str) -> Path:
    """Create a folder, with these parts inside, and check that files can be written there.

    Call it before any work, so that a wrong path is refused at once.
    """
    try:
        for part in parts or (".",):
            made = folder / part
            made.mkdir(parents=True, exist_ok=True)
            (made / ".writable").touch()
            (made / ".writable").unlink()
    except OSError as error:
        raise InvalidInput(f"cannot write to the folder {folder}. {error.strerror}") from error
    return folder
