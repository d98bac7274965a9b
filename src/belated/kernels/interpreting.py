"""Runs a kernel as the plain Python that it is, with the same bits as its compiled twin.

A kernel is IEEE operations in a fixed order, which Python's numbers do in the same way. They are faster than NumPy's,
so records and rows of arrays become Python's own for the time of a call. And an exception may come between any two
lines. So a kernel works on copies, and what they have become is written back in one step at the end.
"""

import math
import operator
from collections import deque
from collections.abc import Callable, Iterator
from functools import cache
from itertools import chain, starmap
from threading import RLock
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any, final

import numpy as np

Write = tuple[Any, Any, Any]  # an array, an index, and what is written there


@final
class Row:
    """A record with its fields as attributes."""


@final
class Vector(list[Any]):
    """A list that knows its shape, as an array does."""

    __slots__ = ("dtype",)

    def __init__(self, values: Any, dtype: Any) -> None:
        super().__init__(values)
        self.dtype = dtype

    @property
    def shape(self) -> tuple[int]:
        """Its length."""
        return (len(self),)

    @property
    def size(self) -> int:
        """Its length."""
        return len(self)


@final
class Table:
    """An array of rows. A row is copied when it is first used, as a Row, a Vector or another Table."""

    def __init__(self, array: Any, *, is_exact: bool) -> None:
        self.array, self.shape = array, array.shape
        self._rows: dict[int, Any] = {}
        self._is_exact = is_exact

    def __getitem__(self, key: Any) -> Any:
        if key.__class__ is tuple:
            row = self[key[0]]
            return row[key[1]] if len(key) == 2 else row[key[1:]]
        try:
            return self._rows[key]
        except KeyError:
            row = self._rows[key] = copied(self.array[key], is_exact=self._is_exact)
            return row

    def __setitem__(self, key: Any, value: Any) -> None:
        if key.__class__ is tuple:
            self[key[0]][key[1] if len(key) == 2 else key[1:]] = value
        elif value.__class__ is Row:
            self._rows[key] = _duplicate(value)
        else:
            self[key][:] = value

    def writes(self) -> Iterator[Write]:
        """What brings the array up to date."""
        return chain.from_iterable(starmap(self._writes, self._rows.items()))

    def _writes(self, key: int, row: Any) -> Iterator[Write]:
        if row.__class__ is Row:
            return iter([(self.array, key, np.array(_fields(row), self.array.dtype))])
        return writes(self.array[key], row)


def copied(value: Any, *, is_exact: bool = False) -> Any:
    """A kernel's own copy of an argument. If it is to be exact, with NumPy's numbers, and else with Python's."""
    if isinstance(value, np.ndarray):
        if value.ndim > 1 or value.dtype.names:
            return Table(value, is_exact=is_exact)
        return Vector(value if is_exact else value.tolist(), value.dtype)
    if isinstance(value, np.void):
        return _as_row(value.dtype, [value[name] for name in value.dtype.names or ()] if is_exact else value.item())
    if is_exact:
        return np.float64(value) if isinstance(value, float) else value
    return value.item() if isinstance(value, np.generic) else value


def writes(original: Any, copy: Any) -> Iterator[Write]:
    """What makes an argument equal to what its copy has become."""
    if copy.__class__ is Table:
        return copy.writes() if original.flags.writeable else iter(())
    if copy.__class__ is Vector and original.flags.writeable:
        return iter([(original, ..., np.array(copy, original.dtype))])
    if copy.__class__ is Row:
        values = np.array(_fields(copy), original.dtype)
        return ((original, name, values[name]) for name in original.dtype.names)
    return iter(())


@cache
def _records_in(dtype: np.dtype[Any]) -> tuple[str, ...]:
    return tuple(name for name in dtype.names or () if dtype[name].names)


def _as_row(dtype: np.dtype[Any], fields: Any) -> Row:
    row = Row()
    row.__dict__.update(zip(dtype.names or (), fields, strict=True))
    for name in _records_in(dtype):
        setattr(row, name, _as_row(dtype[name], getattr(row, name)))
    return row


def _duplicate(row: Row) -> Row:
    other = Row()
    other.__dict__.update(
        {name: _duplicate(value) if value.__class__ is Row else value for name, value in vars(row).items()}
    )
    return other


def _fields(row: Row) -> tuple[Any, ...]:
    return tuple(_fields(value) if value.__class__ is Row else value for value in vars(row).values())


def _as_result(value: Any) -> Any:
    """What a compiled kernel returns in place of this."""
    if value.__class__ is tuple:
        return tuple(map(_as_result, value))
    if value.__class__ is Vector:
        return np.array(value, value.dtype)
    return value.item() if isinstance(value, np.generic) else value


def call(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """Call a kernel without compiling it. An exception leaves the arguments as they were."""
    twin = _ready.get(function) or _prepared(function)
    try:
        copies = tuple(map(copied, arguments))
        result = twin(*copies)
    except ZeroDivisionError:  # Python refuses what IEEE defines, and NumPy does not
        copies = tuple(copied(value, is_exact=True) for value in arguments)
        with np.errstate(all="ignore"):
            result = twin(*copies)
    changes, answer = list(chain.from_iterable(map(writes, arguments, copies))), _as_result(result)
    deque(starmap(operator.setitem, changes), 0)  # one step: Python runs no line of its own before it is done
    return answer


def _full(shape: Any, value: Any, dtype: Any = float) -> Any:
    return copied(np.full(shape, value, dtype))


def _sqrt(value: float) -> float:
    return math.sqrt(value) if value >= 0 else math.nan


def _log(value: float) -> float:
    if value > 0:
        return math.log(value)
    return -math.inf if value == 0 else math.nan


# What kernels use of NumPy and of the C library. As IEEE has it, sqrt and log do not raise.
_NUMPY = SimpleNamespace(
    inf=math.inf,
    nan=math.nan,
    int32=np.int32,
    int64=np.int64,
    empty=lambda shape, dtype=float: _full(shape, 0, dtype),
    zeros=lambda shape, dtype=float: _full(shape, 0, dtype),
    full=_full,
)
_MATH = SimpleNamespace(sqrt=_sqrt, log=_log)
_ready: dict[Callable[..., Any], Callable[..., Any]] = {}
_preparing = RLock()


def _prepared(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function among interpreted ones."""
    with _preparing:
        twins: dict[Callable[..., Any], Callable[..., Any]] = {}
        _twin_of(function, twins, {})
        _ready.update(twins)  # only now, when all of their names are there
    return _ready[function]


def _twin_of(function: Callable[..., Any], twins: dict[Any, Any], names: dict[str, dict[str, Any]]) -> Any:
    module = function.__module__
    if module not in names:
        names[module] = {}
        names[module].update({name: _replaced(value, twins, names) for name, value in function.__globals__.items()})
    if function not in twins:
        twins[function] = with_names(function, names[module])
    return twins[function]


def _replaced(value: Any, twins: dict[Any, Any], names: dict[str, dict[str, Any]]) -> Any:
    if isinstance(value, ModuleType) and value in (np, math):
        return _NUMPY if value is np else _MATH
    if isinstance(value, np.ndarray):
        return copied(value)
    return _twin_of(value.function, twins, names) if hasattr(value, "function") else value


def with_names(function: Callable[..., Any], names: dict[str, Any]) -> Callable[..., Any]:
    """The same function with other globals."""
    return FunctionType(function.__code__, names, function.__name__)
