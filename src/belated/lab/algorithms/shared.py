"""Finds random generators and arrays inside a learner, because two games must not share them."""

import hashlib
import pickle
import random
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
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
    attributes = getattr(value, "__dict__", None)
    for part in (*inner, *(attributes.values() if isinstance(attributes, dict) else ())):
        yield from _parts(part, depth - 1)


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
