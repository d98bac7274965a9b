"""Players in a Python file, such as `mine.py:MyLearner`. The file is read once and sent along as text."""

import hashlib
import inspect
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, final

from belated.errors import InvalidInput
from belated.lab.algorithms.algorithm import Algorithm
from belated.suggestions import unknown_name
from belated.tunings import Tuning

NO_PLAYERS = ("numpy", "types", "typing")  # of their objects some can be called, such as np.exp and list[int]

_lock = threading.RLock()  # a module runs once


@final
@dataclass(frozen=True)
class FromFile:
    """A name in the text of a Python file."""

    path: str
    code: str
    name: str

    @property
    def fingerprint(self) -> str:
        return f"{self.name} {_digest(self.code)}"

    def load(self) -> Any:
        """The object of this name. Runs the file if this process has not done so yet."""
        module = _module(self.path, self.code)
        if self.name not in vars(module):
            names = [name for name, value in vars(module).items() if _may_play(name, value, module)]
            if not names:
                raise InvalidInput(f"{self.path} has no class, function or tuning that can play (docs/players.md)")
            hint = f" Write {self.path}:NAME." if not self.name else ""
            raise unknown_name(f"name in {self.path}", self.name, names, hint)
        return vars(module)[self.name]


def from_file(path: str, name: str) -> FromFile:
    """A name in a file that is read now."""
    try:
        code = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path} is not a Python file in UTF-8. {error}") from error
    return FromFile(path, code, name)


def _digest(code: str) -> str:
    return hashlib.sha256(code.encode()).hexdigest()


def _may_play(name: str, value: Any, module: ModuleType) -> bool:
    """Whether a name is worth suggesting. Classes and functions that were imported are not, and no plain data."""
    kind = type(value)
    if name.startswith("_") or kind.__module__ in NO_PLAYERS:
        return False
    if isinstance(value, type):
        return value.__module__ == module.__name__ and (issubclass(value, Tuning) or hasattr(value, "ask"))
    if inspect.isroutine(value):
        return value.__module__ == module.__name__
    return isinstance(value, Tuning | Algorithm) or hasattr(kind, "ask") or callable(value)


def _module(path: str, code: str) -> ModuleType:
    """The file as a module. Its name has a digest of the text, so a changed file is another module."""
    called = f"belated_file_{Path(path).stem}_{_digest(code)[:16]}"
    with _lock:
        if called in sys.modules:
            return sys.modules[called]
        module = ModuleType(called)
        module.__file__ = path
        sys.modules[called] = module  # dataclasses look for their module here
        try:
            exec(compile(code, path, "exec"), vars(module))  # noqa: S102  (the user named this file to be run)
        except BaseException as error:
            del sys.modules[called]
            if not isinstance(error, Exception | SystemExit):
                raise
            line = error.lineno if isinstance(error, SyntaxError) else _line(error)
            where = f" in line {line}" if line else ""
            raise InvalidInput(f"{path} fails{where}. {type(error).__name__}: {error}") from error
    return module


def _line(error: BaseException) -> int | None:
    """The line of the file that failed. The first two entries are ours and its own."""
    trace = error.__traceback__
    return None if trace is None or trace.tb_next is None else trace.tb_next.tb_lineno
