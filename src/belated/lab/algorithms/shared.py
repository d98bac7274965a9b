"""Finds random generators and arrays inside a learner and its code, because two games must not share them."""

import dis
import hashlib
import pickle
import random
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from types import CellType, CodeType, FunctionType, MemberDescriptorType
from typing import Any, final

import numpy as np

GENERATORS = np.random.Generator, np.random.RandomState, np.random.BitGenerator, random.Random
DEPTH = 3  # of attributes, and of what lists and dictionaries hold


def generators_of(value: Any) -> Iterator[Any]:
    """The random generators in an object, in its attributes, and in theirs.

    >>> generator = np.random.default_rng(1)
    >>> list(generators_of({"mine": [generator]})) == [generator]
    True
    """
    return (part for part in _parts(value) if isinstance(part, GENERATORS))


def generators_in_code(value: Any) -> Iterator[Any]:
    """The random generators that a function, or the methods of a class, take from global variables and closures.

    >>> generator = np.random.default_rng(1)
    >>> list(generators_in_code(lambda: generator.random())) == [generator]
    True
    """
    for function in _functions(value):
        cells = (cell for cell in function.__closure__ or () if isinstance(_inside(cell), GENERATORS))
        yield from map(_inside, cells)
        known = function.__globals__
        yield from (known[name] for name in _globals(function.__code__) if isinstance(known.get(name), GENERATORS))


def _functions(value: Any) -> Iterator[FunctionType]:
    """A function, or the methods of a class that is not Belated's."""
    if isinstance(value, type):
        theirs = (kind for kind in value.__mro__ if not kind.__module__.startswith("belated."))
        value = [part for kind in theirs for part in vars(kind).values()]
    return (part for part in (value if isinstance(value, list) else [value]) if isinstance(part, FunctionType))


def _globals(code: CodeType) -> set[str]:
    """The global variables that are read, also in the functions inside."""
    inner = (const for const in code.co_consts if isinstance(const, CodeType))
    own = {one.argval for one in dis.get_instructions(code) if one.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    return own.union(*map(_globals, inner))


def _inside(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # the variable has no value yet
        return None


def arrays_of(value: Any) -> Iterator[np.ndarray[Any, Any]]:
    """The arrays in an object, in its attributes, and in theirs. Those that cannot be written to do not count."""
    return (part for part in _parts(value) if isinstance(part, np.ndarray) and part.size and part.flags.writeable)


def _parts(value: Any, depth: int = DEPTH) -> Iterator[Any]:
    if isinstance(value, (*GENERATORS, np.ndarray)):
        yield value
        return
    if depth == 0:
        return
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple | set) else ()
    for part in (*inner, *_attributes(value)):
        yield from _parts(part, depth - 1)


def _attributes(value: Any) -> Iterator[Any]:
    """What is in the attributes of an object, also of one whose class has slots for them."""
    attributes = getattr(value, "__dict__", None)
    yield from attributes.values() if isinstance(attributes, dict) else ()
    for kind in type(value).__mro__:
        slots = [one for one in vars(kind).values() if isinstance(one, MemberDescriptorType)]
        for slot in slots if "__slots__" in vars(kind) else ():
            with suppress(AttributeError):  # it may be empty
                yield slot.__get__(value)


@final
class Memory:
    """The first learner that was made, and where its arrays were.

    It holds no array, because NumPy resizes none that something else refers to.
    """

    def __init__(self) -> None:
        self._first: Any = None
        self._bounds: list[tuple[int, int]] = []

    def is_in(self, learner: Any) -> bool:
        """Whether an array of this learner shares memory with one of the first learner."""
        if self._first is None:
            self._first, self._bounds = learner, [_bounds(one) for one in arrays_of(learner)]
        if learner is self._first:
            return False
        near = [one for one in arrays_of(learner) if any(map(partial(_overlap, _bounds(one)), self._bounds))]
        return any(np.shares_memory(one, other) for one in near for other in arrays_of(self._first))


def _overlap(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def _bounds(array: np.ndarray[Any, Any]) -> tuple[int, int]:
    """The first byte of an array, and the one after its last."""
    reach = [step * (size - 1) for step, size in zip(array.strides, array.shape, strict=True)]
    start = array.__array_interface__["data"][0]
    return start + sum(min(0, one) for one in reach), start + sum(max(0, one) for one in reach) + array.itemsize


def start_of(generators: Iterable[Any]) -> str:
    """A digest of the states of generators. Empty if there are none, or one has no state.

    >>> start_of([np.random.default_rng(1)]) == start_of([np.random.default_rng(1)]) != start_of([random.Random(1)])
    True
    """
    try:
        states = [pickle.dumps(_state(one)) for one in generators]
    except NotImplementedError:  # such as random.SystemRandom
        return ""
    return hashlib.sha256(b"".join(states)).hexdigest() if states else ""


def _state(generator: Any) -> Any:
    if isinstance(generator, random.Random):
        return generator.getstate()
    if isinstance(generator, np.random.RandomState):
        return generator.get_state(legacy=False)
    return getattr(generator, "bit_generator", generator).state
