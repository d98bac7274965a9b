"""A digest of everything that determines a game's result to the last bit."""

import hashlib
import json
import math
import platform
import sys
from collections.abc import Mapping
from functools import cache, cached_property, partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import CellType, FunctionType, MethodType
from typing import Any

import numpy as np

import belated as package
from belated.errors import InvalidInput
from belated.lab.algorithms import BY_NAME, Algorithm
from belated.lab.algorithms.players import Given, Source, settings_of_ftrl
from belated.lab.problems.reacting import Reacting
from belated.learner.ftrl import FTRL

PLAIN = (type(None), bool, int, float, str)
CODE = (type, FunctionType, MethodType, partial)
WRAPPERS = (MethodType, partial, staticmethod, classmethod, property, cached_property)  # hold a function
WRAPPED = ("__self__", "__func__", "func", "args", "keywords", "fget")  # what is in them
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
    try:
        described = [_described(part) for part in (environment(), *parts)]
    except RecursionError:
        what = "an object of your own refers to itself, so its games cannot be kept in a folder"
        raise InvalidInput(f"{what}. Give it settings that do not") from None
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
    ways: Any = ((Algorithm, _algorithm), (Reacting, _reacting), (CODE, _code))
    for wanted, describe in ways:
        if isinstance(value, wanted):
            return [name, *describe(value)]
    return [name, *_own(value, getattr(value, "fingerprint", None), is_ours=name.startswith("belated."))]


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
    return _described(value)


def _code(value: Any, mark: Any = None) -> list[Any]:
    """A class or a function by its name, its fingerprint and what it holds.

    A method may have the fingerprint of its object, and a partial function that of the whole one.
    """
    whole = value.func if isinstance(value, partial) else value
    owner = whole.__self__ if isinstance(whole, MethodType) else whole
    name = f"{getattr(whole, '__module__', '')}.{_name(whole)}"
    is_ours = owner is value and name.startswith("belated.") and "<" not in name
    marks = [mark, *(getattr(one, "fingerprint", None) for one in (value, whole, owner))]
    return [name, _mark(value, next(filter(None, marks), None), is_ours=is_ours), _held(value)]


def _name(value: Any) -> str:
    return str(getattr(value, "__qualname__", type(value).__name__))


def _reacting(value: Reacting) -> list[Any]:
    """Losses that react, by the function or the object that makes them. The mark may be at either of the two."""
    rule, mark = value.rule, value.fingerprint or getattr(value.rule, "fingerprint", None)
    if isinstance(rule, CODE):
        return _code(rule, mark)
    name = f"{type(rule).__module__}.{type(rule).__qualname__}"
    return [name, *_own(rule, mark, is_ours=name.startswith("belated."))]


def _own(value: Any, mark: Any, *, is_ours: bool) -> list[Any]:
    """An object by its settings and, if its code is not Belated's, by its fingerprint."""
    mark = _mark(value, mark, is_ours=is_ours)
    return [mark, [] if is_ours else _held(type(value)), _described(object.__getstate__(value))]


def _held(value: Any, *seen: Any) -> list[Any]:
    """The data in the closure and the defaults of a function, or in the attributes and the methods of a class.

    They tell apart what one function has made with different settings. An object of your own counts by its plain data
    and its functions, but not by other objects in it.
    """
    held, seen = _parts(value), (*seen, value)
    return [
        [name, _name(one), _held(one, *seen) if _parts(one) else _data(one)]
        for name, one in held.items()
        if not any(one is old for old in seen)
    ]


def _parts(value: Any) -> dict[str, Any]:
    """What a function, a class, a list or an object of your own holds, by name. Nothing if it is plain data itself."""
    if isinstance(value, type):
        return {f"{kind.__qualname__}.{name}": one for kind in _yours(value) for name, one in _attributes(kind)}
    if isinstance(value, FunctionType):
        cells = dict(zip(value.__code__.co_freevars, value.__closure__ or (), strict=True))
        held = {str(number): one for number, one in enumerate(value.__defaults__ or ())} | (value.__kwdefaults__ or {})
        return held | {name: one.cell_contents for name, one in cells.items() if name != "__class__" and _is_full(one)}
    if isinstance(value, WRAPPERS):
        return {name: getattr(value, name) for name in WRAPPED if hasattr(value, name)}
    return _contents(value)


def _contents(value: Any) -> dict[str, Any]:
    """The same of what is neither a function nor a class."""
    if type(value) in (list, tuple) and all(type(one) in PLAIN for one in value):
        return {}
    if isinstance(value, list | tuple):
        return {str(number): one for number, one in enumerate(value)}
    if isinstance(value, dict):
        return {str(key): one for key, one in value.items()}
    state: Any = object.__getstate__(value) if _yours(type(value)) else None
    parts = state if isinstance(state, tuple) else (state,)  # attributes, and slots if there are any
    held = {name: one for part in parts if isinstance(part, dict) for name, one in part.items()}
    if "py_func" in held:  # a function that Numba compiles, whose other attributes change when it is used
        return {"py_func": held["py_func"]}
    return {name: one for name, one in held.items() if isinstance(one, WRAPPERS + CODE) or _data(one) is not None}


def _attributes(kind: type) -> list[tuple[str, Any]]:
    return [(name, one) for name, one in vars(kind).items() if isinstance(one, FunctionType) or name[:2] != "__"]


def _yours(kind: type) -> list[type]:
    """The class and its bases, without those of Belated and of Python."""
    packages = {one: one.__module__.partition(".")[0] for one in kind.__mro__}
    return [one for one, package in packages.items() if package not in ("belated", *sys.stdlib_module_names)]


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
