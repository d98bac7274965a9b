"""Rules as text, for titles, tables and errors."""

import hashlib
from typing import Any

import numpy as np

FEW = 12  # numbers that are shown as they are


def text_of_array(array: np.ndarray[Any, Any]) -> str:
    """All numbers if they are few, or else the size and some digits that differ whenever the numbers do.

    >>> text_of_array(np.array([1, 2, 1]))
    '[1, 2, 1]'
    >>> text_of_array(np.zeros((50, 3)))
    '50 x 3, #655a3ef0'
    """
    if array.size <= FEW:
        return str(array.tolist())
    digits = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:8]
    return f"{' x '.join(map(str, array.shape))}, #{digits}"


def text_of(rule: Any) -> str:
    """The class of a rule with its attributes. It does not change from run to run, as an address in memory does."""
    written = (f"{name}={_value(value)}" for name, value in getattr(rule, "__dict__", {}).items() if name[:1] != "_")
    return f"{type(rule).__name__}({', '.join(written)})"


def _value(value: Any) -> str:
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        return text_of_array(value)
    return text_of_code(value) if callable(value) else f"{value!r:.80}"


def text_of_code(value: Any) -> str:
    """The name of a function or a class. What has none has its own text."""
    return str(getattr(value, "__name__", None) or f"{value!r:.80}")
