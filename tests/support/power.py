"""A disk in memory for SQLite. After a power cut it holds what was synced and a part of the rest.

It models the worst behaviour of a disk and file system that SQLite is designed to survive.

- A sector of 512 bytes is written whole or not at all. After the cut, a sector that was written since the last sync of
  its file holds either its old content or the result of any of these writes. Each sector is independent, so writes can
  be lost, torn and reordered. The file is as long as at its last sync, or after any write or truncation since. Where it
  has grown and no sector was written, there are zeros or garbage.
- The creation or removal of a file lasts once its folder is synced. SQLite's own files for Unix sync the folder at the
  first sync of a new journal or WAL, and at a removal if they are asked to. Before that, a new file may vanish with all
  its content, and a removed one may come back.
- A sync that fails forgets. As on Linux, a later sync never writes what the failed one should have written.
- A sync that returns has done its work. No store survives a disk that lies.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from random import Random
from typing import Literal, final

import apsw

SECTOR = 512
NUMBERS = count()
Operation = Literal["write", "truncate", "sync", "remove"]
Image = dict[str, bytes]  # all files of a disk


@final
class Content:
    """The content of a file as programs see it and as the last sync left it, and the writes in between."""

    def __init__(self, kept: bytes = b"") -> None:
        self.now, self.kept = bytearray(kept), kept
        self.sectors: dict[int, list[bytes]] = {}  # all contents of each sector since the last sync
        self.sizes: list[int] = []

    def write(self, data: bytes, offset: int) -> None:
        self.now.extend(bytes(max(0, offset - len(self.now))))
        self.now[offset : offset + len(data)] = data
        for number in range(offset // SECTOR, (offset + len(data) - 1) // SECTOR + 1):
            self.sectors.setdefault(number, []).append(bytes(self.now[number * SECTOR : (number + 1) * SECTOR]))
        self.sizes.append(len(self.now))

    def truncate(self, size: int) -> None:
        del self.now[size:]
        self.now.extend(bytes(size - len(self.now)))
        self.sectors = {number: held for number, held in self.sectors.items() if number * SECTOR < size}
        self.sizes.append(size)

    def sync(self) -> None:
        image = bytearray(self.kept[: min([len(self.kept), *self.sizes])])
        image.extend(bytes(len(self.now) - len(image)))
        for number, held in self.sectors.items():
            image[number * SECTOR : number * SECTOR + len(held[-1])] = held[-1]
        self.kept = bytes(image[: len(self.now)])
        self.forget()

    def forget(self) -> None:
        self.sectors, self.sizes = {}, []

    def after_cut(self, random: Random, chance: float) -> bytes:
        """The content after a power cut. `chance` is the probability that an unsynced sector has reached the disk."""
        if chance in (0.0, 1.0):
            return bytes(self.now) if chance else self.kept
        size = random.choice([len(self.kept), *self.sizes])
        image = bytearray(self.kept[:size])
        missing = size - len(image)
        image.extend(random.choice((bytes(missing), random.randbytes(missing))))
        for number, held in self.sectors.items():
            start = number * SECTOR
            if start < size and random.random() < chance:
                image[start : start + SECTOR] = random.choice(held).ljust(len(image[start : start + SECTOR]), b"\0")
        return bytes(image[:size])


@final
class Disk:
    """Files by name. Each operation calls `listen` before it is complete, which may raise an error to make it fail."""

    def __init__(self, files: Mapping[str, bytes] | None = None) -> None:
        self.files = {name: Content(content) for name, content in (files or {}).items()}
        self.kept_files = dict(self.files)  # as they were when the folder was last synced
        self.listen: Callable[[Operation, str], None] = lambda _operation, _name: None

    def sync_folder(self) -> None:
        self.kept_files = dict(self.files)

    def cut(self, random: Random) -> Image:
        """The files after a power cut at this moment."""
        chance = random.choice((0.0, 1.0, 0.1, 0.5, 0.9))
        image = {}
        for name in {**self.kept_files, **self.files}:
            now, kept = self.files.get(name), self.kept_files.get(name)
            content = now if random.random() < chance else kept
            if content is not None:
                image[name] = content.after_cut(random, chance)
        return image


@final
class OpenFile:
    """A file as SQLite uses it."""

    def __init__(self, disk: Disk, name: str, is_new_journal: bool) -> None:
        self._disk, self._name, self._content = disk, name, disk.files[name]
        self._folder_waits = is_new_journal

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802
        return bytes(self._content.now[offset : offset + amount])

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        self._content.write(bytes(data), offset)
        self._disk.listen("write", self._name)

    def xTruncate(self, size: int) -> None:  # noqa: N802
        self._content.truncate(size)
        self._disk.listen("truncate", self._name)

    def xSync(self, _flags: int) -> None:  # noqa: N802
        try:
            self._disk.listen("sync", self._name)
        except apsw.Error:
            self._content.forget()
            raise
        self._content.sync()
        if self._folder_waits:
            self._disk.sync_folder()
            self._folder_waits = False

    def xFileSize(self) -> int:  # noqa: N802
        return len(self._content.now)

    def xDeviceCharacteristics(self) -> int:  # noqa: N802
        return apsw.SQLITE_IOCAP_POWERSAFE_OVERWRITE  # the same as SQLite's own files on Unix

    def xSectorSize(self) -> int:  # noqa: N802
        return 4096

    def xLock(self, _level: int) -> None:  # noqa: N802
        """There is one connection."""

    def xUnlock(self, _level: int) -> None:  # noqa: N802
        """There is one connection."""

    def xCheckReservedLock(self) -> bool:  # noqa: N802
        return False

    def xFileControl(self, _operation: int, _pointer: int) -> bool:  # noqa: N802
        return False

    def xClose(self) -> None:  # noqa: N802
        """There is nothing to release."""


@final
class Folder(apsw.VFS):
    """The disk as SQLite's file system."""

    def __init__(self, name: str, disk: Disk) -> None:
        super().__init__(name, "")
        self._disk = disk

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        file: str = name.filename() if isinstance(name, apsw.URIFilename) else name or "nameless"
        is_new = file not in self._disk.files
        if is_new and not flags[0] & apsw.SQLITE_OPEN_CREATE:
            raise apsw.CantOpenError(f"there is no {file}")
        if is_new:
            self._disk.files[file] = Content()
        is_journal = bool(flags[0] & (apsw.SQLITE_OPEN_WAL | apsw.SQLITE_OPEN_MAIN_JOURNAL))
        return OpenFile(self._disk, file, is_new and is_journal)  # type: ignore[return-value]  # any such object will do

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        if filename not in self._disk.files:
            missing = apsw.IOError(f"there is no {filename}")
            missing.extendedresult = apsw.SQLITE_IOERR_DELETE_NOENT  # type: ignore[attr-defined]
            raise missing
        del self._disk.files[filename]
        self._disk.listen("remove", filename)
        if syncdir:
            self._disk.sync_folder()

    def xAccess(self, pathname: str, flags: int) -> bool:  # noqa: N802
        return pathname in self._disk.files

    def xFullPathname(self, name: str) -> str:  # noqa: N802
        return name


def seeded(seed: int) -> Random:
    """A generator that gives the same numbers every time."""
    return Random(seed)  # noqa: S311


@contextmanager
def mounted(disk: Disk) -> Iterator[str]:
    """Let SQLite use the disk as a VFS. Yields the name of the VFS."""
    name = f"disk-{next(NUMBERS)}"
    folder = Folder(name, disk)
    try:
        yield name
    finally:
        folder.unregister()
