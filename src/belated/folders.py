"""Folders for results."""

from pathlib import Path

from belated.errors import InvalidInput


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
