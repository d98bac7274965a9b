"""Checks of input from outside. Each function returns the clean value or raises InvalidInput."""

import math
import operator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from belated.arrays import Floats, Integers
from belated.errors import InvalidInput
from belated.scalars import as_float

LARGEST = 2**31 - 1  # of any count: more arms or decisions at once do not fit into memory


def as_unit(word: str, value: Any) -> float:
    """A loss or a reward from 0 to 1."""
    number = as_float(value)
    if not 0.0 <= number <= 1.0:
        hint = "" if math.isnan(number) else ". Rescale it"
        raise InvalidInput(f"{word} must be a number from 0 to 1, got {value!r}{hint}")
    return number


def as_loss(loss: Any) -> float:
    """A loss from 0 to 1."""
    return as_unit("loss", loss)


def as_arms(arms: ArrayLike, n_arms: int) -> Integers:
    """The arms of several decisions, from 0."""
    array = np.asarray(arms)
    if array.ndim != 1 or (array.size and (array.dtype.kind not in "iu" or array.min() < 0 or array.max() >= n_arms)):
        raise InvalidInput(f"the arms of decisions must be whole numbers from 0 to {n_arms - 1}, got {arms!r:.80}")
    return np.asarray(array, np.int64)


def as_probabilities(probabilities: ArrayLike) -> Floats:
    """What the arms of several decisions were drawn with."""
    array = np.asarray(probabilities)
    is_real = array.ndim == 1 and (array.size == 0 or array.dtype.kind in "iuf")
    if not (is_real and ((array >= 1e-300) & (array <= 1)).all()):
        raise InvalidInput(f"the probabilities of decisions must lie in (0, 1], got {probabilities!r:.80}")
    return np.asarray(array, np.float64)


def as_bold_advantages(values: ArrayLike, size: int) -> Floats:
    """One for each decision, or none at all."""
    array = np.asarray(values, np.float64)
    if array.shape not in ((0,), (size,)) or not np.isfinite(array).all():
        raise InvalidInput(f"each decision needs a finite bold advantage, got {values!r:.80} for {size} decisions")
    return array


def as_confidence(confidence: Any) -> float:
    """A confidence level between 0 and 1, such as 0.95."""
    level = as_float(confidence)
    if not 0 < level < 1:
        raise InvalidInput(f"confidence must lie between 0 and 1, such as 0.95, got {confidence!r}")
    return level


def as_probability(probability: Any) -> float:
    """What the arm of a decision was drawn with."""
    chance = as_float(probability)
    if not 1e-300 <= chance <= 1:  # no smaller one is ever drawn
        raise InvalidInput(f"the probability of a decision must lie in (0, 1], got {probability!r}")
    return chance


def whole_number(name: str, value: Any, least: int, largest: float = LARGEST) -> int:
    """An integer from least to largest. True and False are refused."""
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if not least <= number <= largest or isinstance(value, bool | np.bool_):
        range_ = f">= {least}" if largest == math.inf else f"from {least} to {largest}"
        raise InvalidInput(f"{name} must be a whole number {range_}, got {value!r}")
    return number


def positive_number(name: str, value: Any) -> float:
    """A positive finite float."""
    number = as_float(value)
    if not 0 < number < math.inf or isinstance(value, bool | np.bool_):
        raise InvalidInput(f"{name} must be a positive finite number, got {value!r}")
    return number


def truth(name: str, value: Any) -> bool:
    """True or False."""
    if not isinstance(value, bool | np.bool_):
        raise InvalidInput(f"{name} must be True or False, got {value!r}")
    return bool(value)


def as_numbers(values: Any) -> Floats:
    """Real numbers in an array. Text is none, and no number may be masked."""
    try:
        array = np.asarray(values)
    except ValueError as error:  # rows of different lengths
        raise InvalidInput(str(error)) from None
    if array.dtype.kind not in "fiubO":
        raise InvalidInput(f"they have the type {array.dtype}")
    if np.ma.is_masked(values):
        raise InvalidInput("some are masked. Use filled() to say what they are")
    try:
        return np.asarray(array, np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput(str(error)) from None


def as_delays(delays: ArrayLike) -> Integers:
    """Delays d_1..d_n."""
    array = np.asarray(delays)
    if np.ma.is_masked(delays):
        raise InvalidInput("some delays are masked. Use filled(lab.NEVER) if they never come")
    if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "iu":
        raise InvalidInput(f"delays must be a non-empty sequence of whole numbers, got {delays!r:.80}")
    if array.min() < 0:
        raise InvalidInput(f"delays must not be negative, got {array.min()} in round {array.argmin() + 1}")
    if array.max() > LARGEST:
        array = np.minimum(array, LARGEST)  # no game is longer: it means never
    return np.asarray(array, np.int64)
