"""A digest of everything that determines a game's result to the last bit."""

import hashlib
import json
import math
import platform
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import CellType, FunctionType
from typing import Any

import numpy as np

import belated as package
from belated.errors import InvalidInput
from belated.lab.algorithms import BY_NAME, Algorithm
from belated.lab.algorithms.players import Given, Source, settings_of_ftrl
from belated.lab.problems.reacting import Reacting
from belated.learner.ftrl import FTRL

PLAIN = (type(None), bool, int, float, str)
PACKAGE = Path(__file__).parent.parent.parent
SOURCES = (
    "*.py",
    *(f"{name}/**/*.py" for name in ("kernels", "learner", "replicated", "baselines", "lab", "adapters")),
)  # everything that a game runs


@cache
def environment() -> Mapping[str, str]:
    """What must agree for the same bits. That is Belated's source, the libraries, and how this machine computes."""
    source = hashlib.sha256()
    for path in sorted(path for pattern in SOURCES for path in PACKAGE.glob(pattern)):
        source.update(path.read_bytes())
    return {
        "belated": f"{package.__version__} ({source.hexdigest()[:12]})",
        "python": ".".join(platform.python_version_tuple()[:2]),
        "numpy": np.__version__,
        "numba": _numba(),
        "arithmetic": _arithmetic(),
    }


def _numba() -> str:
    """The version of Numba. Without it kernels are plain Python, with the same bits."""
    try:
        return version("numba")
    except PackageNotFoundError:
        return "not installed"


def _arithmetic() -> str:
    """A digest of functions whose last bit depends on the processor and the C library."""
    grid, generator = np.linspace(0.1, 100, 5000), np.random.default_rng(1)
    drawn = (generator.geometric(0.01, 5000), generator.pareto(0.5, 5000), generator.random(5000))
    scalar = [f(value) for f in (math.log, math.exp, math.cbrt, math.sqrt) for value in grid.tolist()]
    made = (np.sin(grid), np.log(grid), np.log1p(grid), np.exp(grid), np.array(scalar), *drawn)
    return hashlib.sha256(b"".join(values.tobytes() for values in made)).hexdigest()[:12]


def fingerprint_of(*parts: Any) -> str:
    """A digest that differs whenever a part or the environment does. Your own objects need a `fingerprint`."""
    described = [_described(part) for part in (environment(), *parts)]
    return hashlib.sha256(json.dumps(described).encode()).hexdigest()


def _described(value: Any) -> Any:
    """A value as JSON that differs whenever the value does."""
    kind = type(value)
    name = f"{kind.__module__}.{kind.__qualname__}"
    if kind in PLAIN or isinstance(value, np.number | np.bool_):
        return [name, repr(value)]
    if kind is np.ndarray and not value.dtype.hasobject:
        return [name, str(value.dtype), value.shape, hashlib.sha256(value.tobytes()).hexdigest()]
    if kind in (tuple, list):
        return [name, [_described(item) for item in value]]
    if kind is dict:
        return [name, [[_described(key), _described(item)] for key, item in value.items()]]
    if isinstance(value, Algorithm | Reacting):
        return [name, *(_algorithm(value) if isinstance(value, Algorithm) else _reacting(value))]
    return [name, *_own(value, is_ours=name.startswith("belated."))]


def _algorithm(value: Algorithm) -> list[Any]:
    """An algorithm of the table by its name, because the environment has its source. Another one by what it plays."""
    if value is BY_NAME.get(value.name):
        return [value.name]
    if value.fingerprint is None and isinstance(value.player, Given):
        return [_given(value.player.what), _described(value.player.settings)]
    mark = _mark(value, value.fingerprint, is_ours=False)  # stands for the code of its functions
    player = value.player
    return [value.name, mark, _given(player.what) if isinstance(player, Given) else _held(player), _held(value.bound)]


def _given(value: Any) -> Any:
    """A player that the caller gave. One from a file or a package is known by its source."""
    if isinstance(value, Source):
        return [type(value).__name__, value.fingerprint]
    if type(value) is FTRL:
        return ["FTRL", _described(settings_of_ftrl(value))]
    if isinstance(value, type | FunctionType):
        name, mark = f"{value.__module__}.{value.__qualname__}", getattr(value, "fingerprint", None)
        is_ours = name.startswith("belated.") and "<" not in name
        return [name, _mark(value, mark, is_ours=is_ours), _held(value)]
    return _described(value)


def _reacting(value: Reacting) -> list[Any]:
    """Losses that react, by the function or the object that makes them. The mark may be at either of the two."""
    rule, mark = value.rule, value.fingerprint or getattr(value.rule, "fingerprint", None)
    if isinstance(rule, FunctionType):
        return [f"{rule.__module__}.{rule.__qualname__}", _mark(rule, mark, is_ours=False), _held(rule)]
    name = f"{type(rule).__module__}.{type(rule).__qualname__}"
    is_ours = name.startswith("belated.")
    return [name, _mark(rule, mark, is_ours=is_ours), _described(object.__getstate__(rule))]


def _own(value: Any, *, is_ours: bool) -> list[Any]:
    """An object by its settings and, if its code is not Belated's, by its fingerprint."""
    mark = _mark(value, getattr(value, "fingerprint", None), is_ours=is_ours)
    return [mark, [] if is_ours else _held(type(value)), _described(object.__getstate__(value))]


def _held(value: Any, *seen: Any) -> list[Any]:
    """The data in the closure and the defaults of a function, or in the attributes and the methods of a class.

    They tell apart what one function has made with different settings. What is no plain data does not count.
    """
    held: dict[str, Any] = {}
    if isinstance(value, type):
        held = {name: one for name, one in vars(value).items() if isinstance(one, FunctionType) or name[:2] != "__"}
    elif isinstance(value, FunctionType):
        held = {str(number): one for number, one in enumerate(value.__defaults__ or ())}
        cells = dict(zip(value.__code__.co_freevars, value.__closure__ or (), strict=True))
        held |= (value.__kwdefaults__ or {}) | {
            name: cell.cell_contents for name, cell in cells.items() if _is_full(cell)
        }
    seen = (*seen, value)
    return [
        [name, _held(one, *seen) or _data(one)] for name, one in held.items() if not any(one is old for old in seen)
    ]


def _is_full(cell: CellType) -> bool:
    try:
        _ = cell.cell_contents
    except ValueError:  # the variable has no value yet
        return False
    return True


def _data(value: Any) -> Any:
    try:
        return _described(value)
    except (InvalidInput, RecursionError):  # an object of your own, for which the mark stands, or a list in itself
        return None


def _mark(value: Any, mark: Any, *, is_ours: bool) -> Any:
    if not (is_ours or (isinstance(mark, str) and mark)):
        raise InvalidInput(
            f"{value!r:.80} is an object of your own, and Belated cannot see whether its code has changed. To keep its "
            "games in a folder, give it an attribute `fingerprint`, a text that you change with the code. Or name it "
            "by its file, as in mine.py:MyLearner, which needs none"
        )
    return mark
